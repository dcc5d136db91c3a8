package conversation

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
)

// operations are all that a client can do to a conversation that exists.
var operations = []struct {
	name string
	call func(c *Client, ctx context.Context, caller *identity.Principal, id string) error
}{
	{"AuthorizeRead", (*Client).callAuthorizeRead},
	{"SendTurn", func(c *Client, ctx context.Context, caller *identity.Principal, id string) error {
		_, err := c.SendTurn(ctx, caller, id, Message{Text: "hello", ID: "m"})
		return err
	}},
	{"SendTurn of a bad text", func(c *Client, ctx context.Context, caller *identity.Principal, id string) error {
		_, err := c.SendTurn(ctx, caller, id, Message{Text: "", ID: strings.Repeat("m", 999)})
		if caller != nil && fmt.Sprint(err) == ErrInvalidTurn.Text+": text-empty" {
			return nil // who is admitted learns what is wrong (C-12.13)
		}
		return err
	}},
	{"History", func(c *Client, ctx context.Context, caller *identity.Principal, id string) error {
		_, err := c.History(ctx, caller, id, HistoryOptions{})
		return err
	}},
	{"Status", func(c *Client, ctx context.Context, caller *identity.Principal, id string) error {
		_, err := c.Status(ctx, caller, id)
		return err
	}},
	{"Tail", func(c *Client, ctx context.Context, caller *identity.Principal, id string) error {
		_, err := c.Tail(ctx, caller, id, nil)
		return err
	}},
	{"Follow", func(c *Client, ctx context.Context, caller *identity.Principal, id string) error {
		for _, err := range c.Follow(ctx, caller, id, nil) {
			return err
		}
		return nil
	}},
	{"Stop", func(c *Client, ctx context.Context, caller *identity.Principal, id string) error {
		return c.Stop(ctx, caller, id, 1)
	}},
	{"Stop of no turn", func(c *Client, ctx context.Context, caller *identity.Principal, id string) error {
		err := c.Stop(ctx, caller, id, 0)
		if caller != nil && fmt.Sprint(err) == ErrInvalidTurn.Text+": turn-invalid" {
			return nil
		}
		return err
	}},
	{"Close", (*Client).Close},
}

func (c *Client) callAuthorizeRead(ctx context.Context, caller *identity.Principal, id string) error {
	return c.AuthorizeRead(ctx, caller, id)
}

// strangers are callers who are not ann.
var strangers = map[string]*identity.Principal{
	"a delegate of the owner": {Identity: identity.Identity{
		Tenant: identity.Some("acme"), Actor: "ann", OnBehalfOf: identity.Some("ann"),
	}},
	"a colleague":                  person("acme", "bob"),
	"the same name, other tenant":  person("evil", "ann"),
	"the same name, no tenant":     {Identity: identity.Identity{Actor: "ann"}},
	"the same name, empty tenant":  person("", "ann"),
	"an empty actor":               person("acme", ""),
	"an actor too long to be true": person("acme", strings.Repeat("a", 257)),
	"nobody":                       nil,
}

