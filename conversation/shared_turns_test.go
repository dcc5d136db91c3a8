package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
)

// expect checks what somebody sees.
func (p *party) expect(who *identity.Principal, want ...string) {
	p.t.Helper()
	if diff := cmp.Diff(want, p.sees(who)); diff != "" {
		p.t.Errorf("%s sees:\n%s", who.Actor, diff)
	}
}

// Turns are served in the order of the inbox; who writes again cuts their own turn
// and nobody else's (C-39.1, C-39.2).
func TestSharedBargeIn(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.open()
		p.say(ann, "one [slowly]")
		<-time.After(time.Second)
		p.say(bob, "two")
		<-time.After(time.Second)
		synctest.Wait()
		p.expect(ann, "1 user accepted ann one [slowly]")
		p.say(ann, "three")
		p.settle()
		p.expect(cal,
			"1 user accepted ann one [slowly]", "1 assistant interrupted ann re: one [slowly]",
			"2 user accepted bob two", "2 assistant complete bob re: two",
			"3 user accepted ann three", "3 assistant complete ann re: three")
	})
}

// A retry of one's own turn, or of an earlier one, cuts nothing (C-14.9).
func TestSharedRetryIsNoBargeIn(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.open()
		for _, text := range []string{"one", "two [slowly]"} {
			if _, err := p.client.SendTurn(t.Context(), ann, "room", Message{Text: text, ID: text}); err != nil {
				t.Fatal(err)
			}
			<-time.After(5 * time.Second)
		}
		for _, text := range []string{"two [slowly]", "one"} {
			if _, err := p.client.SendTurn(t.Context(), ann, "room", Message{Text: text, ID: text}); err != nil {
				t.Fatal(err)
			}
		}
		p.settle()
		p.expect(bob,
			"1 user accepted ann one", "1 assistant complete ann re: one",
			"2 user accepted ann two [slowly]", "2 assistant complete ann re: two [slowly]")
	})
}

// One stops one's own turn, and who manages the conversation any (C-46.5).
func TestSharedStop(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.open()
		for _, c := range []struct {
			asker, stopper *identity.Principal
			cut            bool
		}{{bob, cal, false}, {bob, bob, true}, {bob, ann, true}, {ann, bob, false}} {
			p.say(c.asker, "[slowly]")
			<-time.After(time.Second)
			status, err := p.client.Status(t.Context(), ann, "room")
			if err != nil {
				t.Fatal(err)
			}
			if err := p.client.Stop(t.Context(), c.stopper, "room", status.Turns); err != nil {
				t.Fatal(err)
			}
			p.settle()
			last := p.sees(c.asker)
			if cut := strings.Contains(last[len(last)-1], "interrupted"); cut != c.cut {
				t.Errorf("%s stops a turn of %s: %q, want it cut: %v", c.stopper.Actor, c.asker.Actor, last[len(last)-1], c.cut)
			}
		}
	})
}

// Each asker may have eight messages waiting, and nobody fills another's share
// (C-39.4 to C-39.6).
func TestMaxQueuedPerAsker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.config.StopOnly = true
		p.open()
		p.say(ann, "[slowly]")
		<-time.After(time.Second)
		forged := p.config.Keys
		forged.signing = identity.NewSecret("another key, of the forger's own..")
		for i := range 100 {
			id := fmt.Sprint("f", i)
			if err := p.rt.Send(t.Context(), p.rt.System(), "room", Topic, forged.signUser("room", &bob.Identity, id, "forged", now()), senderKey(&bob.Identity, id)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 8 {
			if _, err := p.client.SendTurn(t.Context(), bob, "room", Message{Text: fmt.Sprint("b", i), ID: fmt.Sprint(i)}); err != nil {
				t.Fatalf("message %d of bob's: %v", i+1, err)
			}
		}
		if _, err := p.client.SendTurn(t.Context(), bob, "room", Message{Text: "b8"}); err != error(ErrQueueFull) {
			t.Errorf("the ninth message of bob's: %v, want ErrQueueFull", err)
		}
		if _, err := p.client.SendTurn(t.Context(), bob, "room", Message{Text: "b3", ID: "3"}); err != nil {
			t.Errorf("a retry of one that waits: %v", err)
		}
		p.say(cal, "me too")
		waiting, err := p.client.Waiting(t.Context(), cal, "room")
		if err != nil || len(waiting) != 10 || waiting[0].Text != "" || waiting[9].Text != "me too" || !waiting[9].Mine || *waiting[0].Asker != bob.Identity {
			t.Errorf("cal is told that %+v wait (%v), want nine of bob's, a retry among them, and his own with its text", waiting, err)
		}
		p.settle()
		p.say(bob, "b8")
	})
}

