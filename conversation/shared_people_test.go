package conversation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// names are the actors of the participants, as somebody is told them.
func (p *party) names(who *identity.Principal) []string {
	p.t.Helper()
	people, err := p.client.Participants(p.t.Context(), who, "room")
	if err != nil {
		p.t.Fatal(err)
	}
	var names []string
	for _, person := range people.Participants {
		names = append(names, person.Identity.Actor)
	}
	return names
}

// People are added, removed and added again, each request sees the set anew, and
// nothing is recorded where nothing changes (C-33.6, C-33.12).
func TestParticipants(t *testing.T) {
	p := newParty(t)
	p.open()
	remove := func(who *identity.Principal) {
		t.Helper()
		if err := p.client.RemoveParticipant(t.Context(), ann, "room", who.Identity); err != nil {
			t.Fatal(err)
		}
	}
	changes := func() int {
		events, err := p.store.ReadRange(t.Context(), ParticipantsPrefix+"room", 0, 100, journal.Forward)
		if err != nil {
			t.Fatal(err)
		}
		return len(events)
	}
	if got, want := p.names(cal), []string{"ann", "bob", "cal"}; !cmp.Equal(got, want) {
		t.Errorf("the participants are %v, want %v", got, want)
	}
	before := changes()
	p.add(bob, ann)
	remove(person("acme", "nobody"))
	if got := changes(); got != before {
		t.Errorf("%d changes are on record after nothing changed, want %d", got, before)
	}
	remove(bob)
	if _, err := p.client.History(t.Context(), bob, "room", HistoryOptions{}); err != error(ErrNotFound) {
		t.Errorf("History of who was removed: %v, want ErrNotFound", err)
	}
	p.add(bob)
	if _, err := p.client.History(t.Context(), bob, "room", HistoryOptions{}); err != nil {
		t.Errorf("History of who was added again: %v", err)
	}
	if got := changes(); got != before+2 {
		t.Errorf("%d changes are on record, want %d", got, before+2)
	}
	for _, stranger := range []*identity.Principal{
		person("acme", "dan"), person("other", "bob"),
		{Identity: identity.Identity{Tenant: identity.Some("acme"), Actor: "bob", OnBehalfOf: identity.Some("ann")}},
	} {
		if _, err := p.client.Status(t.Context(), stranger, "room"); err != error(ErrNotFound) {
			t.Errorf("Status of %+v: %v, want ErrNotFound", stranger.Identity, err)
		}
	}
}

// Whoever takes no part gets the uniform refusal of everything (C-33.7).
func TestStrangersAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.open()
		if _, err := p.client.Start(t.Context(), ann, "own"); err != nil {
			t.Fatal(err)
		}
		p.settle()
		dan := person("acme", "dan")
		for name, try := range map[string]func(id string) error{
			"SendTurn":          func(id string) error { _, err := p.client.SendTurn(t.Context(), dan, id, Message{}); return err },
			"Close":             func(id string) error { return p.client.Close(t.Context(), dan, id) },
			"Stop":              func(id string) error { return p.client.Stop(t.Context(), dan, id, 0) },
			"Status":            func(id string) error { _, err := p.client.Status(t.Context(), dan, id); return err },
			"Participants":      func(id string) error { _, err := p.client.Participants(t.Context(), dan, id); return err },
			"Waiting":           func(id string) error { _, err := p.client.Waiting(t.Context(), dan, id); return err },
			"Live":              func(id string) error { _, err := p.client.Live(t.Context(), dan, id); return err },
			"Tail":              func(id string) error { _, err := p.client.Tail(t.Context(), dan, id, nil); return err },
			"AddParticipant":    func(id string) error { return p.client.AddParticipant(t.Context(), dan, id, dan.Identity) },
			"RemoveParticipant": func(id string) error { return p.client.RemoveParticipant(t.Context(), dan, id, bob.Identity) },
			"History": func(id string) error {
				_, err := p.client.History(t.Context(), dan, id, HistoryOptions{})
				return err
			},
		} {
			var did []string
			for _, id := range []string{"room", "own", "no-such-room"} {
				before, reads := p.store.Counts(), []string{}
				p.store.OnRead(func(stream string) error {
					reads = append(reads, strings.ReplaceAll(stream, id, "ID"))
					return nil
				})
				if err := try(id); err != error(ErrNotFound) {
					t.Errorf("%s of a stranger to %s: %v, want ErrNotFound", name, id, err)
				}
				p.store.OnRead(nil)
				counts := p.store.Counts().Since(before)
				counts.EventsRead = 0 // of a conversation that is not there are none
				did = append(did, fmt.Sprintf("%v %+v", reads, counts))
			}
			if did[0] != did[2] || did[1] != did[2] {
				t.Errorf("%s costs a stranger\n%s\nof a conversation of one owner\n%s\nand where there is none\n%s", name, did[0], did[1], did[2])
			}
		}
	})
}

