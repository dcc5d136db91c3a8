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
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
)

// A read of the inbox that fails once does not end the watch: the message behind
// it still cuts the turn (C-14.1).
func TestWatchSurvivesAFailedRead(t *testing.T) {
	for name, when := range map[string]time.Duration{"the first look": 0, "a later one": 1500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			barging(t, func(t *testing.T, s *stage) {
				s.boot()
				var armed atomic.Int32
				s.store.OnRead(func(stream string) error {
					if stream == kernel.InboxStream("talk") && armed.CompareAndSwap(2, 1) {
						return errors.New("the store is away for a moment")
					}
					return nil
				})
				if when == 0 {
					s.config.BargeIn = armedSource{InboxBargeIn(s.store), &armed}
					s.reboot()
				}
				s.say("endless")
				s.pass(1500 * time.Millisecond)
				if when > 0 {
					armed.Store(2)
				}
				s.pass(3 * time.Second)
				if armed.Load() != 1 {
					t.Fatal("nothing was read")
				}
				s.say("next")
				s.pass(5 * time.Second)
				lines := s.quiet()
				if len(lines) != 4 || !strings.Contains(lines[1], "interrupted word") {
					t.Errorf("transcript %q", lines)
				}
			})
		})
	}
}

// armedSource arms a fault when a turn subscribes.
type armedSource struct {
	BargeInSource
	armed *atomic.Int32
}

func (a armedSource) Watch(ctx context.Context, conversation string, generation int) (Arrivals, error) {
	a.armed.CompareAndSwap(0, 2)
	return a.BargeInSource.Watch(ctx, conversation, generation)
}

// A source that panics costs the turn its interruption, and nothing else: the
// message is on record and answered.
func TestPanickingSource(t *testing.T) {
	stages(t, "otherwise\n  reply", func(t *testing.T, s *stage) {
		s.config.BargeIn = panickingSource{}
		s.say("one")
		s.hear(2)
		s.say("two")
		s.pass(time.Minute)
		wantTranscript(t, s, "1/1 user accepted one", "1/2 assistant complete one", "2/3 user accepted two", "2/4 assistant complete two")
	})
}

type panickingSource struct{}

func (panickingSource) Watch(context.Context, string, int) (Arrivals, error) { panic("no source") }

// A sink of the host's that blocks or panics costs no word and no interruption:
// the turn is cut, and what was shown is on record (C-14.15, C-14.17).
func TestBadSinkIsCut(t *testing.T) {
	for name, sink := range map[string]func(context.Context, agent.Delta){
		"blocks": func(context.Context, agent.Delta) { <-time.After(time.Hour) },
		"panics": func(context.Context, agent.Delta) { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			barging(t, func(t *testing.T, s *stage) {
				hub := NewHub(HubConfig{})
				s.config.Hub, s.config.Agent.OnDelta = hub, sink
				f := listen(t, hub, "talk")
				s.say("endless")
				s.pass(2500 * time.Millisecond)
				shown := f.text(1)
				s.halt(1)
				s.pass(10 * time.Second)
				lines := s.quiet()
				if len(lines) != 2 || shown == "" || !strings.HasSuffix(lines[1], " "+shown) {
					t.Errorf("transcript %q, shown %q", lines, shown)
				}
				s.pass(2 * time.Hour)
				if hub.size() > 1 {
					t.Error("the hub keeps what is over")
				}
			})
		})
	}
}

// A tool that panics when one has cut in is told as failed, and the turn ends as
// every other that is cut.
func TestToolPanicsWhileInterrupted(t *testing.T) {
	stages(t, "when has \"go\"\n  call boom {}\nthen\n  say \"never\"\notherwise\n  reply", func(t *testing.T, s *stage) {
		s.config.BargeIn = InboxBargeIn(s.store)
		s.config.Agent.Tools = []agent.Tool{{
			Name: "boom", Description: taint.Plain("goes off"),
			Run: func(context.Context, jsontext.Value) (agent.Result, error) {
				<-time.After(5 * time.Second)
				panic("boom")
			},
		}}
		s.say("go")
		s.pass(2 * time.Second)
		s.halt(1)
		s.pass(time.Minute)
		s.say("next")
		s.pass(time.Minute)
		wantTranscript(t, s, "1/1 user accepted go", "1/2 assistant interrupted ", "2/3 user accepted next", "2/4 assistant complete next")
	})
}

