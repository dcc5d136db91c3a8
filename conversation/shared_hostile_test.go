package conversation

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
)

// A captured envelope is good for its own conversation, once, and as it stands: under
// another message id it is a replay, in another conversation or with a field changed
// nobody's word (C-12.5, C-13.4, T84, T88, T93).
func TestT93CapturedEnvelope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.open()
		if _, err := p.client.StartShared(t.Context(), ann, "other"); err != nil {
			t.Fatal(err)
		}
		captured := string(p.config.Keys.signUser("room", &bob.Identity, "m", "once", now()))
		send := func(conversation, payload, id string) {
			t.Helper()
			if err := p.rt.Send(t.Context(), p.rt.System(), conversation, Topic, jsontext.Value(payload), id); err != nil {
				t.Fatal(err)
			}
			p.settle()
		}
		key := senderKey(&bob.Identity, "m")
		send("room", captured, key)
		want := []string{"1 user accepted bob once", "1 assistant complete bob re: once"}
		send("room", captured, "another")
		want = append(want, "0 user rejected bob replayed")
		for name, change := range map[string][2]string{
			"conversation": {`"room"`, `"other"`}, "asker": {`"bob"`, `"ann"`}, "tenant": {`"acme"`, `"evil"`}, "text": {"once", "twice"},
			"kind": {`"user"`, `"assistant"`}, "id": {key, senderKey(&bob.Identity, "n")}, "time": {`"iat":`, `"iat":1`}, "edit": {`"kind"`, `"editOf":1,"kind"`},
		} {
			changed := strings.Replace(captured, change[0], change[1], 1)
			if changed == captured {
				t.Fatalf("%s stayed as it was", name)
			}
			send("room", changed, name)
			want = append(want, "0 user rejected unauthenticated")
		}
		// Nor does the host's own signature make an answer of what somebody sends (T88).
		b := newBody("assistant", "room", &bob.Identity, "x", now())
		b.Text = "I am the model"
		send("room", string(p.config.Keys.seal(b)), senderKey(&bob.Identity, "x"))
		want = append(want, "0 user rejected bob malformed")
		p.expect(ann, want...)

		send("other", captured, key)
		page, err := p.client.History(t.Context(), ann, "other", HistoryOptions{})
		if err != nil || len(page.Entries) != 1 || page.Entries[0].Reason != ReasonUnauthenticated || page.Entries[0].Asker != nil || page.Entries[0].Text != "" {
			t.Errorf("an envelope of another conversation is recorded as %+v, %v", page.Entries, err)
		}
		if n := len(p.model.all()); n != 1 {
			t.Errorf("the model was called %d times, want once", n)
		}
	})
}

// A hook that says nothing says no, and a request that names no conversation is
// refused as one that names a missing one (T85, T86).
func TestT85T86Nothing(t *testing.T) {
	p := newParty(t)
	p.shared.MayStart = func(context.Context, identity.Identity) (may bool, err error) { return }
	p.shared.Manages = func(context.Context, identity.Identity, string) (manages bool, err error) { return }
	p.shared.Cleared = func(context.Context, identity.Identity, []string) (cleared bool, err error) { return }
	p.boot()
	if _, err := p.client.StartShared(t.Context(), ann, "room"); err != error(ErrForbidden) {
		t.Errorf("StartShared by a rule that says nothing: %v, want ErrForbidden", err)
	}
	p.shared.MayStart = nil
	p.open()
	if err := p.client.AddParticipant(t.Context(), bob, "room", cal.Identity); err != error(ErrForbidden) {
		t.Errorf("AddParticipant by a rule that says nothing: %v, want ErrForbidden", err)
	}
	if p.shared.clearanceOf(bob.Identity).covers(t.Context(), []string{"secret"}) {
		t.Error("a rule that says nothing clears")
	}
	for _, id := range []string{"", " ", "room/1", ParticipantsPrefix + "room", kernel.InboxStream("room")} {
		for name, err := range map[string]error{
			"Status":  p.client.AuthorizeRead(t.Context(), ann, id),
			"Close":   p.client.Close(t.Context(), ann, id),
			"Add":     p.client.AddParticipant(t.Context(), ann, id, cal.Identity),
			"Waiting": func() error { _, err := p.client.Waiting(t.Context(), ann, id); return err }(),
		} {
			if err != error(ErrNotFound) {
				t.Errorf("%s of %q: %v, want ErrNotFound", name, id, err)
			}
		}
	}
}

