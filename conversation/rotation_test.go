package conversation

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// A generation ends between the consumption of a message and its turn; the
// message rides along tainted, is the successor's first, and no inbox delivers
// it a second time (C-19.1 to C-19.5).
func TestPendingMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "otherwise\n  reply")
		s.config.Settings.RotateEveryTurns = 2
		for i := range 5 {
			s.say(fmt.Sprint("turn ", i+1))
			s.hear(2*i + 2)
		}
		if info := s.state(); info.Generation != 2 {
			t.Errorf("5 turns at 2 a generation are in generation %d, want 2", info.Generation)
		}
		for g := 1; g <= 2; g++ {
			events, err := s.store.ReadRange(t.Context(), kernel.StreamOf("talk", g), 0, 1, journal.Forward)
			if err != nil {
				t.Fatal(err)
			}
			started, err := kernel.DecodeEvent[kernel.Started](events[0])
			if err != nil {
				t.Fatal(err)
			}
			if *started.Principal != ann.Identity {
				t.Errorf("generation %d runs as %v", g, started.Principal)
			}
			carry, err := CarryOf(started.Input, g)
			if err != nil {
				t.Fatal(err)
			}
			e, _ := split(carry.Pending.Value)
			b, ok := e.read()
			if want := fmt.Sprint("turn ", 2*g+1); !ok || b.Text != want || carry.Pending.Origin != taint.OriginUser {
				t.Errorf("generation %d begins with %q from %q, want %q", g, b.Text, carry.Pending.Origin, want)
			}
			if carry.Seq != 2*g || carry.Ord != 2*g || carry.Rec != 4*g || len(carry.Turns) != 2*g || len(carry.Seen) != 2*g {
				t.Errorf("generation %d is given seq %d, ord %d, rec %d, %d turns and %d ids",
					g, carry.Seq, carry.Ord, carry.Rec, len(carry.Turns), len(carry.Seen))
			}
		}
		// The last request has the four turns before it, whatever generation
		// they were in.
		sent := s.model.all()
		if n := len(sent[4].Messages); n != 9 {
			t.Errorf("the fifth request has %d messages, want 9", n)
		}
	})
}

// No message in the inbox, whatever its size or shape, makes a rotation fail:
// it is rejected as malformed, with and without one (C-19.13).
func TestMonstrousPayloads(t *testing.T) {
	for name, payload := range map[string]string{
		"large":         `{"body":{"text":"` + strings.Repeat("x", 900<<10) + `"},"sig":""}`,
		"deep":          strings.Repeat("[", 450) + strings.Repeat("]", 450),
		"deep objects":  strings.Repeat(`{"body":`, 900) + "1" + strings.Repeat("}", 900),
		"many members":  `{"a":[` + strings.Repeat("{},", 100_000) + `0]}`,
		"large numbers": `[` + strings.Repeat("1e999,", 30_000) + `0]`,
		"escapes":       `"` + strings.Repeat(`\u0001`, 150_000) + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, rotate := range []int{0, 1} {
				synctest.Test(t, func(t *testing.T) {
					s := newStage(t, "otherwise\n  reply")
					s.config.Settings.RotateEveryTurns = rotate
					s.say("one")
					s.send(jsontext.Value(payload), "monster")
					s.say("two")
					want := []string{
						"1/1 user accepted one", "1/2 assistant complete one",
						"0/3 user rejected malformed ",
						"2/4 user accepted two", "2/5 assistant complete two",
					}
					if diff := cmp.Diff(want, s.hear(5)); diff != "" {
						t.Errorf("rotate %d: transcript (-want +got):\n%s", rotate, diff)
					}
				})
			}
		})
	}
}

// The largest message that a client can sign rides along whole.
func TestLargestMessageRotates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "otherwise\n  say \"ok\"")
		s.config.Settings.RotateEveryTurns = 1
		s.say("one")
		largest := strings.Repeat("\x01", DefaultMaxTurnChars)
		s.say(largest)
		got := s.hear(4)
		if got[2] != "2/3 user accepted "+largest || got[3] != "2/4 assistant complete ok" {
			t.Errorf("the largest text is answered with %.80q and %q", got[2], got[3])
		}
	})
}

// A rotation with a full window and the largest message trims the carry, and
// what is trimmed stays in the transcript (C-19.7, C-19.9).
func TestCarryIsTrimmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "otherwise\n  say \"ok\"")
		s.config.Settings.RotateEveryTurns = 5
		for i := range 5 {
			s.say(fmt.Sprint(i, strings.Repeat("x", 28_000)))
		}
		s.say(strings.Repeat("\x01", DefaultMaxTurnChars))
		s.hear(12)
		events, err := s.store.ReadRange(t.Context(), kernel.StreamOf("talk", 1), 0, 1, journal.Forward)
		if err != nil || len(events) != 1 {
			t.Fatalf("generation 1: %d events, %v", len(events), err)
		}
		started, err := kernel.DecodeEvent[kernel.Started](events[0])
		if err != nil {
			t.Fatal(err)
		}
		carry, err := CarryOf(started.Input, 1)
		if err != nil {
			t.Fatal(err)
		}
		limit := Settings{}.withDefaults().MaxCarryBytes
		if n := len(started.Input); n > limit || n < limit-30_000 {
			t.Errorf("the carry has %d bytes, want it trimmed to %d", n, limit)
		}
		if n := len(carry.Turns); n == 0 || carry.Turns[n-1].Turn != 5 {
			t.Errorf("%d turns are carried", n)
		}
	})
}

