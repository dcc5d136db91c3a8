package gateway

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
)

// records: every shape of an entry, with all that it can have, and every state
// of a conversation.
func (c *walk) records(t *testing.T) {
	owner := identity.Identity{Tenant: identity.Some("acme"), Actor: "ann", OnBehalfOf: identity.Some("eve")}
	w := c.in(newWorld(t, func(_ *kernel.Config, c *Config) {
		c.HTML = bracketed
		c.Authenticate = func(*http.Request) (identity.Principal, error) { return identity.Principal{Identity: owner}, nil }
	}))
	user, assistant := conversation.RoleUser, conversation.RoleAssistant
	all := []conversation.Record{
		{Turn: 1, Role: user, Status: conversation.StatusAccepted, Text: "one"},
		{Turn: 1, Role: assistant, Status: conversation.StatusComplete, Text: "re: one"},
		{Turn: 2, Role: user, Status: conversation.StatusAccepted, Text: "two", EditOf: 1, EditOfTurn: 1},
		{Turn: 2, Role: assistant, Status: conversation.StatusInterrupted, Text: "re:"},
		{Turn: 3, Role: assistant, Status: conversation.StatusComplete},
		{Turn: 4, Role: conversation.RoleNotice, Status: conversation.StatusAccepted, Topic: conversation.TopicLease, Text: "it is free"},
		{Role: conversation.RoleNotice, Status: conversation.StatusRejected, Topic: conversation.TopicLease, Reason: conversation.ReasonStale},
	}
	for _, reason := range []conversation.Reason{
		conversation.ReasonMalformed, conversation.ReasonUnauthenticated, conversation.ReasonReplayed, conversation.ReasonStale,
		conversation.ReasonNotParticipant, conversation.ReasonEditInvalid, conversation.ReasonPromptTooLarge,
	} {
		all = append(all, conversation.Record{Role: user, Status: conversation.StatusRejected, Reason: reason, Text: "no"})
	}
	for _, reason := range []conversation.Reason{
		conversation.ReasonModelError, conversation.ReasonDenied, conversation.ReasonTurnFailed, conversation.ReasonCancelled,
	} {
		all = append(all, conversation.Record{Turn: 4, Role: assistant, Status: conversation.StatusFailed, Reason: reason, ErrorID: kernel.NewID(), Text: "re:"})
	}
	for id, state := range map[string]kernel.State{"closed": kernel.Completed, "failed": kernel.Failed, "cancelled": kernel.Cancelled} {
		w.lay(id, owner, state, all)
		for _, suffix := range []string{"", "/history", "/events", "/history?render=html", "/events?render=html"} {
			w.answers(request("GET", "/v1/conversations/"+id+suffix, "ann@acme", ""), 200)
		}
	}
	page, err := w.client.History(t.Context(), &identity.Principal{Identity: owner}, "closed", conversation.HistoryOptions{})
	if err != nil || len(page.Entries) != len(all) {
		t.Errorf("history of what was laid: %+v, %v; want %d entries", page, err, len(all))
	}
}

// lay writes a conversation that is over into the store.
func (w *world) lay(id string, owner identity.Identity, state kernel.State, records []conversation.Record) {
	w.t.Helper()
	encoded := func(value any) []byte {
		data, err := json.Marshal(value)
		if err != nil {
			w.t.Fatal(err)
		}
		return data
	}
	events := []journal.Event{{Kind: kernel.KindStarted, Data: encoded(kernel.Started{
		Flow: conversation.DefaultFlowName, Version: "1", Principal: &owner, Input: encoded(conversation.Stamp(&owner)),
	})}}
	suffix := map[conversation.Role]string{conversation.RoleUser: "user", conversation.RoleNotice: "user", conversation.RoleAssistant: "reply"}
	for i, r := range records {
		r.Ord, r.Time, r.Asker = i+1, time.Now().UTC().Truncate(time.Millisecond), &owner
		events = append(events, journal.Event{
			Kind: kernel.KindDecided, ID: fmt.Sprintf("conv#o%d:%s", i+1, suffix[r.Role]),
			Data: encoded(kernel.Decided{Source: conversation.SourceRecord, Value: encoded(r)}),
		})
	}
	events = append(events, journal.Event{Kind: kernel.KindEnded, Data: encoded(kernel.Ended{State: state})})
	for i := range events {
		events[i].Time = time.Now()
	}
	if err := w.store.Append(w.t.Context(), journal.Append{Stream: id, Events: events}); err != nil {
		w.t.Fatal(err)
	}
}

// words: what a reply in progress is told by, a long one and one that begins
// again too.
func (c *walk) words(t *testing.T) {
	text := "otherwise\n  repeat 40 \"" + strings.Repeat("a", 2000) + "\" 1s"
	hub := func() *conversation.Hub { return conversation.NewHub(conversation.HubConfig{}) }
	w := c.in(newWorldOn(t, journaltest.Wrap(memory.New()), text, hub()))
	id := w.start()
	early, leave := w.resume(id, "")
	w.turn(id, "go")
	time.Sleep(38500 * time.Millisecond)
	late, leaveLate := w.resume(id, "")
	leave()
	leaveLate()
	if !strings.Contains(early.text(), "event: delta") || !strings.Contains(late.text(), `"truncated":true`) {
		t.Errorf("no words: %.200s\n%.200s", early.text(), late.text())
	}
	w.rt.Close()
	next := c.in(newWorldOn(t, w.store, text, hub()))
	again, leave := next.resume(id, "")
	defer leave()
	if err := next.rt.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond)
	next.post(id, "/stop", `{"turn":1}`, 202)
	synctest.Wait()
	if !strings.Contains(again.text(), "event: reset") || !strings.Contains(again.text(), `"status":"interrupted"`) {
		t.Errorf("no reset: %.500s", again.text())
	}
}

// ends: all ways in which a stream ends, and the one in which none begins.
func (c *walk) ends(t *testing.T) {
	var revoked atomic.Bool
	w := c.in(newWorld(t, func(_ *kernel.Config, c *Config) {
		c.Authenticate = func(r *http.Request) (identity.Principal, error) {
			if revoked.Load() {
				return identity.Principal{}, errors.New("revoked")
			}
			return byToken(r)
		}
	}))
	id := w.start()
	w.say(id, "hello")
	w.end(id)
	over := request("GET", "/v1/conversations/"+id+"/events", "ann@acme", "")
	w.answers(over, 200)
	over.Header.Set("Last-Event-ID", "9.9")
	w.answers(over, 204)

	seen := map[string]*tape{}
	for _, end := range []string{"error", "reconnect"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		tape, done := w.stream(ctx, w.start())
		seen[end] = tape
		synctest.Wait()
		switch end {
		case "error":
			revoked.Store(true)
		case "reconnect":
			if err := w.gateway.Drain(ctx); err != nil {
				t.Fatal(err)
			}
		}
		<-done
		revoked.Store(false)
	}
	w.answers(request("GET", "/v1/conversations/"+w.start()+"/events", "ann@acme", ""), 200) // turned away
	for end, tape := range seen {
		if !strings.Contains(tape.text(), "event: "+end+"\n") {
			t.Errorf("no %s: %s", end, tape.text())
		}
	}
}