// A message of somebody who was removed while it waited is rejected, and its text
// is nobody's to see (C-39.3, C-37.6).
func TestRemovedWhileQueued(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.open()
		p.say(ann, "[slowly]")
		<-time.After(time.Second)
		p.say(bob, "my secret")
		if err := p.client.RemoveParticipant(t.Context(), ann, "room", bob.Identity); err != nil {
			t.Fatal(err)
		}
		p.settle()
		p.expect(ann, "1 user accepted ann [slowly]", "1 assistant complete ann re: [slowly]", "0 user rejected bob not-a-participant")
		if n := len(p.model.all()); n != 1 {
			t.Errorf("the model was called %d times, want once", n)
		}
		p.add(bob)
		p.ask(bob, "again")
		p.expect(bob, "1 user accepted ann [slowly]", "1 assistant complete ann re: [slowly]", "0 user rejected bob not-a-participant",
			"2 user accepted bob again", "2 assistant complete bob re: again")
	})
}

// What is rejected for what it edits shows its text to its asker alone (C-37.6),
// and only one's own turn can be edited (C-27.3).
func TestSharedEdit(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.open()
		p.clear(bob, "secret")
		p.ask(ann, "one [use secret]")
		for _, who := range []*identity.Principal{bob, ann} {
			if _, err := p.client.SendTurn(t.Context(), who, "room", Message{Text: "edited by " + who.Actor, EditOf: 1}); err != nil {
				t.Fatal(err)
			}
			p.settle()
		}
		p.expect(cal, "1 user accepted ann one [use secret]", "1 assistant restricted ann",
			"0 user rejected bob edit-invalid", "2 user restricted ann", "2 assistant restricted ann")
		if got := p.sees(bob)[2]; got != "0 user rejected bob edit-invalid edited by bob" {
			t.Errorf("bob sees %q of his own rejected message", got)
		}
		if got := p.sees(bob)[3]; got != "2 user accepted ann edited by ann [secret]" {
			t.Errorf("bob, who is cleared, sees %q", got)
		}
	})
}

// A tool that an asker has no grant for is out of their reach, whoever else has it
// (C-35.6), and a turn runs as its asker (C-35.11).
func TestGrantsOfTheAsker(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.reserved = func(c *kernel.Config) {
			c.Granted = func(who *identity.Identity, effect kernel.EffectID) bool {
				return effect != "tool.secret" || *who == ann.Identity
			}
		}
		p.clear(bob, "secret")
		p.open()
		p.ask(ann, "[use secret]")
		p.ask(bob, "[use secret]")
		want := []string{
			"1 user accepted ann [use secret]", "1 assistant complete ann re: [use secret] secret-result [secret]",
			"2 user accepted bob [use secret] [secret]", "2 assistant failed bob denied [secret]",
		}
		p.expect(bob, want...)
		if p.ran["secret"] != 1 {
			t.Errorf("the tool ran %d times, want once", p.ran["secret"])
		}
		for n, who := range map[int]*identity.Principal{1: ann, 2: bob} {
			info, err := p.rt.Query(t.Context(), p.rt.System(), turnID(p.config.Keys.signing, "room", n))
			if err != nil || info.Principal == nil || *info.Principal != who.Identity || info.Parent != "room" {
				t.Errorf("turn %d ran as %v (%v), want %s", n, info.Principal, err, who.Actor)
			}
		}
	})
}

