package conversation

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
)

func runtimeWith(t *testing.T, policy kernel.Policy) *kernel.Runtime {
	t.Helper()
	rt, err := kernel.New(kernel.Config{Store: memory.New(), Policy: policy, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rt.Close)
	return rt
}

// C-24.1, C-24.2: each operation but start must be closed to all but the owner.
func TestNewClientChecksThePolicy(t *testing.T) {
	good := ownerScoped(t)
	closed := runtimeWith(t, good)
	for _, op := range kernel.Operations() {
		for _, scope := range []kernel.Scope{kernel.ScopeOwner, kernel.ScopeTenant, kernel.ScopeAny, kernel.ScopeDeny} {
			rules := good.Scopes()
			rules[op] = scope
			policy, err := kernel.ExecutionAccessPolicy(rules)
			if err != nil {
				t.Fatal(err)
			}
			want := op == kernel.OpStart || scope == kernel.ScopeOwner || scope == kernel.ScopeDeny
			// As the policy that is named, and as the one in force.
			_, named := NewClient(ClientConfig{Runtime: closed, Keys: testKeys(t), Policy: &policy, RuntimePolicyIsOwnerScoped: true})
			_, inForce := NewClient(ClientConfig{Runtime: runtimeWith(t, policy), Keys: testKeys(t), Policy: &good})
			if (named == nil) != want || (inForce == nil) != want {
				t.Errorf("scope %q of %q: %v, and in force %v; want accepted = %v", scope, op, named, inForce, want)
			}
		}
	}
	reference, unguarded := kernel.ReferencePolicy(), kernel.Unguarded()
	for name, test := range map[string]struct {
		config ClientConfig
		want   bool
	}{
		"nothing said":                        {ClientConfig{Runtime: closed}, false},
		"the reference policy":                {ClientConfig{Runtime: closed, Policy: &reference}, false},
		"the word, for what shows no scopes":  {ClientConfig{Runtime: runtimeWith(t, unguarded), RuntimePolicyIsOwnerScoped: true}, true},
		"no word, for what shows no scopes":   {ClientConfig{Runtime: runtimeWith(t, unguarded), Policy: &unguarded}, false},
		"the word, against what can be seen":  {ClientConfig{Runtime: runtimeWith(t, reference), RuntimePolicyIsOwnerScoped: true}, false},
		"the word, for a runtime that agrees": {ClientConfig{Runtime: closed, RuntimePolicyIsOwnerScoped: true}, true},
		"no runtime":                          {ClientConfig{Policy: &good}, false},
		"a negative limit":                    {ClientConfig{Runtime: closed, Policy: &good, MaxTurnChars: -1}, false},
	} {
		test.config.Keys = testKeys(t)
		if c, err := NewClient(test.config); (err == nil) != test.want || (c != nil) != test.want {
			t.Errorf("%s: NewClient = %v, %v; want accepted = %v", name, c, err, test.want)
		}
	}
	if c, err := NewClient(ClientConfig{Runtime: closed, Policy: &good}); err == nil || c != nil {
		t.Errorf("without keys: NewClient = %v, %v; want a refusal", c, err)
	}
}

// C-22.2, C-22.3: two starts with one id are one conversation, the owner's
// repeat succeeds, anybody else's is the uniform refusal.
func TestStartIsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(t)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if id, err := w.client.Start(t.Context(), ann, "Room-1.a_b"); err != nil || id != "Room-1.a_b" {
					t.Errorf("Start = %q, %v", id, err)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		for name, stranger := range strangers {
			if _, err := w.client.Start(t.Context(), stranger, "Room-1.a_b"); err != error(ErrNotFound) {
				t.Errorf("Start of a taken id by %s: %v; want ErrNotFound", name, err)
			}
		}
		if _, err := w.client.Start(t.Context(), person("acme", ""), ""); err != error(ErrNotFound) {
			t.Errorf("Start by an empty actor: %v; want ErrNotFound", err)
		}
		for _, id := range []string{".x", "a~b", "a::b", "__parley_x", "inbox:x", strings.Repeat("x", 129), "a b", "\xff"} {
			if _, err := w.client.Start(t.Context(), ann, id); !errors.Is(err, ErrInvalidID) {
				t.Errorf("Start(%.20q) = %v; want ErrInvalidID", id, err)
			}
		}
		if id, err := w.client.Start(t.Context(), ann, strings.Repeat("x", 128)); err != nil || len(id) != 128 {
			t.Errorf("Start of an id of 128: %v", err)
		}
		if id, err := w.client.Start(t.Context(), ann, ""); err != nil || len(id) != 26 {
			t.Errorf("Start without id = %q, %v; want 26 characters", id, err)
		}
		synctest.Wait()
	})
}