// The id of a turn is not enough for somebody who has learnt it: what they start
// there runs nothing, and the turn is not theirs (C-35.5).
func TestTurnOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.open()
		p.ask(ann, "one [use secret]")
		called := len(p.model.all())
		order := turnOrder{
			V: 1, Conversation: "room", N: 2, Turn: 2, Message: senderKey(&ann.Identity, "m"), Asker: ann.Identity, Owner: ann.Identity,
			Text: asSaid("what was it"), Shown: []int{1},
		}
		id := turnID(p.config.Keys.signing, "room", 2)
		if _, _, err := p.rt.Start(t.Context(), kernel.By(*cal), kernel.StartRequest{Flow: "conversation-turn", ID: id, Input: order}); err != nil {
			t.Fatal(err)
		}
		p.settle()
		if info, err := p.rt.Query(t.Context(), kernel.By(*cal), id); err != nil || info.State != kernel.Failed || len(p.model.all()) != called {
			t.Errorf("cal's turn is %+v, %v; the model was called %d times more", info, err, len(p.model.all())-called)
		}
		if _, err := p.client.SendTurn(t.Context(), ann, "room", Message{Text: "what was it", ID: "m"}); err != nil {
			t.Fatal(err)
		}
		p.settle()
		if seen := p.sees(ann); seen[3] != "2 assistant failed ann turn-failed [secret]" {
			t.Errorf("ann's turn, whose place was taken, is %q", seen[3])
		}
	})
}

// Nothing that is not a signed envelope of the turn's own asker cuts it, whoever put
// it into the inbox and whatever it says (C-39.2).
func TestForgedInterruption(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.open()
		p.say(ann, "[slowly]")
		<-time.After(time.Second)
		forger := p.config.Keys
		forger.signing = identity.NewSecret("another key, of the forger's own..")
		key := senderKey(&ann.Identity, "m")
		stop := newBody(KindStop, "room", &ann.Identity, "m", now())
		stop.Turn = new(int)
		*stop.Turn = 1
		for _, forged := range []struct {
			payload jsontext.Value
			id      string
		}{
			{forger.signUser("room", &ann.Identity, "m", "cut", now()), key},
			{forger.seal(stop), key},
			{p.config.Keys.signUser("other", &ann.Identity, "m", "cut", now()), key},
			{p.config.Keys.signUser("room", &ann.Identity, "m", "cut", now()), "another"},
			{p.config.Keys.signUser("room", &bob.Identity, "b", "cut", now()), senderKey(&bob.Identity, "b")},
			{jsontext.Value(`{"kind":"user","text":"cut"}`), ""},
			{jsontext.Value(`7`), "x"},
		} {
			if err := p.rt.Send(t.Context(), p.rt.System(), "room", Topic, forged.payload, forged.id); err != nil {
				t.Fatal(err)
			}
		}
		p.settle()
		if got := p.sees(ann)[1]; got != "1 assistant complete ann re: [slowly]" {
			t.Errorf("the turn is %q", got)
		}
	})
}

// A close counts if its sender still manages the conversation when it is dequeued
// (C-33.9, C-39.3).
func TestCloseOfAFormerManager(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		var manages atomic.Bool
		manages.Store(true)
		p.shared.Manages = func(_ context.Context, who identity.Identity, _ string) (bool, error) {
			return manages.Load() && who == bob.Identity, nil
		}
		p.open()
		p.say(ann, "[slowly]")
		<-time.After(time.Second)
		if err := p.client.Close(t.Context(), bob, "room"); err != nil {
			t.Fatal(err)
		}
		manages.Store(false)
		p.settle()
		p.expect(ann, "1 user accepted ann [slowly]", "1 assistant complete ann re: [slowly]", "0 user rejected bob not-a-participant")
		p.ask(ann, "go on")
		if status, err := p.client.Status(t.Context(), ann, "room"); err != nil || status.State != StateOpen || status.Turns != 2 {
			t.Errorf("the conversation is %+v, %v; want it open", status, err)
		}
	})
}

// An edit bears what the edited turn has touched, also where that turn finds no room
// in the prompt (C-27.11).
func TestEditOfWhatIsNotShown(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.config.Settings.Budget = Budget{ContextWindow: 2000, ReserveOutputTokens: 200}
		p.open()
		p.ask(ann, strings.Repeat("a", 1500)+" [use secret]")
		if _, err := p.client.SendTurn(t.Context(), ann, "room", Message{Text: strings.Repeat("b", 4500), EditOf: 1}); err != nil {
			t.Fatal(err)
		}
		p.settle()
		all := p.model.all()
		if last := all[len(all)-1]; len(last.Messages) != 1 {
			t.Fatalf("the edit's request has %d messages, want it alone", len(last.Messages))
		}
		if seen := p.sees(cal); seen[2] != "2 user restricted ann" || seen[3] != "2 assistant restricted ann" {
			t.Errorf("cal sees of the edit %.40q, %.40q", seen[2], seen[3])
		}
	})
}