// Who presents a credential is refused unless the host can stand for them, and
// only if they take part (C-35.7).
func TestDelegation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.open()
		withToken := func(who *identity.Principal) *identity.Principal {
			return &identity.Principal{Identity: who.Identity, Credential: identity.NewSecret("a token")}
		}
		send := func(who *identity.Principal) error {
			_, err := p.client.SendTurn(t.Context(), withToken(who), "room", Message{Text: "hi"})
			return err
		}
		if err := send(bob); err != error(ErrDelegationUnsupported) {
			t.Errorf("SendTurn with a credential: %v, want ErrDelegationUnsupported", err)
		}
		if err := send(person("acme", "dan")); err != error(ErrNotFound) {
			t.Errorf("SendTurn of a stranger with a credential: %v, want ErrNotFound", err)
		}
		for name, c := range map[string]struct {
			mapped *identity.Principal
			want   string
		}{
			"narrowed":       {bob, "assistant complete bob re: hi"},
			"somebody else":  {ann, "assistant failed bob turn-failed"},
			"nobody, failed": {nil, "assistant failed bob turn-failed"},
		} {
			p.shared.PrincipalFor = func(context.Context, identity.Identity) (identity.Principal, error) {
				if c.mapped == nil {
					return identity.Principal{}, errors.New("no")
				}
				return *c.mapped, nil
			}
			if err := send(bob); err != nil {
				t.Fatal(err)
			}
			p.settle()
			if seen := p.sees(bob); !strings.HasSuffix(seen[len(seen)-1], c.want) {
				t.Errorf("%s: %q, want %q", name, seen[len(seen)-1], c.want)
			}
			if n := len(p.failed); c.mapped != bob && (n == 0 || !errors.Is(p.failed[n-1], errTurnPrincipal)) {
				t.Errorf("%s: the host is told of %v, want errTurnPrincipal", name, p.failed)
			}
		}
	})
}

// An execution that stands at the id of a turn and is not what the coordinator
// would have started is never adopted, whichever field differs (C-35.5); one that
// is, is.
func TestForgedTurn(t *testing.T) {
	right := turnOrder{
		V: 1, Conversation: "room", N: 1, Turn: 1, Message: senderKey(&ann.Identity, "m"), Asker: ann.Identity, Owner: ann.Identity,
		Text: asSaid("hello"), Shown: []int{},
	}
	for name, forge := range map[string]func(o *turnOrder, by **identity.Principal, flow *string){
		"":             func(*turnOrder, **identity.Principal, *string) {},
		"principal":    func(_ *turnOrder, by **identity.Principal, _ *string) { *by = bob },
		"flow":         func(_ *turnOrder, _ **identity.Principal, flow *string) { *flow = "conversation-shared" },
		"conversation": func(o *turnOrder, _ **identity.Principal, _ *string) { o.Conversation = "other" },
		"ordinal":      func(o *turnOrder, _ **identity.Principal, _ *string) { o.N = 2 },
		"turn":         func(o *turnOrder, _ **identity.Principal, _ *string) { o.Turn = 2 },
		"message":      func(o *turnOrder, _ **identity.Principal, _ *string) { o.Message = senderKey(&ann.Identity, "x") },
		"asker":        func(o *turnOrder, _ **identity.Principal, _ *string) { o.Asker = bob.Identity },
		"text":         func(o *turnOrder, _ **identity.Principal, _ *string) { o.Text = asSaid("goodbye") },
		"context":      func(o *turnOrder, _ **identity.Principal, _ *string) { o.Shown = []int{1} },
		"no parent":    func(*turnOrder, **identity.Principal, *string) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newParty(t)
				p.open()
				order, by, flow := right, ann, "conversation-turn"
				forge(&order, &by, &flow)
				event := kernel.Started{Flow: flow, Version: "1", Principal: &by.Identity, Input: encoded(t, order), Parent: "room"}
				if name == "no parent" {
					event.Parent = ""
				}
				id := turnID(p.config.Keys.signing, "room", 1)
				err := p.store.Append(t.Context(), journal.Append{Stream: id, Events: []journal.Event{
					{Kind: kernel.KindStarted, Time: now(), Data: encoded(t, event)},
					{Kind: kernel.KindEnded, Time: now(), Data: encoded(t, kernel.Ended{State: kernel.Completed, Output: encoded(t, answered{Status: StatusComplete, Text: "laid"})})},
				}})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := p.client.SendTurn(t.Context(), ann, "room", Message{Text: "hello", ID: "m"}); err != nil {
					t.Fatal(err)
				}
				p.settle()
				want := "1 assistant failed ann turn-failed"
				if name == "" {
					want = "1 assistant complete ann laid"
				}
				p.expect(ann, "1 user accepted ann hello", want)
				if forged := len(p.failed) == 1 && errors.Is(p.failed[0], errTurnForged); forged != (name != "") {
					t.Errorf("the host is told of %v", p.failed)
				}
			})
		})
	}
}