// A conversation has a hundred participants, its owner among them, and the owner
// stays (C-33.2, C-33.3).
func TestMaxParticipants(t *testing.T) {
	p := newParty(t)
	p.boot()
	if _, err := p.client.StartShared(t.Context(), ann, "room"); err != nil {
		t.Fatal(err)
	}
	for i := range 99 {
		if err := p.client.AddParticipant(t.Context(), ann, "room", person("acme", fmt.Sprint("p", i)).Identity); err != nil {
			t.Fatalf("AddParticipant %d: %v", i, err)
		}
	}
	if err := p.client.AddParticipant(t.Context(), ann, "room", bob.Identity); err != error(ErrTooManyParticipants) {
		t.Errorf("the 101st: %v, want ErrTooManyParticipants", err)
	}
	if err := p.client.AddParticipant(t.Context(), ann, "room", person("acme", "p3").Identity); err != nil {
		t.Errorf("one who takes part is added again: %v", err)
	}
	if err := p.client.RemoveParticipant(t.Context(), ann, "room", ann.Identity); err != error(ErrOwnerStays) {
		t.Errorf("RemoveParticipant of the owner: %v, want ErrOwnerStays", err)
	}
}

// Changes made at the same time all take effect, and none goes past the limit.
func TestConcurrentChanges(t *testing.T) {
	p := newParty(t)
	p.open()
	var changing sync.WaitGroup
	full := make(chan error, 120)
	for i := range 120 {
		changing.Go(func() {
			if err := p.client.AddParticipant(t.Context(), ann, "room", person("acme", fmt.Sprint("p", i)).Identity); err != nil {
				full <- err
			}
		})
	}
	changing.Wait()
	close(full)
	for err := range full {
		if err != error(ErrTooManyParticipants) {
			t.Error(err)
		}
	}
	if got := p.names(ann); len(got) != MaxParticipants {
		t.Errorf("%d take part after 120 were added at once, want %d", len(got), MaxParticipants)
	}
}

// A manager may do what the owner may; everybody else is told that they may not
// (C-33.4, C-33.9). A manager who was removed manages nothing.
func TestManager(t *testing.T) {
	p := newParty(t)
	var broken error
	p.shared.Manages = func(_ context.Context, who identity.Identity, id string) (bool, error) {
		return who == bob.Identity && id == "room", broken
	}
	p.open()
	dan := person("acme", "dan")
	if err := p.client.AddParticipant(t.Context(), cal, "room", dan.Identity); err != error(ErrForbidden) {
		t.Errorf("AddParticipant of who does not manage: %v, want ErrForbidden", err)
	}
	if err := p.client.Close(t.Context(), cal, "room"); err != error(ErrForbidden) {
		t.Errorf("Close of who does not manage: %v, want ErrForbidden", err)
	}
	if err := p.client.AddParticipant(t.Context(), bob, "room", dan.Identity); err != nil {
		t.Errorf("AddParticipant of a manager: %v", err)
	}
	broken = errors.New("the rule cannot be read")
	if err := p.client.RemoveParticipant(t.Context(), bob, "room", dan.Identity); err != error(ErrForbidden) {
		t.Errorf("RemoveParticipant where the rule fails: %v, want ErrForbidden", err)
	}
	broken = nil
	if err := p.client.RemoveParticipant(t.Context(), ann, "room", bob.Identity); err != nil {
		t.Fatal(err)
	}
	if err := p.client.RemoveParticipant(t.Context(), bob, "room", dan.Identity); err != error(ErrNotFound) {
		t.Errorf("RemoveParticipant of a former manager: %v, want ErrNotFound", err)
	}
}