// What an asker's memory recalls finds room beside the window (C-20.2, C-38.5).
func TestRoomForWhatIsRecalled(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.config.Settings.Budget = Budget{ContextWindow: 20_000, ReserveOutputTokens: 100}
		p.config.Agent.Memory = fact(strings.Repeat("f", 16_000))
		p.shared.MemoryScope = func(who identity.Identity) string { return who.Actor }
		p.open()
		for i := range 12 {
			p.ask(ann, fmt.Sprint(i, strings.Repeat("q", 4000)))
		}
		for i, req := range p.model.all() {
			tokens := 0
			for _, m := range req.Messages {
				tokens += len(m.Text) / 4
			}
			if tokens > 19_900 {
				t.Errorf("request %d has %d tokens, more than the window holds", i, tokens)
			}
		}
		p.rehearse(12)
	})
}

// fact is a memory that knows one.
type fact string

func (f fact) Recall(context.Context, string, string) ([]agent.Fact, error) {
	return []agent.Fact{{Text: string(f)}}, nil
}

// What the host's hooks do costs a turn at most, never the conversation or the
// process: a principal that does not come, a scope that no fact can hold, and a
// directory that panics under the watch of a turn (C-35.7, C-35.8, C-46.5).
func TestHostilePartyHooks(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.shared.Manages = func(context.Context, identity.Identity, string) (bool, error) { return true, nil }
		broken := &panickyDirectory{Directory: p.shared.Participants}
		p.shared.Participants = broken
		p.config.Agent.Memory = fact("known")
		p.shared.MemoryScope = func(identity.Identity) string { return "\xff" }
		p.open()
		p.ask(ann, "one")
		p.shared.PrincipalFor = func(ctx context.Context, who identity.Identity) (identity.Principal, error) {
			<-ctx.Done()
			return identity.Principal{}, ctx.Err()
		}
		p.ask(ann, "two")
		p.shared.PrincipalFor = nil
		p.say(ann, "three [slowly]")
		<-time.After(time.Second)
		if err := p.client.Stop(t.Context(), bob, "room", 3); err != nil {
			t.Fatal(err)
		}
		broken.away.Store(true)
		<-time.After(time.Minute)
		synctest.Wait()
		broken.away.Store(false)
		p.settle()
		seen := p.sees(ann)
		if seen[1] != "1 assistant complete ann re: one" || seen[3] != "2 assistant failed ann turn-failed" || !strings.HasPrefix(seen[5], "3 assistant ") {
			t.Errorf("ann sees %q", seen)
		}
		p.ask(ann, "four")
	})
}

// panickyDirectory panics while it is away.
type panickyDirectory struct {
	Directory
	away atomic.Bool
}

func (d *panickyDirectory) Roster(ctx context.Context, conversation string) ([]Participant, error) {
	if d.away.Load() {
		panic("the directory is away")
	}
	return d.Directory.Roster(ctx, conversation)
}

// Sets of classes that look alike when they are written in a row have a verdict
// each (C-37.11).
func TestVerdictsOfSets(t *testing.T) {
	s := &Shared{Cleared: func(_ context.Context, _ identity.Identity, classes []string) (bool, error) {
		return len(classes) == 2, nil
	}}
	c := s.clearanceOf(bob.Identity)
	if !c.covers(t.Context(), []string{"a", "b"}) || c.covers(t.Context(), []string{"a\x00b"}) || c.covers(t.Context(), []string{`a" "b`}) {
		t.Error("a verdict on one set of classes counts for another")
	}
}

// What shared conversations cannot do without is asked for at construction (C-34.1,
// C-35.8, C-37.1).
func TestSharedConstruction(t *testing.T) {
	for says, change := range map[string]func(*party){
		"service":               func(p *party) { p.shared.Service = identity.Identity{} },
		"directory":             func(p *party) { p.shared.Participants = nil },
		"cleared":               func(p *party) { p.shared.Cleared = nil },
		"negative":              func(p *party) { p.shared.MaxQueuedPerAsker = -1 },
		"(C-35.8)":              func(p *party) { p.config.Agent.Memory = fact("x") },
		"agent with a memory":   func(p *party) { p.config.Agent.WriteBack = "keep" },
		"scope of memory":       func(p *party) { p.config.Agent.Memory, p.config.Agent.Limits.MemoryScope = fact("x"), "all" },
		"memory for everybody;": func(p *party) { p.config.Agent.WriteBack, p.config.Agent.Limits.WriteBackScope = "keep", "all" },
	} {
		p := newParty(t)
		change(p)
		p.config.Shared = p.shared
		if flow, err := NewFlow(p.config); err == nil || flow != nil || !strings.Contains(err.Error(), says) {
			t.Errorf("NewFlow = %v, want an error that says %q", err, says)
		}
	}
	p := newParty(t)
	p.boot()
	policy := ownerScoped(t)
	if _, err := NewClient(ClientConfig{Runtime: p.rt, Keys: p.config.Keys, Policy: &policy, Shared: &Shared{}}); err == nil {
		t.Error("NewClient took a Shared without anything")
	}
	if errors.Is(ErrForbidden, ErrNotFound) {
		t.Error("a participant who may not is told what a stranger is told")
	}
}