// A changed configuration acts from the next generation on (C-11.16).
func TestSettingsOfAGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "otherwise\n  reply")
		s.config.Settings = Settings{RotateEveryTurns: 3, MaxTurnChars: 5}
		s.say("12345")
		s.hear(2)
		s.config.Settings = Settings{RotateEveryTurns: 100, MaxTurnChars: 3}
		s.reboot()
		s.say("12345")
		s.say("12345")
		s.say("12345")
		s.say("123")
		got := s.hear(9)
		if got[4] != "3/5 user accepted 12345" || got[6] != "0/7 user rejected malformed 12345" || got[8] != "4/9 assistant complete 123" {
			t.Errorf("transcript %q", got)
		}
	})
}

// The window has at most MaxWindowTurns earlier turns, the newest ones, and no
// more of them than a carry holds; what left it stays in the transcript
// (C-20.2, C-20.3, C-20.13, C-21.1).
func TestWindow(t *testing.T) {
	stages(t, "otherwise\n  reply", func(t *testing.T, s *stage) {
		s.config.Settings.MaxWindowTurns = 3
		for i := range 6 {
			s.say(fmt.Sprint("turn ", i+1))
			s.hear(2*i + 2)
		}
		sent := s.model.all()
		var texts []string
		for _, m := range sent[5].Messages {
			if m.Role == model.Assistant {
				texts = append(texts, m.Text)
			}
		}
		if diff := cmp.Diff([]string{"turn 3", "turn 4", "turn 5"}, texts); diff != "" {
			t.Errorf("earlier turns of the sixth request (-want +got):\n%s", diff)
		}
		if n := len(s.transcript()); n != 12 {
			t.Errorf("the transcript has %d records", n)
		}
	})
}

func TestWindowBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "otherwise\n  reply")
		settings := Settings{}.withDefaults()
		for i := range 5 {
			s.say(fmt.Sprint(i, strings.Repeat("x", 25_000)))
			s.hear(2*i + 2)
		}
		sent := s.model.all()
		earlier := (len(sent[4].Messages) - 1) / 2
		if want := settings.windowBytes() / 50_300; earlier != want {
			t.Errorf("the fifth request has %d earlier turns of 50 KB, want %d", earlier, want)
		}
	})
}

// A window ends at the first turn that is too large, and never skips one to
// keep an older one (C-20.3).
func TestFitNeverSkips(t *testing.T) {
	var w window
	for i, size := range []int{10, 10, 10_000, 10} {
		w.add(Turn{Turn: i + 1, User: taint.Tainted(strings.Repeat("x", size), taint.OriginUser)})
	}
	w.keep(w.most(10, 1000))
	if len(w.turns) != 1 || w.turns[0].Turn != 4 {
		t.Errorf("the window keeps %d turns, from %d on", len(w.turns), w.turns[0].Turn)
	}
}

// A start input that is no stamp, or not the starter's own, ends the execution
// with a plain error; nothing of it is acted on (C-11.13, C-23.4).
func TestRawStarts(t *testing.T) {
	mallory := person("acme", "mallory")
	carry := fullCarry(2, 3, 1)
	for name, input := range map[string]any{
		"somebody else's stamp":     Stamp(&ann.Identity),
		"nobody's stamp":            Stamp(nil),
		"a carry":                   carry,
		"a carry and a stamp":       map[string]any{"v": 1, "owner": mallory.Identity, "turns": carry.Turns},
		"a list":                    []int{1},
		"nothing":                   nil,
		"an owner without an actor": map[string]any{"v": 1, "owner": identity.Identity{Tenant: identity.Some("acme")}},
		"a long stamp":              map[string]any{"v": 1, "owner": map[string]string{"actor": strings.Repeat("a", 300)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, "otherwise\n  reply")
				s.bootFlow()
				_, _, err := s.rt.Start(context.Background(), kernel.By(*mallory), kernel.StartRequest{Flow: DefaultFlowName, ID: "talk", Input: input})
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if info := s.state(); info.State != kernel.Failed {
					t.Errorf("the execution is %s", info.State)
				}
				if events := s.events(); len(events) != 2 || len(s.model.all()) != 0 {
					t.Errorf("%d events and %d model calls", len(events), len(s.model.all()))
				}
			})
		})
	}
}

// A stranger at the head fares no better than before a rotation (C-19.11).
func TestStrangerAtTheHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "otherwise\n  reply")
		s.config.Settings.RotateEveryTurns = 1
		s.say("one")
		s.say("two")
		mallory := person("acme", "mallory")
		s.send(s.keys.signUser("talk", &mallory.Identity, "m", "three", time.Now()), "m")
		if got := s.hear(5); got[4] != "0/5 user rejected unauthenticated " {
			t.Errorf("the stranger's message is %q", got[4])
		}
	})
}
