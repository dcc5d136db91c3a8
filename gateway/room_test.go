package gateway

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"slices"
	"testing"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
)

var (
	bob  = &identity.Principal{Identity: identity.Identity{Tenant: identity.Some("acme"), Actor: "bob"}}
	evil = &identity.Principal{Identity: identity.Identity{Tenant: identity.Some("evil"), Actor: "ann"}}
)

// roomTools are what agents can call. What "files" returns is for those alone who
// are cleared for the class "secret", as ann is and bob is not.
func roomTools() []agent.Tool {
	return []agent.Tool{{
		Name: "files", Description: taint.Plain("reads files"), Mode: kernel.Repeatable,
		Run: func(context.Context, jsontext.Value) (agent.Result, error) {
			return agent.Result{Text: "CANARY-result"}, nil
		},
	}}
}

// newRoomWorld makes a world in which conversations may be shared, whose agent
// plays a script; in the tenant evil nobody may start one.
func newRoomWorld(t testing.TB, text string, change ...func(*kernel.Config, *Config)) *world {
	t.Helper()
	store := journaltest.Wrap(memory.New())
	shared := &conversation.Shared{
		Service: identity.Identity{Actor: "parley:service"}, Participants: conversation.LogParticipants(store),
		Cleared: func(_ context.Context, viewer identity.Identity, classes []string) (bool, error) {
			return viewer == ann.Identity && slices.Equal(classes, []string{"secret"}), nil
		},
		ClassOf: func(tool string) ([]string, bool) { return []string{"secret"}, tool == "files" },
		MayStart: func(_ context.Context, who identity.Identity) (bool, error) {
			if who.Tenant == identity.Some("evil") {
				return false, errors.New("nobody knows")
			}
			return true, nil
		},
	}
	return newWorldOf(t, store, text, conversation.NewHub(conversation.HubConfig{}), shared, change...)
}

// room begins a shared conversation of ann's with others, past the gateway.
func (w *world) room(others ...*identity.Principal) string {
	w.t.Helper()
	id, err := w.client.StartShared(context.Background(), ann, "")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, other := range others {
		if err := w.client.AddParticipant(context.Background(), ann, id, other.Identity); err != nil {
			w.t.Fatal(err)
		}
	}
	return id
}

// atMost bounds the posts of a minute, at puts an edge before the gateway.
func atMost(posts int) func(*kernel.Config, *Config) {
	return func(_ *kernel.Config, c *Config) { c.PostsPerMinute = posts }
}

func at(edge *Edge) func(*kernel.Config, *Config) {
	return func(_ *kernel.Config, c *Config) { c.Edge = edge }
}
