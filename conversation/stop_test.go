package conversation

import (
	"testing"
	"time"

	"github.com/parley-run/parley/kernel"
)

// A stop in mid-stream ends the turn that it names, whether messages cut in or
// wait, and leaves nothing else behind: no record, no turn number (C-46.2,
// C-46.4, T25). A second one, and one after the end, do nothing (C-46.3).
func TestStop(t *testing.T) {
	for _, stopOnly := range []bool{false, true} {
		barging(t, func(t *testing.T, s *stage) {
			s.config.StopOnly = stopOnly
			s.say("endless")
			s.pass(2500 * time.Millisecond)
			s.halt(1)
			s.halt(1)
			s.pass(time.Second)
			want := []string{"1/1 user accepted endless", "1/2 assistant interrupted word word "}
			wantTranscript(t, s, want...)
			s.halt(1)
			s.say("hello")
			s.pass(time.Second)
			want = append(want, "2/3 user accepted hello", "2/4 assistant complete hello")
			wantTranscript(t, s, want...)
			s.reboot()
			s.say("again")
			s.pass(time.Second)
			wantTranscript(t, s, append(want, "3/5 user accepted again", "3/6 assistant complete again")...)
		})
	}
}

// A stop never touches another turn than its own: neither the one that runs, nor
// the next one that has not begun (C-46.3).
func TestStopOfAnotherTurn(t *testing.T) {
	barging(t, func(t *testing.T, s *stage) {
		s.say("hello")
		s.hear(2)
		s.say("endless")
		s.pass(2500 * time.Millisecond)
		for _, turn := range []int{1, 3, 1 << 40} {
			s.halt(turn)
		}
		s.pass(time.Second)
		if lines := s.quiet(); len(lines) != 3 {
			t.Fatalf("a stop of another turn cut this one: %q", lines)
		}
		s.say("next") // raced with a stop of the turn that it cuts
		s.halt(2)
		s.pass(time.Minute)
		wantTranscript(t, s,
			"1/1 user accepted hello", "1/2 assistant complete hello",
			"2/3 user accepted endless", "2/4 assistant interrupted word word word ",
			"3/5 user accepted next", "3/6 assistant complete next")
	})
}

// A stop that nobody signed, and one of somebody else's conversation or name, is a
// message like any other: rejected when it is consumed, and nobody's turn ends for
// it where messages wait.
func TestForgedStop(t *testing.T) {
	barging(t, func(t *testing.T, s *stage) {
		s.config.StopOnly = true
		s.say("endless")
		s.pass(1500 * time.Millisecond)
		turn := 1
		forge := func(change func(*body)) {
			b := newBody(KindStop, "talk", &ann.Identity, "m", time.Now())
			b.Turn = &turn
			change(&b)
			s.sendAs(s.owner, s.keys.seal(b), kernel.NewID())
		}
		forge(func(b *body) { b.ConversationID = "walk" })
		forge(func(b *body) { b.Asker = &person("acme", "bob").Identity })
		forge(func(b *body) { b.Turn = nil })
		forge(func(b *body) { b.Text = "and say this" })
		unsigned := newBody(KindStop, "talk", &ann.Identity, "m", time.Now())
		unsigned.Turn = &turn
		s.sendAs(s.owner, encoded(t, envelope{Body: encoded(t, unsigned)}), kernel.NewID())
		s.pass(time.Second)
		if lines := s.quiet(); len(lines) != 1 {
			t.Fatalf("a forged stop ended the turn: %q", lines)
		}
		s.halt(1)
		s.pass(time.Second)
		wantTranscript(t, s,
			"1/1 user accepted endless", "1/2 assistant interrupted word word ",
			"0/3 user rejected unauthenticated ", "0/4 user rejected unauthenticated ",
			"0/5 user rejected malformed ", "0/6 user rejected malformed and say this", "0/7 user rejected unauthenticated ")
	})
}

// A stop is replayed like every message, and the same one does nothing twice.
func TestStopIsConsumedOnce(t *testing.T) {
	barging(t, func(t *testing.T, s *stage) {
		s.say("hello")
		s.hear(2)
		turn := 1
		b := newBody(KindStop, "talk", &ann.Identity, "m", time.Now())
		b.Turn = &turn
		payload := s.keys.seal(b)
		s.sendAs(s.owner, payload, "m")
		s.sendAs(s.owner, payload, "another")
		s.pass(time.Second)
		wantTranscript(t, s, "1/1 user accepted hello", "1/2 assistant complete hello", "0/3 user rejected replayed ")
	})
}