// C-12.9, C-12.10, T26, T27: a retry is one turn; without an id each send is a
// turn of its own and its random id is returned.
func TestRetryIsOneTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(t)
		id, err := w.client.Start(t.Context(), ann, "")
		if err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{}
		for _, messageID := range []string{"m1", "m1", "", "m1", "", "m2"} {
			got, err := w.client.SendTurn(t.Context(), ann, id, Message{Text: "hello", ID: messageID})
			if err != nil || messageID != "" && got != messageID || messageID == "" && len(got) != 26 {
				t.Errorf("SendTurn with id %q = %q, %v", messageID, got, err)
			}
			ids[got] = true
			synctest.Wait()
		}
		info, err := w.client.Status(t.Context(), ann, id)
		if err != nil || info.Turns != 4 || len(ids) != 4 {
			t.Errorf("Status = %+v, %v with ids %v; want 4 turns of 4 ids", info, err, ids)
		}
	})
}

// C-12.13: bounds of a turn, to a caller who may send.
func TestTurnBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(t)
		w.client.maxTurnChars = 10
		id, err := w.client.Start(t.Context(), ann, "")
		if err != nil {
			t.Fatal(err)
		}
		before := w.store.Counts().Appends
		for _, test := range []struct {
			message Message
			want    TurnFault
		}{
			{Message{}, TextEmpty},
			{Message{Text: strings.Repeat("é", 11)}, TextTooLong},
			{Message{Text: "a\xffb"}, TextNotUTF8},
			{Message{Text: "a", ID: strings.Repeat("m", 257)}, MessageIDBad},
			{Message{Text: "a", ID: "\xff"}, MessageIDBad},
			{Message{Text: "a", ID: "m\x00"}, MessageIDBad},
			{Message{Text: "a", EditOf: -1}, EditOfBad},
			{Message{Text: "a", EditOf: 1 << 53}, EditOfBad}, // would be another number when it is signed
		} {
			_, err := w.client.SendTurn(t.Context(), ann, id, test.message)
			fault, ok := errors.AsType[*TurnError](err)
			if !errors.Is(err, ErrInvalidTurn) || !ok || fault.Fault != test.want {
				t.Errorf("SendTurn(%.40v) = %v; want %s", test.message, err, test.want)
			}
		}
		for _, turn := range []int{0, -1, 1 << 53} {
			err := w.client.Stop(t.Context(), ann, id, turn)
			if fault, ok := errors.AsType[*TurnError](err); !ok || fault.Fault != TurnBad {
				t.Errorf("Stop(%d) = %v; want %s", turn, err, TurnBad)
			}
		}
		if n := w.store.Counts().Appends; n != before {
			t.Errorf("%d appends of refused turns", n-before)
		}
		for _, text := range []string{strings.Repeat("é", 10), " ", "\x00"} {
			if _, err := w.client.SendTurn(t.Context(), ann, id, Message{Text: text, ID: strings.Repeat("m", 256)}); err != nil {
				t.Errorf("SendTurn(%q) = %v", text, err)
			}
		}
		synctest.Wait()
	})
}

// C-22.8, C-26.3, C-26.5: after the close a send is refused as closed, a close
// is no error, and reading goes on.
func TestClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(t)
		id, err := w.client.Start(t.Context(), ann, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.client.SendTurn(t.Context(), ann, id, Message{Text: "hello"}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := w.client.Close(t.Context(), ann, id); err != nil {
				t.Errorf("Close: %v", err)
			}
			synctest.Wait()
		}
		if _, err := w.client.SendTurn(t.Context(), ann, id, Message{Text: "more"}); err != error(ErrClosed) {
			t.Errorf("SendTurn after the close: %v; want ErrClosed", err)
		}
		if _, err := w.client.SendTurn(t.Context(), person("acme", "bob"), id, Message{Text: "more"}); err != error(ErrNotFound) {
			t.Errorf("SendTurn of a stranger after the close: %v; want ErrNotFound", err)
		}
		info, err := w.client.Status(t.Context(), ann, id)
		if want := (Info{ID: id, State: StateClosed, Turns: 1}); err != nil || info != want {
			t.Errorf("Status = %+v, %v; want %+v", info, err, want)
		}
		if got := w.all(id, HistoryOptions{}); len(got) != 2 {
			t.Errorf("History = %v", texts(got))
		}
		if again, err := w.client.Start(t.Context(), ann, id); err != nil || again != id {
			t.Errorf("Start of a closed id = %q, %v; want the existing one", again, err)
		}
	})
}