// C-23.7, C-23.10, T83, T86, T87: every operation refuses every stranger with
// the same bare error, and asks the journal the same, whether the conversation
// exists or not. Nothing is written.
func TestRefusalsAreUniform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(t)
		id, err := w.client.Start(t.Context(), ann, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.client.AuthorizeRead(t.Context(), ann, id); err != nil { // it is known from now on
			t.Fatal(err)
		}
		synctest.Wait()
		for name, stranger := range strangers {
			for _, op := range operations {
				before := w.store.Counts()
				refused := op.call(w.client, t.Context(), stranger, id)
				between := w.store.Counts()
				missing := op.call(w.client, t.Context(), stranger, kernel.NewID())
				after := w.store.Counts()
				if refused != error(ErrNotFound) || missing != error(ErrNotFound) {
					t.Errorf("%s by %s: %#v, and of a missing conversation %#v; want the bare ErrNotFound", op.name, name, refused, missing)
				}
				there, gone := between.Since(before), after.Since(between)
				there.EventsRead, gone.EventsRead = 0, 0 // the calls are the same, not what they find
				if there != gone {
					t.Errorf("%s by %s asks the journal %+v, and of a missing conversation %+v", op.name, name, there, gone)
				}
				if after.Appends != before.Appends {
					t.Errorf("%s by %s wrote something", op.name, name)
				}
			}
		}
		if n := len(w.client.owners.byID); n != 1 { // C-23.8
			t.Errorf("the client remembers %d conversations; want the owner's one", n)
		}
		withToken := *ann
		withToken.Credential = identity.NewSecret("token")
		for _, op := range operations {
			if op.name == "Follow" {
				continue // it would wait for more
			}
			if err := op.call(w.client, t.Context(), &withToken, id); err != nil {
				t.Errorf("%s by the owner: %v", op.name, err)
			}
		}
		synctest.Wait()
	})
}

// C-23.4, C-23.5: a raw start that stamps somebody else, or nobody, or nothing,
// or a start of another flow, is nobody's conversation.
func TestConflictRefusesEverybody(t *testing.T) {
	w := newMemoryWorld(t)
	bob := person("acme", "bob")
	w.layFor("stamped-other", nil).start(nil).flush()
	lay := func(id string, started kernel.Started) {
		l := &laid{w: w, id: id}
		l.event(kernel.KindStarted, "", started).flush()
	}
	stamp := func(owner *identity.Identity) []byte { return encoded(t, Stamp(owner)) }
	lay("other", kernel.Started{Flow: DefaultFlowName, Principal: &bob.Identity, Input: stamp(&ann.Identity)})
	lay("nobody", kernel.Started{Flow: DefaultFlowName, Principal: &ann.Identity, Input: stamp(nil)})
	lay("by-nobody", kernel.Started{Flow: DefaultFlowName, Input: stamp(&ann.Identity)})
	lay("none", kernel.Started{Flow: DefaultFlowName, Principal: &ann.Identity})
	lay("junk", kernel.Started{Flow: DefaultFlowName, Principal: &ann.Identity, Input: []byte(`{"v":1,"owner":{"tenant":"acme","actor":"ann"},"x":1}`)})
	lay("flow", kernel.Started{Flow: "elsewhere", Principal: &ann.Identity, Input: stamp(&ann.Identity)})
	l := &laid{w: w, id: "no-start"}
	l.event(kernel.KindMessage, "", kernel.Started{Flow: DefaultFlowName, Principal: &ann.Identity, Input: stamp(&ann.Identity)}).flush()

	for _, id := range []string{"other", "nobody", "by-nobody", "none", "junk", "flow", "no-start", "missing"} {
		for name, caller := range map[string]*identity.Principal{"ann": ann, "bob": bob, "nobody": nil} {
			if err := w.client.AuthorizeRead(t.Context(), caller, id); err != error(ErrNotFound) {
				t.Errorf("AuthorizeRead(%s, %q) = %v; want ErrNotFound", name, id, err)
			}
		}
	}
}

// C-23.6: what nobody started is open to nobody alone, and to nobody at all
// where the runtime requires a principal.
func TestOwnerless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(t)
		id, err := w.client.Start(t.Context(), nil, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.client.SendTurn(t.Context(), nil, id, Message{Text: "hello"}); err != nil {
			t.Errorf("SendTurn by nobody: %v", err)
		}
		synctest.Wait()
		page, err := w.client.History(t.Context(), nil, id, HistoryOptions{})
		if err != nil || len(page.Entries) != 2 || page.Entries[0].Asker != nil {
			t.Errorf("History by nobody: %v, %v; want two records without asker", texts(page.Entries), err)
		}
		for name, caller := range map[string]*identity.Principal{"ann": ann, "an empty actor": {}} {
			if err := w.client.AuthorizeRead(t.Context(), caller, id); err != error(ErrNotFound) {
				t.Errorf("AuthorizeRead by %s: %v; want ErrNotFound", name, err)
			}
		}
	})
}

