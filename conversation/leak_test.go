package conversation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
)

// TestNothingLeaks plays random dialogues of four people, each cleared for other
// things at other times. There is a fresh canary in every question, answer, edit,
// tool's result and recalled fact, and the model repeats what it was given. None
// may be in a byte of what somebody receives, or of what is sent in their turn, that
// they may not see there at that moment (C-33 to C-39, T83 to T92).
func TestNothingLeaks(t *testing.T) {
	dialogues := uint64(320)
	if underRace || testing.Short() {
		dialogues /= 10
	}
	const shards = 4
	for shard := range uint64(shards) {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			var all tallies
			for seed := shard; seed < dialogues && !t.Failed(); seed += shards {
				synctest.Test(t, func(t *testing.T) { all.add(playLeaks(t, seed)) })
				if t.Failed() {
					t.Errorf("in the dialogue of seed %d", seed)
				}
			}
			if all.hollow(int(dialogues/shards)/10) && !t.Failed() {
				t.Errorf("the dialogues hardly tried: %+v", all)
			}
			t.Logf("%+v", all)
		})
	}
}

// playLeaks plays one dialogue and judges all that came of it.
func playLeaks(t *testing.T, seed uint64) tallies {
	w := newWarren(t, seed)
	w.boot()
	if _, err := w.client.StartShared(t.Context(), ann, "room"); err != nil {
		t.Fatal(err)
	}
	w.follow(ann)
	for _, who := range folk[1:] {
		w.admit(who, w.chance(3, 4))
		w.enlighten(who)
	}
	for range 8 + w.random.IntN(10) {
		w.step()
		w.pass(time.Duration(w.random.IntN(2)*w.random.IntN(20_000)) * time.Millisecond)
	}
	w.settle()
	if w.chance(1, 3) {
		w.note(ann, w.client.Close(t.Context(), ann, "room"))
		w.settle()
	}
	w.lookAll()
	w.unfollow()
	j := newJudge(w)
	j.rehearse()
	w.stop()
	return j.judge()
}

// folk are the people of the dialogues; the first owns the conversation.
var folk = []*identity.Principal{ann, bob, cal, person("acme", "dan")}

func (w *warren) chance(n, of int) bool        { return w.random.IntN(of) < n }
func (w *warren) anybody() *identity.Principal { return folk[w.random.IntN(len(folk))] }

// step does one thing that somebody may do.
func (w *warren) step() {
	who := w.anybody()
	switch w.random.IntN(20) {
	case 0, 1:
		w.enlighten(who)
	case 2, 3:
		if who != ann {
			w.admit(who, w.chance(2, 3))
		}
	case 4:
		w.unfollow()
		w.reboot()
		w.followAll()
	case 5:
		w.note(who, w.client.Stop(w.t.Context(), who, "room", 1+w.random.IntN(6)))
	case 6, 7:
		w.say(who, 1+w.random.IntN(12))
	case 8:
		if who != ann {
			w.note(who, w.client.Close(w.t.Context(), who, "room"))
		}
	case 9, 10:
		w.lookAll()
	case 11:
		w.notify(who)
	default:
		w.say(who, 0)
	}
}

// say sends a question with a canary, and what the model is to do about it.
func (w *warren) say(who *identity.Principal, editOf int) {
	text := w.born(birth{kind: "question", who: who.Actor})
	for _, order := range []string{"[use secret]", "[use top]", "[use open]", "[use unknown]", "[use breaks]", "[use act]", "[use nosuch]", "[slowly]", "[fail]"} {
		if w.chance(1, 7) {
			text += " " + order
		}
	}
	_, err := w.client.SendTurn(w.t.Context(), who, "room", Message{Text: text, EditOf: editOf})
	w.note(who, err)
}

// notify has the house tell somebody something, which bears a class or says nothing
// of that (C-45.8).
func (w *warren) notify(who *identity.Principal) {
	classes := [][]string{nil, {}, {"secret"}, {"top"}}[w.random.IntN(4)]
	need := classes
	if classes == nil {
		need = []string{Unclassified}
	}
	text := w.born(birth{kind: "question", who: who.Actor, need: need}) + [...]string{"", " [slowly]", " [use open]"}[w.random.IntN(3)]
	err := NewNotifier(w.client).Notify(w.t.Context(), "room", Notice{Topic: TopicLease, Text: text, For: &who.Identity, Classes: classes})
	w.note(who, err)
}

// enlighten gives somebody other clearances than before; admit makes them take part
// or not. Both happen between two milliseconds, when nothing else does, so that it is
// known for each event whether it came before or after.
func (w *warren) enlighten(who *identity.Principal) {
	var classes []string
	for _, class := range []string{"secret", "top", "broken", "acted", Unclassified, "memory:ann", "memory:bob", "memory:dan"} {
		if w.chance(1, 2) {
			classes = append(classes, class)
		}
	}
	w.between(func() {
		w.clear(who, classes...)
		w.history = append(w.history, change{at: time.Now(), who: who.Actor, classes: classes, cleared: true})
	})
}

