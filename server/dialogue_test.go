package server

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
)

// C-4.13, C-24.1, K13: the runtime behind the server refuses nobody's calls, the
// ids of other parts' streams, and colleagues at every door but the start.
func TestRuntimeIsClosed(t *testing.T) {
	store := memory.New()
	defer store.Close()
	var key [conversation.MinKeyBytes]byte
	keys, err := conversation.NewKeys(key[:])
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	flow, err := newFlow(Settings{}, keys, noModel{}, surroundings{}, log)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := newRuntime(store, flow, new(rights), log)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	start := func(caller kernel.Caller, id string) error {
		_, _, err := rt.Start(t.Context(), caller, kernel.StartRequest{Flow: conversation.DefaultFlowName, ID: id})
		return err
	}
	ann := kernel.By(identity.Principal{Identity: identity.Identity{Tenant: identity.Some("acme"), Actor: "ann"}})
	bob := kernel.By(identity.Principal{Identity: identity.Identity{Tenant: identity.Some("acme"), Actor: "bob"}})
	if err := start(kernel.Caller{}, "x"); !errors.Is(err, kernel.ErrForbidden) {
		t.Errorf("Start by nobody = %v, want ErrForbidden", err)
	}
	for _, id := range []string{"lease:browser", "conversation-participants:x", "inbox:x", "__parley_x"} {
		if err := start(ann, id); !errors.Is(err, kernel.ErrInvalid) {
			t.Errorf("Start(%q) = %v, want ErrInvalid", id, err)
		}
	}
	if err := start(ann, "x"); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func(context.Context) error{
		"Query":  func(ctx context.Context) error { _, err := rt.Query(ctx, bob, "x"); return err },
		"Cancel": func(ctx context.Context) error { return rt.Cancel(ctx, bob, "x") },
		"Send":   func(ctx context.Context) error { return rt.Send(ctx, bob, "x", conversation.Topic, []byte("{}"), "") },
	} {
		if err := do(t.Context()); !errors.Is(err, kernel.ErrForbidden) {
			t.Errorf("%s by a colleague = %v, want ErrForbidden", name, err)
		}
	}
	for op, scope := range rt.Policy().Scopes() {
		if op != kernel.OpStart && scope != kernel.ScopeOwner && scope != kernel.ScopeDeny {
			t.Errorf("%s is open to %q", op, scope)
		}
	}
}
