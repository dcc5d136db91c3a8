package kernel_test

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
)

// The matrix of C-7: four scopes by six callers, for each operation that is
// built; an operation that is not built is refused by construction.
func TestPolicyMatrix(t *testing.T) {
	principal := func(tenant, actor string, behalf identity.Field) kernel.Caller {
		return kernel.By(identity.Principal{Identity: identity.Identity{Tenant: identity.Some(tenant), Actor: actor, OnBehalfOf: behalf}})
	}
	callers := []struct {
		name   string
		caller kernel.Caller
		admits string // the scopes that admit it
	}{
		{"owner", principal("acme", "ann", identity.Field{}), "owner tenant any"},
		{"owner by delegate", principal("acme", "ann", identity.Some("zoe")), "owner tenant any"},
		{"same tenant", principal("acme", "bob", identity.Field{}), "tenant any"},
		{"other tenant", principal("else", "ann", identity.Field{}), "any"},
		{"no principal", kernel.Caller{}, "any"},
		{"system grant", kernel.Caller{}, "owner tenant any deny"},
	}
	for _, scope := range []kernel.Scope{kernel.ScopeOwner, kernel.ScopeTenant, kernel.ScopeAny, kernel.ScopeDeny} {
		for _, op := range []kernel.Operation{kernel.OpQuery, kernel.OpSend, kernel.OpCancel} {
			synctest.Test(t, func(t *testing.T) {
				policy, err := kernel.ExecutionAccessPolicy(map[kernel.Operation]kernel.Scope{op: scope})
				if err != nil {
					t.Fatal(err)
				}
				w := newWorld(t, kernel.Config{Effects: []kernel.Effect{echo}, Flows: []kernel.Flow{chatter(&counter{})}, Policy: policy})
				for i, c := range callers {
					id := fmt.Sprint("x", i)
					w.start("chatter", id, map[string]any{})
					if c.name == "system grant" {
						c.caller = w.rt.System()
					}
					switch op {
					case kernel.OpQuery:
						_, err = w.rt.Query(t.Context(), c.caller, id)
					case kernel.OpSend:
						err = w.rt.Send(t.Context(), c.caller, id, "in", quoted("m"), "")
					case kernel.OpCancel:
						err = w.rt.Cancel(t.Context(), c.caller, id)
					}
					want := strings.Contains(c.admits, string(scope))
					if got := err == nil; got != want || (!got && !errors.Is(err, kernel.ErrForbidden)) {
						t.Errorf("%s under scope %s by %s = %v; want admitted %v", op, scope, c.name, err, want)
					}
				}
			})
		}
	}
}

func TestPolicyDefaults(t *testing.T) { // C-7.4 to C-7.7
	got := kernel.ReferencePolicy().Scopes()
	for op, want := range map[kernel.Operation]kernel.Scope{
		kernel.OpStart: kernel.ScopeAny, kernel.OpQuery: kernel.ScopeTenant, kernel.OpSend: kernel.ScopeTenant,
		kernel.OpCancel: kernel.ScopeTenant, kernel.OpResume: kernel.ScopeTenant, kernel.OpFork: kernel.ScopeOwner,
		kernel.OpAnnotate: kernel.ScopeOwner, kernel.OpActAsOwner: kernel.ScopeOwner,
	} {
		if got[op] != want {
			t.Errorf("scope of %s = %s; want %s", op, got[op], want)
		}
	}
	if len(got) != len(kernel.Operations()) {
		t.Errorf("%d scopes; want one for each of %d operations", len(got), len(kernel.Operations()))
	}
	got[kernel.OpQuery] = kernel.ScopeAny
	if kernel.ReferencePolicy().Scopes()[kernel.OpQuery] != kernel.ScopeTenant {
		t.Error("the policy can be changed through Scopes")
	}
	for _, rules := range []map[kernel.Operation]kernel.Scope{{"walk": kernel.ScopeAny}, {kernel.OpQuery: "everyone"}} {
		if _, err := kernel.ExecutionAccessPolicy(rules); err == nil {
			t.Errorf("ExecutionAccessPolicy(%v) succeeded", rules)
		}
	}
}