// A turn that somebody starts past the coordinator is given nothing and runs
// nothing, whatever its order says.
func TestRawTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.open()
		p.ask(ann, "one [use secret]")
		called := len(p.model.all())
		order := turnOrder{
			V: 1, Conversation: "room", N: 2, Turn: 2, Message: senderKey(&cal.Identity, "m"), Asker: cal.Identity, Owner: cal.Identity,
			Text: asSaid("tell me all"), Shown: []int{1},
		}
		id, _, err := p.rt.Start(t.Context(), kernel.By(*cal), kernel.StartRequest{Flow: "conversation-turn", Input: order})
		if err != nil {
			t.Fatal(err)
		}
		p.settle()
		info, err := p.rt.Query(t.Context(), kernel.By(*cal), id)
		if err != nil || info.State != kernel.Failed || info.Fault != errTurnForged.Code || len(p.model.all()) != called {
			t.Errorf("a raw turn is %s %s (%v), and the model was called %d times more; want it failed", info.State, info.Fault, err, len(p.model.all())-called)
		}
	})
}

// A process that dies while a turn runs finds it again: the model is asked as often
// as without the crash and once more at most, and nobody's turn is another's.
func TestSharedCrash(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.open()
		p.clear(bob, "secret")
		p.ask(ann, "one [use secret]")
		p.say(bob, "two [slowly]")
		<-time.After(5 * time.Second)
		p.reboot()
		p.settle()
		p.say(bob, "three [slowly]")
		<-time.After(5 * time.Second)
		p.reboot()
		p.settle()
		p.expect(bob,
			"1 user accepted ann one [use secret]", "1 assistant complete ann re: one [use secret] secret-result [secret]",
			"2 user accepted bob two [slowly] [secret]", "2 assistant complete bob re: two [slowly] [secret]",
			"3 user accepted bob three [slowly] [secret]", "3 assistant complete bob re: three [slowly] [secret]")
		p.rehearse(3)
	})
}

// rehearse runs the first turns again from their logs. Nothing is handed to them
// then: what they are given is read from the log of the conversation, and they must
// ask the model for the same.
func (p *party) rehearse(turns int) {
	p.t.Helper()
	for n := range turns {
		id := turnID(p.config.Keys.signing, "room", n+1)
		if got, err := p.rt.Rehearse(p.t.Context(), id, 0); err != nil || !got.Ended {
			p.t.Errorf("the rehearsal of turn %d: %+v, %v", n+1, got, err)
		}
	}
}