func (w *warren) admit(who *identity.Principal, in bool) {
	w.between(func() {
		change := change{at: time.Now(), who: who.Actor, member: in}
		var err error
		if in {
			err = w.client.AddParticipant(w.t.Context(), ann, "room", who.Identity)
		} else {
			err = w.client.RemoveParticipant(w.t.Context(), ann, "room", who.Identity)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		w.history = append(w.history, change)
	})
	if in {
		w.follow(who)
	}
}

func (w *warren) between(do func()) {
	w.pass(500 * time.Microsecond)
	do()
	synctest.Wait()
	w.pass(500 * time.Microsecond)
}

func (w *warren) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// note keeps what somebody is told of what they tried.
func (w *warren) note(who *identity.Principal, err error) {
	if err != nil {
		w.receive(who, "error", err.Error())
	}
}

// lookAll has everybody read all that can be read.
func (w *warren) lookAll() {
	for _, who := range folk {
		w.look(who)
	}
}

func (w *warren) look(who *identity.Principal) {
	ctx := w.t.Context()
	status, err := w.client.Status(ctx, who, "room")
	w.note(who, err)
	people, err := w.client.Participants(ctx, who, "room")
	w.note(who, err)
	waiting, err := w.client.Waiting(ctx, who, "room")
	w.note(who, err)
	list, err := w.client.List(ctx, who, "", 0)
	w.note(who, err)
	for kind, value := range map[string]any{"status": status, "participants": people, "waiting": waiting, "list": list} {
		w.receive(who, kind, string(encoded(w.t, value)))
	}
	w.browse(who)
}

// browse reads the whole history in pages.
func (w *warren) browse(who *identity.Principal) {
	options := HistoryOptions{Limit: 1 + w.random.IntN(9), Direction: []journal.Direction{journal.Forward, journal.Backward}[w.random.IntN(2)]}
	read := 0
	for {
		page, err := w.client.History(w.t.Context(), who, "room", options)
		if w.note(who, err); err != nil {
			return
		}
		for _, r := range page.Entries {
			read++
			w.entry(who, r)
		}
		if page.Done {
			break
		}
		options.Cursor = &page.Next
	}
	w.counts = append(w.counts, counted{time.Now(), read})
}

// follow has somebody listen, to entries from the last one that they had, and to
// live words.
func (w *warren) follow(who *identity.Principal) {
	if w.stopping == nil {
		w.ctx, w.stopping = context.WithCancel(context.Background())
	}
	ctx, client, from := w.ctx, w.client, w.place(who)
	w.listening.Go(func() {
		for r, err := range client.Follow(ctx, who, "room", from) {
			if err != nil {
				w.note(who, err)
				return
			}
			w.entry(who, r)
			w.setPlace(who, r.Cursor)
		}
	})
	w.listening.Go(func() {
		live, err := client.Live(ctx, who, "room")
		if err != nil {
			w.note(who, err)
			return
		}
		defer live.Close()
		for {
			select {
			case <-live.Hint():
			case <-ctx.Done():
				return
			}
			for piece := live.Next(); piece != nil; piece = live.Next() {
				w.receive(who, fmt.Sprint("live ", piece.Turn), string(piece.Kind)+" "+piece.Text)
			}
		}
	})
}

func (w *warren) followAll() {
	for _, who := range folk {
		w.follow(who) // who takes no part is refused
	}
}

func (w *warren) unfollow() {
	if w.stopping != nil {
		w.stopping()
		w.listening.Wait()
		w.stopping = nil
	}
}

// tallies say whether the dialogues were about anything.
type tallies struct {
	Turns, Rejected, Cut, Failed, Spread         int // Spread: answers with classes that came from before
	Entries, Placeholders, Withheld, Words, Sent int // Withheld: earlier turns that an asker was not given
	Recalls, Kept, Folded, Runs, Notices         int
}

func (a *tallies) add(b tallies) {
	for i, n := range []int{
		b.Turns, b.Rejected, b.Cut, b.Failed, b.Spread, b.Entries, b.Placeholders, b.Withheld, b.Words, b.Sent, b.Recalls, b.Kept, b.Folded, b.Runs, b.Notices,
	} {
		*a.each()[i] += n
	}
}

func (a *tallies) each() []*int {
	return []*int{
		&a.Turns, &a.Rejected, &a.Cut, &a.Failed, &a.Spread, &a.Entries, &a.Placeholders, &a.Withheld, &a.Words, &a.Sent, &a.Recalls, &a.Kept, &a.Folded, &a.Runs, &a.Notices,
	}
}

// hollow reports whether something of that did not happen so often.
func (a *tallies) hollow(often int) bool {
	for _, n := range a.each() {
		if *n < often {
			return true
		}
	}
	return false
}

// newRandom is a source of chance for a purpose within a dialogue.
func newRandom(seed uint64, purpose string) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(len(purpose))<<8+uint64(strings.Index("mdc", purpose[:1])+1)))
}