// A principal that cannot act is refused everywhere, and nobody is where one
// is required (C-2.5, C-2.10, C-4.13).
func TestCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kernel.Config{
			Effects: []kernel.Effect{echo}, Flows: []kernel.Flow{chatter(&counter{})}, RequirePrincipal: true,
		})
		w.start("chatter", "x", map[string]any{})
		for name, caller := range map[string]kernel.Caller{
			"nobody":      {},
			"empty actor": kernel.By(identity.Principal{}),
			"long actor":  kernel.By(identity.Principal{Identity: identity.Identity{Actor: strings.Repeat("a", 257)}}),
		} {
			_, _, err := w.rt.Start(t.Context(), caller, kernel.StartRequest{Flow: "chatter"})
			if !errors.Is(err, kernel.ErrForbidden) {
				t.Errorf("Start by %s = %v; want ErrForbidden", name, err)
			}
			if err := w.rt.Send(t.Context(), caller, "x", "in", quoted("m"), ""); !errors.Is(err, kernel.ErrForbidden) {
				t.Errorf("Send by %s = %v; want ErrForbidden", name, err)
			}
		}
		if err := w.rt.Send(t.Context(), ann, "missing", "in", quoted("m"), ""); !errors.Is(err, kernel.ErrNotFound) {
			t.Errorf("Send to nothing = %v; want ErrNotFound", err)
		}
		if err := w.rt.Send(t.Context(), ann, kernel.InboxStream("x"), "in", quoted("m"), ""); !errors.Is(err, kernel.ErrNotFound) {
			t.Errorf("Send to a stream that is no execution = %v; want ErrNotFound", err)
		}
	})
}

// The longest identity that is valid can own, be listed and send (C-2.10).
func TestLongestIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kernel.Config{Effects: []kernel.Effect{echo}, Flows: []kernel.Flow{chatter(&counter{})}})
		long := strings.Repeat("\x01", identity.MaxFieldBytes) // six bytes each in JSON
		who := identity.Identity{Tenant: identity.Some(long), Actor: long, OnBehalfOf: identity.Some(long)}
		caller := kernel.By(identity.Principal{Identity: who})
		if _, _, err := w.rt.Start(t.Context(), caller, kernel.StartRequest{Flow: "chatter", ID: "x", Input: map[string]int{}}); err != nil {
			t.Fatalf("Start: %v", err)
		}
		if err := w.rt.Send(t.Context(), caller, "x", "in", quoted("m"), "id"); err != nil {
			t.Errorf("Send: %v", err)
		}
		if list, err := w.rt.Owned(t.Context(), who, "chatter", "", 10); len(list) != 1 || err != nil {
			t.Errorf("Owned = %v, %v; want one", list, err)
		}
	})
}

// What does not fit together is refused at construction (C-4.14, C-4.15).
func TestConstruction(t *testing.T) {
	good := chatter(&counter{})
	for name, config := range map[string]kernel.Config{
		"no features":       {Flows: []kernel.Flow{good}},
		"a flow twice":      {Flows: []kernel.Flow{good, good}, Features: good.Needs},
		"an effect twice":   {Effects: []kernel.Effect{echo, echo}},
		"an empty flow":     {Flows: []kernel.Flow{{}}},
		"a flow's slash":    {Flows: []kernel.Flow{{Name: "a/b", Version: "1", Run: good.Run}}},
		"an empty effect":   {Effects: []kernel.Effect{{}}},
		"Once with retries": {Effects: []kernel.Effect{{ID: "e", Run: echo.Run, Retry: kernel.Retry{Attempts: 2}}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, kernel.Config{})
			config.Store = w.store
			if rt, err := kernel.New(config); err == nil {
				rt.Close()
				t.Errorf("New with %s succeeded", name)
			}
		})
	}
	if _, err := kernel.New(kernel.Config{}); err == nil {
		t.Error("New without a store succeeded")
	}
}

// The recorded principal is who every generation acts as, and who the policy
// knows at the head, hot and cold (C-4.3, C-6.12).
func TestPrincipalOfLaterGenerations(t *testing.T) {
	for _, hot := range []int{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			owner, _ := ann.Identity()
			var asked counter
			w := newWorld(t, kernel.Config{
				Hot: hot, Effects: []kernel.Effect{echo},
				Granted: func(principal *identity.Identity, effect kernel.EffectID) bool {
					asked.add(string(effect))
					return principal != nil && *principal == owner
				},
				Flows: []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
					c.Receive("in")
					if _, err := c.Execute[string]("s", "echo", "x"); err != nil || c.Generation() == 3 {
						return nil, err
					}
					return nil, kernel.ContinueAsNew(nil)
				})},
			})
			w.start("f", "x", nil)
			for i := range 4 {
				w.sendBy(bob, "x", fmt.Sprint(i), "")
			}
			info, err := w.rt.Query(t.Context(), ann, "x~1")
			if err != nil || info.Generation != 3 || info.State != kernel.Completed || *info.Principal != owner || asked.count("echo") != 4 {
				t.Errorf("Hot %d: Query = %+v, %v after %d grants; want the end of generation 3 as ann", hot, info, err, asked.count("echo"))
			}
			if _, err := w.rt.Query(t.Context(), kernel.By(identity.Principal{Identity: identity.Identity{Tenant: identity.Some("evil"), Actor: "ann"}}), "x~3"); !errors.Is(err, kernel.ErrForbidden) {
				t.Errorf("Query of the head by a stranger = %v; want ErrForbidden", err)
			}
		})
	}
}