// brokenDirectory is a directory that cannot be read.
type brokenDirectory struct{ Directory }

func (brokenDirectory) Roster(context.Context, string) ([]Participant, error) {
	return nil, errors.New("the directory is away")
}

// Where the directory cannot be read everything is refused, whether there is such a
// conversation or not (C-33.11); conversations of one owner need none.
func TestBrokenDirectory(t *testing.T) {
	p := newParty(t)
	p.open()
	if _, err := p.client.Start(t.Context(), ann, "own"); err != nil {
		t.Fatal(err)
	}
	p.stop()
	p.shared.Participants = brokenDirectory{p.shared.Participants}
	p.boot()
	for _, id := range []string{"room", "no-such-room"} {
		if _, err := p.client.Status(t.Context(), ann, id); err == nil || errors.Is(err, ErrNotFound) {
			t.Errorf("Status of %s without a directory: %v, want its error", id, err)
		}
	}
	if _, err := p.client.Status(t.Context(), ann, "own"); err != nil {
		t.Errorf("Status of a conversation of one owner: %v", err)
	}
}

// The service is nobody's identity (C-34.2), and only what it has started is a
// shared conversation (C-34.3); its log is closed to everybody else (C-34.5).
func TestCoordinator(t *testing.T) {
	p := newParty(t)
	p.open()
	for _, pretender := range []*identity.Principal{
		{Identity: service}, {Identity: identity.Identity{Actor: service.Actor, OnBehalfOf: identity.Some("ann")}},
	} {
		if _, err := p.client.StartShared(t.Context(), pretender, ""); err != error(ErrNotFound) {
			t.Errorf("StartShared of the service: %v, want ErrNotFound", err)
		}
		if _, err := p.client.Start(t.Context(), pretender, ""); err != error(ErrNotFound) {
			t.Errorf("Start of the service: %v, want ErrNotFound", err)
		}
		if err := p.client.AddParticipant(t.Context(), ann, "room", pretender.Identity); err != error(ErrInvalidParticipant) {
			t.Errorf("AddParticipant of the service: %v, want ErrInvalidParticipant", err)
		}
		if _, err := p.client.Status(t.Context(), pretender, "room"); err != error(ErrNotFound) {
			t.Errorf("Status of the service: %v, want ErrNotFound", err)
		}
	}
	for _, who := range []*identity.Principal{ann, bob} {
		if _, err := p.rt.Query(t.Context(), kernel.By(*who), "room"); !errors.Is(err, kernel.ErrForbidden) {
			t.Errorf("a query of %s's straight to the runtime: %v, want ErrForbidden", who.Actor, err)
		}
		if err := p.rt.Send(t.Context(), kernel.By(*who), "room", Topic, p.config.Keys.signUser("room", &who.Identity, "m", "hi", testTime), "m"); !errors.Is(err, kernel.ErrForbidden) {
			t.Errorf("a message of %s's straight to the runtime: %v, want ErrForbidden", who.Actor, err)
		}
	}

	// cal starts the coordinator's flow himself, and stamps ann on it; then he lays
	// himself into its side stream (C-33.8).
	if _, _, err := p.rt.Start(t.Context(), kernel.By(*cal), kernel.StartRequest{Flow: "conversation-shared", ID: "fake", Input: Stamp(&ann.Identity)}); err != nil {
		t.Fatal(err)
	}
	err := p.shared.Participants.Update(t.Context(), "fake", func([]Participant) (*Change, error) {
		return &Change{Who: cal.Identity, Added: true, By: cal.Identity, Roster: []Participant{{Identity: cal.Identity, Since: testTime}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []*identity.Principal{ann, cal} {
		if _, err := p.client.Status(t.Context(), who, "fake"); err != error(ErrNotFound) {
			t.Errorf("Status of %s in a conversation that cal has started past the client: %v, want ErrNotFound", who.Actor, err)
		}
	}
	if _, _, err := p.rt.Start(t.Context(), kernel.By(*cal), kernel.StartRequest{Flow: "conversation-turn", ID: ParticipantsPrefix + "room", Input: 1}); !errors.Is(err, kernel.ErrInvalid) {
		t.Errorf("a start under the name of a side stream: %v, want ErrInvalid", err)
	}
}

// Only an envelope of the conversation's own counts in a coordinator that somebody
// has started past the client, and none is signed for it: what is captured from
// another is rejected.
func TestFakeCoordinatorRunsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.open()
		if _, _, err := p.rt.Start(t.Context(), kernel.By(*cal), kernel.StartRequest{Flow: "conversation-shared", ID: "fake", Input: Stamp(&cal.Identity)}); err != nil {
			t.Fatal(err)
		}
		captured := p.config.Keys.signUser("fake", &cal.Identity, "m", "run this", now())
		if err := p.rt.Send(t.Context(), kernel.By(*cal), "fake", Topic, captured, "m"); err != nil {
			t.Fatal(err)
		}
		p.settle()
		if got := len(p.model.all()); got != 0 {
			t.Errorf("the model was called %d times", got)
		}
	})
}

// A service with the grants of C-34.6 runs a whole dialogue, and a repeat of the
// start finds it (C-22.3).
func TestServiceGrants(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.reserved = func(c *kernel.Config) {
			c.Granted = func(who *identity.Identity, effect kernel.EffectID) bool {
				return *who != service || effect == TurnEffect
			}
		}
		p.open()
		p.ask(ann, "one")
		p.ask(bob, "two [use open]")
		want := []string{
			"1 user accepted ann one", "1 assistant complete ann re: one",
			"2 user accepted bob two [use open]", "2 assistant complete bob re: two [use open] open-result",
		}
		if got := p.sees(cal); !cmp.Equal(got, want) {
			t.Errorf("cal sees %q, want %q", got, want)
		}
		for who, want := range map[*identity.Principal]error{ann: nil, bob: ErrNotFound} {
			if _, err := p.client.StartShared(t.Context(), who, "room"); !errors.Is(err, want) {
				t.Errorf("StartShared of %s again: %v, want %v", who.Actor, err, want)
			}
		}
		if _, err := p.client.Start(t.Context(), ann, "room"); err != error(ErrNotFound) {
			t.Errorf("Start of an id that is a shared conversation's: %v, want ErrNotFound", err)
		}
	})
}

// Everybody who takes part has the conversation in their list, the newest activity
// first among their own, and nobody else (C-29.13).
func TestSharedList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.open()
		if _, err := p.client.Start(t.Context(), bob, "own"); err != nil {
			t.Fatal(err)
		}
		p.ask(ann, "hello all")
		list := func(who *identity.Principal) (lines []string) {
			t.Helper()
			page, err := p.client.List(t.Context(), who, "", 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range page.Conversations {
				lines = append(lines, fmt.Sprint(c.ID, " ", c.Shared, " ", c.Turns, " ", c.Title))
			}
			return lines
		}
		for who, want := range map[*identity.Principal][]string{
			ann: {"room true 1 hello all"}, bob: {"room true 1 hello all", "own false 0 "}, person("acme", "dan"): nil,
		} {
			if got := list(who); !cmp.Equal(got, want) {
				t.Errorf("the list of %s is %q, want %q", who.Actor, got, want)
			}
		}
		if err := p.client.RemoveParticipant(t.Context(), ann, "room", bob.Identity); err != nil {
			t.Fatal(err)
		}
		if got, want := list(bob), []string{"own false 0 "}; !cmp.Equal(got, want) {
			t.Errorf("the list of who was removed is %q, want %q", got, want)
		}
	})
}