// At most 256 messages wait in a conversation; a retry of a delivered message
// does not count (C-39.6), a close has room of its own, and the journal is not
// read for it while the inbox is short.
func TestQueueBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(t)
		id, err := w.client.Start(t.Context(), ann, "")
		if err != nil {
			t.Fatal(err)
		}
		send := func(messageID string) error {
			_, err := w.client.SendTurn(t.Context(), ann, id, Message{Text: "hello", ID: messageID})
			return err
		}
		for i := range 300 { // the body keeps up
			if err := send(fmt.Sprint("m", i)); err != nil {
				t.Fatalf("send %d: %v", i, err)
			}
			synctest.Wait()
		}
		for i := range 300 { // T34: known messages, sent again, wait for nothing
			if err := send(fmt.Sprint("m", i)); err != nil {
				t.Fatalf("retry %d: %v", i, err)
			}
		}
		synctest.Wait()
		if err := send("one more"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()

		w.rt.Close() // from here on nobody consumes; a runtime without the flow takes messages in
		rt, err := kernel.New(kernel.Config{Store: w.store, Policy: ownerScoped(t), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer rt.Close()
		w.client.runtime = rt
		for i := range maxWaiting {
			if err := send(fmt.Sprint("waits", i)); err != nil {
				t.Fatalf("send %d: %v", i, err)
			}
		}
		synctest.Wait()
		for _, messageID := range []string{"", "x"} {
			if err := send(messageID); err != error(ErrQueueFull) {
				t.Errorf("send of one more: %v; want ErrQueueFull", err)
			}
		}
		// C-22.10: stops have room beside the messages, and however many there are
		// they leave some for a close.
		for range stopReserve {
			if err := w.client.Stop(t.Context(), ann, id, 1); err != nil {
				t.Errorf("Stop of a full queue: %v", err)
			}
		}
		for range 20 {
			if err := w.client.Stop(t.Context(), ann, id, 1); err != error(ErrQueueFull) {
				t.Errorf("Stop number %d: %v; want ErrQueueFull", stopReserve+1, err)
			}
		}
		for range closeReserve - stopReserve {
			if err := w.client.Close(t.Context(), ann, id); err != nil {
				t.Errorf("Close of a full queue: %v", err)
			}
		}
		if err := w.client.Close(t.Context(), ann, id); err != error(ErrQueueFull) {
			t.Errorf("Close number %d: %v; want ErrQueueFull", closeReserve-stopReserve+1, err)
		}
		// C-22.6: what cannot go on shows as failed.
		if info, err := w.client.Status(t.Context(), ann, id); err != nil || info.State != StateFailed {
			t.Errorf("Status of a stuck conversation = %+v, %v; want failed", info, err)
		}
	})
}

// The bound of the queue costs a send one point read, in a long inbox too.
func TestQueueBoundIsCheap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(t)
		id, err := w.client.Start(t.Context(), ann, "")
		if err != nil {
			t.Fatal(err)
		}
		k, err := w.client.authorize(t.Context(), ann, id)
		if err != nil {
			t.Fatal(err)
		}
		for range maxWaiting + 50 {
			if _, err := w.client.SendTurn(t.Context(), ann, id, Message{Text: "hello"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		before := w.store.Counts()
		err = w.client.checkQueue(t.Context(), k, id, maxWaiting)
		if did := w.store.Counts().Since(before); err != nil || did.Heads != 1 || did.Reads != 0 {
			t.Errorf("checkQueue: %v after %+v; want one point read", err, did)
		}
	})
}

// A client that sends one message again and again, more often than the queue's
// bound looks, neither fills the queue nor locks the conversation for good; nor
// does that cost each send a walk over all of it (T34, C-5.4).
func TestRetryStormLocksNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(t)
		id, err := w.client.Start(t.Context(), ann, "")
		if err != nil {
			t.Fatal(err)
		}
		send := func(messageID string) {
			t.Helper()
			if _, err := w.client.SendTurn(t.Context(), ann, id, Message{Text: "hello", ID: messageID}); err != nil {
				t.Fatalf("send %q: %v", messageID, err)
			}
		}
		send("again")
		synctest.Wait()
		before := w.store.Counts()
		const storm = 20 * (maxWaiting + closeReserve)
		for range storm {
			send("again")
		}
		synctest.Wait()
		if did := w.store.Counts().Since(before); did.Reads > storm+storm/4 { // the body reads each that comes
			t.Errorf("%d retries cost %d reads", storm, did.Reads)
		}
		w.client.owners = owners{} // as in another process
		send("new")
		if err := w.client.Close(t.Context(), ann, id); err != nil {
			t.Errorf("Close: %v", err)
		}
		synctest.Wait()
		if info, err := w.client.Status(t.Context(), ann, id); err != nil || info.State != StateClosed || info.Turns != 2 {
			t.Errorf("Status = %+v, %v; want closed after 2 turns", info, err)
		}
	})
}

// C-2.6: a credential is in nothing that is stored.
func TestCredentialIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(t)
		w.store.Record()
		caller := *ann
		caller.Credential = identity.NewSecret("parley_credential")
		id, err := w.client.Start(t.Context(), &caller, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.client.SendTurn(t.Context(), &caller, id, Message{Text: "hello"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if stored := string(encoded(t, w.store.Recorded())); strings.Contains(stored, "parley_credential") || !strings.Contains(stored, "hello") {
			t.Error("the credential is stored, or nothing is")
		}
	})
}