// C-11.7: no shape of an id reaches another stream.
func TestIDsOfOtherStreams(t *testing.T) {
	w := newMemoryWorld(t)
	l := w.lay("c").flush()
	l.rotate()
	for _, id := range []string{"", "c~1", "c~0", "c::d", "inbox:c", "__parley_c", ".c", "-c", "c\n", "c\x00", "ç", strings.Repeat("c", 129)} {
		before := w.store.Counts()
		err := w.client.AuthorizeRead(t.Context(), ann, id)
		if did := w.store.Counts().Since(before); err != error(ErrNotFound) || did.Reads+did.Heads > 0 {
			t.Errorf("AuthorizeRead(%.20q) = %v after %+v; want ErrNotFound without a read", id, err, did)
		}
	}
}

// C-23.8: a refused id may be started later; the memory of owners is bounded.
func TestOwnersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(t)
		if err := w.client.AuthorizeRead(t.Context(), ann, "later"); err != error(ErrNotFound) {
			t.Errorf("AuthorizeRead before the start: %v", err)
		}
		if _, err := w.client.Start(t.Context(), ann, "later"); err != nil {
			t.Fatal(err)
		}
		if err := w.client.AuthorizeRead(t.Context(), ann, "later"); err != nil {
			t.Errorf("AuthorizeRead after the start: %v", err)
		}
		synctest.Wait()
	})
	var o owners
	for i := range 3*maxOwners + 7 {
		o.add(fmt.Sprint(i), &known{})
	}
	_, newest := o.find(fmt.Sprint(3*maxOwners + 6))
	_, oldest := o.find(fmt.Sprint(2*maxOwners + 6))
	if len(o.byID) != maxOwners || len(o.ring) != maxOwners || !newest || oldest {
		t.Errorf("owners hold %d ids, the newest %v, an old one %v; want %d, true, false", len(o.byID), newest, oldest, maxOwners)
	}
}

// C-31.9, C-33.11: a journal that cannot be read refuses, and its error is not
// taken for a verdict.
func TestAuthorityFailsClosed(t *testing.T) {
	w := newMemoryWorld(t)
	w.lay("c").flush()
	w.store.OnRead(func(string) error { return journal.ErrClosed })
	for _, op := range operations {
		if err := op.call(w.client, t.Context(), ann, "c"); err == nil || err == error(ErrNotFound) {
			t.Errorf("%s without a journal: %v; want its error", op.name, err)
		}
	}
}

// Where the runtime's policy is tighter than the client, its refusal is the same
// uniform one (C-22.4, C-23.7).
func TestRuntimeRefusalIsUniform(t *testing.T) {
	scopes := map[kernel.Operation]kernel.Scope{}
	for _, op := range kernel.Operations() {
		scopes[op] = kernel.ScopeDeny
	}
	scopes[kernel.OpStart] = kernel.ScopeAny
	policy, err := kernel.ExecutionAccessPolicy(scopes)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := kernel.New(kernel.Config{
		Store: memory.New(), Policy: policy, Flows: []kernel.Flow{parrot()},
		Features: []kernel.Feature{kernel.Inbox, kernel.Continuations}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rt.Close)
	client, err := NewClient(ClientConfig{Runtime: rt, Keys: testKeys(t), Policy: &policy})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Start(t.Context(), ann, "talk"); err != nil {
		t.Fatal(err)
	}
	_, sent := client.SendTurn(t.Context(), ann, "talk", Message{Text: "hello"})
	_, status := client.Status(t.Context(), ann, "talk")
	for name, err := range map[string]error{
		"SendTurn": sent, "Status": status,
		"Stop": client.Stop(t.Context(), ann, "talk", 1), "Close": client.Close(t.Context(), ann, "talk"),
	} {
		if err != error(ErrNotFound) {
			t.Errorf("%s = %v; want %v", name, err, ErrNotFound)
		}
	}
}