// A conversation that nobody owns is cut and stopped like others, and a retry of
// nobody's is a retry (C-23.6, C-14.9).
func TestOwnerlessIsCut(t *testing.T) {
	barging(t, func(t *testing.T, s *stage) {
		s.owner = nil
		s.boot()
		say := func(id, text string) {
			if err := s.rt.Send(t.Context(), kernel.Caller{}, "talk", Topic, s.keys.signUser("talk", nil, id, text, time.Now()), id); err != nil {
				t.Fatal(err)
			}
		}
		say("a", "endless")
		s.pass(1500 * time.Millisecond)
		say("a", "endless")
		s.pass(time.Second)
		s.halt(1)
		s.pass(time.Second)
		say("b", "endless")
		s.pass(1500 * time.Millisecond)
		say("c", "next")
		s.pass(time.Second)
		wantTranscript(t, s,
			"1/1 user accepted endless", "1/2 assistant interrupted word word ", "2/3 user accepted endless",
			"2/4 assistant interrupted word ", "3/5 user accepted next", "3/6 assistant complete next")
	})
}

// A message id of 256 bytes, whatever they are, is a key like another: its retry
// does not cut its own turn (C-12.13, C-14.9).
func TestLongestMessageID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, endless)
		s.config.BargeIn = InboxBargeIn(s.store)
		id := strings.Repeat("\x01é", MaxMessageIDBytes/3) + "x"
		for range 3 {
			s.sendAs(s.owner, s.keys.signUser("talk", asker(s.owner), id, "endless", time.Now()), id)
			s.pass(1500 * time.Millisecond)
		}
		if lines := s.quiet(); len(lines) != 1 {
			t.Errorf("transcript %q", lines)
		}
	})
}

// An edit of an edit of an edit, each in a generation of its own, quotes what was
// typed last and nothing older, and none grows (C-27.8, C-27.14).
func TestEditsOfEditsAcrossRotations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, humming)
		s.config.Settings.RotateEveryTurns = 1
		s.say("version 0 \"]\n[This message")
		s.hear(2)
		for i := 1; i <= 30; i++ {
			s.edit(2*i-1, fmt.Sprintf("version %d %s", i, strings.Repeat("\x01", 600)))
			s.hear(2*i + 2)
		}
		sent := s.model.all()
		last := sent[len(sent)-1].Messages
		got := last[len(last)-1].Text
		if strings.Count(got, "This message edits") != 1 || !strings.Contains(got, `"version 29`) || strings.Contains(got, "version 28") {
			t.Errorf("the last edit's prompt is %q", got)
		}
	})
}

// A turn in which more tools were called than a carry takes does not end the
// conversation at the next rotation: it never refuses its own carry (C-11.17).
func TestMoreToolsThanACarryTakes(t *testing.T) {
	for calls, fine := range map[int]bool{maxCalledTools: true, maxCalledTools + 1: false} {
		settings := Settings{Agent: agent.Limits{Calls: calls}}.withDefaults()
		if err := settings.check(); (err == nil) != fine {
			t.Errorf("settings with %d calls in a turn: %v", calls, err)
		}
	}
}

// A close raced with a stop, a message, garbage and a restart at any point of a
// turn that uses tools: the turn has one answer, the conversation ends, and what
// waits behind the close is not run (C-26.2, C-26.4, C-46.3).
func TestManyCloseRaces(t *testing.T) {
	const text = "when has \"go\"\n  say \"a\"\n  wait 1s\n  call slow {}\nthen\n  wait 1s\n  say \"b\"\n  wait 1s\notherwise\n  reply"
	step := 1700 * time.Millisecond
	if underRace {
		step *= 4
	}
	for at := time.Duration(0); at < 15*time.Second; at += step {
		for order := range 6 {
			for _, restart := range []bool{false, true} {
				stages(t, text, func(t *testing.T, s *stage) {
					s.config.BargeIn = InboxBargeIn(s.store)
					s.config.Agent.Tools = []agent.Tool{slow()}
					s.say("go")
					s.pass(at)
					if restart {
						s.stop()
						s.bootFlow()
					}
					send := func(kind Kind, id, text string) {
						b := newBody(kind, "talk", &ann.Identity, id, time.Now())
						if b.Text = text; kind == KindStop {
							b.Turn = new(1)
						}
						err := s.rt.Send(t.Context(), kernel.By(*ann), "talk", Topic, s.keys.seal(b), id)
						if err != nil && !errors.Is(err, kernel.ErrEnded) { // the close may have been quicker
							t.Errorf("Send: %v", err)
						}
					}
					end, halt := func() { send(KindClose, "c", "") }, func() { send(KindStop, "s", "") }
					all := [][]func(){
						{end, halt},
						{halt, end},
						{end, func() { send(KindUser, "n", "never") }},
						{func() { send(KindUser, "n", "next") }, end},
						{func() { send("no kind", "x", "") }, end},
						{end, end},
					}
					for _, act := range all[order] {
						act()
					}
					s.pass(time.Hour)
					checkAnswered(t, s)
					lines := s.quiet()
					if state := s.state(); state.State != kernel.Completed || strings.Contains(fmt.Sprint(lines), "never") {
						t.Errorf("at %v, order %d, restart %v: the execution is %s %s; transcript %q", at, order, restart, state.State, state.Fault, lines)
					}
				})
			}
		}
	}
}
