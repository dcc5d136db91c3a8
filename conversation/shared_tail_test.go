package conversation

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/kernel"
)

// Whoever is removed gets no entry more, at whichever step of their open stream that
// happens: before its first read, between a read and an entry, between two entries,
// while it waits, and after the end. Who comes back goes on from where they were
// (C-33.6, C-37.10).
func TestRemovalAtEachStepOfATail(t *testing.T) {
	steps := []string{"before the first read", "behind a read", "between two entries", "while it waits", "at the end"}
	for step, name := range steps {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newParty(t)
				p.open()
				p.ask(ann, "one")
				tail, err := p.client.Tail(t.Context(), bob, "room", nil)
				if err != nil {
					t.Fatal(err)
				}
				defer tail.Close()
				at := func(now int) {
					if now != step {
						return
					}
					if err := p.client.RemoveParticipant(t.Context(), ann, "room", bob.Identity); err != nil {
						t.Fatal(err)
					}
				}
				var got []string
				var last Cursor
				read := func(now int) {
					t.Helper()
					news, err := tail.Read(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					at(now)
					for i, r := range news.Entries {
						if i == 1 {
							at(now + 1)
						}
						if err := tail.Permit(t.Context()); err != nil {
							if err != error(ErrNotFound) {
								t.Errorf("Permit: %v, want ErrNotFound", err)
							}
							return
						}
						got, last = append(got, line(r)), r.Cursor
					}
				}
				at(0)
				read(1)
				at(3)
				p.ask(ann, "two")
				read(len(steps))
				at(4)
				p.ask(ann, "three")
				read(len(steps))

				all := p.sees(ann)
				if want := []int{0, 0, 1, 2, 4}[step]; !cmp.Equal(got, all[:want:want], cmp.Transformer("nil", func(s []string) string { return strings.Join(s, "\n") })) {
					t.Errorf("bob received %q, want the first %d of %q", got, want, all)
				}
				p.add(bob)
				from := &last
				if len(got) == 0 {
					from = nil
				}
				next := 0
				for r, err := range p.client.Follow(t.Context(), bob, "room", from) {
					if want := all[len(got)+next]; err != nil || line(r) != want {
						t.Errorf("bob, who is back, follows %q, %v, want %q", line(r), err, want)
					}
					if next++; len(got)+next == len(all) {
						break
					}
				}
			})
		})
	}
}

// The hundred may all speak, and each is told of the others (C-33.3).
func TestHundredParticipants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.boot()
		if _, err := p.client.StartShared(t.Context(), ann, "room"); err != nil {
			t.Fatal(err)
		}
		last := person("acme", "p98")
		for i := range 99 {
			who := person("acme", "p"+strings.Repeat("0", i/98)+string(rune('A'+i)))
			if i == 98 {
				who = last
			}
			p.add(who)
		}
		p.ask(last, "here I am")
		p.expect(ann, "1 user accepted p98 here I am", "1 assistant complete p98 re: here I am")
		if names := p.names(last); len(names) != MaxParticipants || names[0] != "ann" || names[99] != "p98" {
			t.Errorf("the last to come is told of %d: %q", len(names), names)
		}
	})
}

// The ids of a shared dialogue's decisions are frozen as those of others are (C-16.3,
// C-16.5): what stands in the coordinator's log, and in that of a turn.
func TestSharedDecisionIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.open()
		p.ask(ann, "one [use secret]")
		p.ask(bob, "two")
		if err := p.client.Close(t.Context(), ann, "room"); err != nil {
			t.Fatal(err)
		}
		p.settle()
		ids := func(stream string) (ids []string) {
			for _, e := range p.read(stream) {
				ids = append(ids, strings.TrimSpace(e.Kind+" "+e.ID))
				if e.Kind != kernel.KindDecided {
					continue
				}
				decided, err := kernel.DecodeEvent[kernel.Decided](e)
				if err != nil || !slices.Contains(RecordedFactSources(), decided.Source) { // C-6.4
					t.Errorf("decision %s has the source %q, %v", e.ID, decided.Source, err)
				}
			}
			return ids
		}
		want := []string{
			"STARTED", "DECIDED conv#settings",
			"MESSAGE_CONSUMED conversation:turn#1", "DECIDED conv#o1:admit", "DECIDED conv#o1:member", "DECIDED conv#o1:user",
			"REQUESTED conv#o1:turn", "SETTLED conv#o1:turn", "DECIDED conv#o1:classes", "DECIDED conv#o1:reply",
			"MESSAGE_CONSUMED conversation:turn#2", "DECIDED conv#o2:admit", "DECIDED conv#o2:member", "DECIDED conv#o2:visible", "DECIDED conv#o2:user",
			"REQUESTED conv#o2:turn", "SETTLED conv#o2:turn", "DECIDED conv#o2:classes", "DECIDED conv#o2:reply",
			"MESSAGE_CONSUMED conversation:turn#3", "DECIDED conv#o3:admit", "DECIDED conv#o3:member", "DECIDED conv#closed", "ENDED",
		}
		if diff := cmp.Diff(want, ids("room")); diff != "" {
			t.Errorf("ids of the coordinator (-want +got):\n%s", diff)
		}
		want = []string{
			"STARTED", "DECIDED turn#begun", "DECIDED conv#o2#abort:model:1", "REQUESTED conv#o2#model:1", "SETTLED conv#o2#model:1",
			"DECIDED turn#answer", "ENDED",
		}
		if diff := cmp.Diff(want, ids(turnID(p.config.Keys.signing, "room", 2))); diff != "" {
			t.Errorf("ids of a turn (-want +got):\n%s", diff)
		}
	})
}

// A turn that is over, or another's, is not stopped, and a stopped one stays stopped
// on every replay (C-46.3, C-46.5).
func TestSharedStopsAreReplayed(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.open()
		p.say(bob, "one [slowly]")
		<-time.After(time.Second)
		for range 2 {
			if err := p.client.Stop(t.Context(), bob, "room", 1); err != nil {
				t.Fatal(err)
			}
		}
		p.settle()
		if err := p.client.Stop(t.Context(), bob, "room", 1); err != nil {
			t.Fatal(err)
		}
		p.ask(bob, "two [slowly]")
		p.reboot()
		p.settle()
		p.expect(cal, "1 user accepted bob one [slowly]", "1 assistant interrupted bob re: one [slowly]",
			"2 user accepted bob two [slowly]", "2 assistant complete bob re: two [slowly]")
		p.rehearse(1)
	})
}