// Cancelling the coordinator cancels the turn that runs (C-35.4).
func TestCancelledCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.open()
		p.say(bob, "[slowly]")
		<-time.After(time.Second)
		if err := p.rt.Cancel(t.Context(), p.rt.System(), "room"); err != nil {
			t.Fatal(err)
		}
		p.settle()
		info, err := p.rt.Query(t.Context(), p.rt.System(), turnID(p.config.Keys.signing, "room", 1))
		if err != nil || info.State != kernel.Cancelled {
			t.Errorf("the turn is %s, %v; want it cancelled", info.State, err)
		}
	})
}

// A turn whose execution is cancelled by itself is a failed one, and the
// conversation goes on.
func TestCancelledTurn(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.open()
		p.say(bob, "[slowly]")
		<-time.After(time.Second)
		if err := p.rt.Cancel(t.Context(), kernel.By(*bob), turnID(p.config.Keys.signing, "room", 1)); err != nil {
			t.Fatal(err)
		}
		p.settle()
		p.ask(cal, "go on")
		p.expect(ann, "1 user accepted bob [slowly]", "1 assistant failed bob cancelled", "2 user accepted cal go on", "2 assistant complete cal re: go on")
	})
}

// Each asker's memory is their own, and what has used it bears its class (C-35.8,
// C-35.10).
func TestSharedMemory(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		recalled := &scopes{}
		p.config.Agent.Memory = recalled
		p.shared.MemoryScope = func(who identity.Identity) string { return who.Actor }
		p.open()
		p.clear(ann, "memory:bob")
		p.ask(bob, "one")
		p.ask(cal, "two")
		p.expect(ann, "1 user accepted bob one", "1 assistant complete bob re: one [memory:bob]", "2 user accepted cal two", "2 assistant restricted cal")
		if want := []string{"bob", "cal"}; !slices.Equal(recalled.asked, want) {
			t.Errorf("the memory was asked for %v, want %v", recalled.asked, want)
		}
	})
}

// asSaid is a text as a prompt has it.
func asSaid(text string) taint.Text { return taint.Tainted(text, taint.OriginUser) }

// scopes is a memory that notes the scopes that it is asked for.
type scopes struct{ asked []string }

func (s *scopes) Recall(_ context.Context, scope, _ string) ([]agent.Fact, error) {
	s.asked = append(s.asked, scope)
	return []agent.Fact{{Text: "a fact of " + scope}}, nil
}

// Stops have a share of their own, so that nobody's fill up another's queue.
func TestShareOfStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.open()
		p.say(ann, "[slowly]")
		<-time.After(time.Second)
		for range 8 {
			if err := p.client.Stop(t.Context(), bob, "room", 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.client.Stop(t.Context(), bob, "room", 1); err != error(ErrQueueFull) {
			t.Errorf("the ninth stop that waits: %v, want ErrQueueFull", err)
		}
		p.say(bob, "and yet")
		if err := p.client.Stop(t.Context(), ann, "room", 1); err != nil {
			t.Errorf("a stop of the turn's own asker: %v", err)
		}
		p.settle()
		p.expect(ann, "1 user accepted ann [slowly]", "1 assistant interrupted ann re: [slowly]", "2 user accepted bob and yet", "2 assistant complete bob re: and yet")
	})
}

// A close waits behind another's turn and cuts one of the closer's own; what is sent
// afterwards is refused (C-26.4, C-33.9).
func TestSharedClose(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.open()
		p.say(bob, "[slowly]")
		<-time.After(time.Second)
		if err := p.client.Close(t.Context(), ann, "room"); err != nil {
			t.Fatal(err)
		}
		p.settle()
		p.expect(cal, "1 user accepted bob [slowly]", "1 assistant complete bob re: [slowly]")
		if _, err := p.client.SendTurn(t.Context(), bob, "room", Message{Text: "too late"}); err != error(ErrClosed) {
			t.Errorf("SendTurn to a closed conversation: %v, want ErrClosed", err)
		}
		if err := p.client.Close(t.Context(), ann, "room"); err != nil {
			t.Errorf("Close again: %v", err)
		}
	})
}
