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

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

const endless = `
when has "endless"
  forever "word " 1s
when has "deaf"
  deaf
  forever "word " 1s
when has "tools"
  say "Wait."
  call slow {}
then
  say "Done."
otherwise
  reply
`

// barging runs a test of a conversation into which one may cut, in all variants.
func barging(t *testing.T, play func(t *testing.T, s *stage)) {
	t.Helper()
	stages(t, endless, func(t *testing.T, s *stage) {
		s.config.BargeIn = InboxBargeIn(s.store)
		s.config.Agent.Tools = append(s.config.Agent.Tools, slow())
		play(t, s)
	})
}

// slow is a tool that takes ten seconds and notices nothing meanwhile.
func slow() agent.Tool {
	return agent.Tool{
		Name: "slow", Description: taint.Plain("is slow"),
		Run: func(context.Context, jsontext.Value) (agent.Result, error) {
			<-time.After(10 * time.Second)
			return agent.Result{Text: "done"}, nil
		},
	}
}

func wantTranscript(t *testing.T, s *stage, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, s.quiet()); diff != "" {
		t.Errorf("transcript (-want +got):\n%s", diff)
	}
}

// A message that lands in mid-stream cuts the turn: its reply keeps what was
// said, later turns see it, and the message is answered (C-14.1, C-14.7, C-14.8,
// T53, T65). A model that notices nothing is cut by the wrapper (C-14.15).
func TestBargeInDuringAStream(t *testing.T) {
	for _, first := range []string{"endless", "deaf"} {
		t.Run(first, func(t *testing.T) {
			barging(t, func(t *testing.T, s *stage) {
				s.say(first)
				s.pass(3500 * time.Millisecond)
				s.say("stop it")
				s.pass(time.Minute)
				wantTranscript(t, s,
					"1/1 user accepted "+first, "1/2 assistant interrupted word word word ",
					"2/3 user accepted stop it", "2/4 assistant complete stop it")
				sent := s.model.all()
				if len(sent) != 2 {
					t.Fatalf("the model was asked %d times, want 2", len(sent))
				}
				want := []model.Message{
					{Role: model.User, Text: taint.Fence(taint.Tainted(first, taint.OriginUser))},
					{Role: model.Assistant, Text: "word word word "},
					{Role: model.User, Text: taint.Fence(taint.Tainted("stop it", taint.OriginUser))},
				}
				if diff := cmp.Diff(want, sent[1].Messages); diff != "" {
					t.Errorf("the next request (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A message that was waiting before the turn began is found, at the first model
// call: nothing is said in vain (C-14.3). Twice in a row, too (T12).
func TestMessagesThatWait(t *testing.T) {
	barging(t, func(t *testing.T, s *stage) {
		s.boot()
		s.stop()
		s.rt = nil
		s.bootFlow() // its first wake comes with the messages
		for _, text := range []string{"endless one", "endless two", "three"} {
			s.say(text)
		}
		s.pass(time.Minute)
		lines := s.quiet()
		if len(lines) != 6 || !strings.Contains(lines[1], "interrupted") || lines[5] != "3/6 assistant complete three" {
			t.Errorf("transcript %q", lines)
		}
	})
}

// Without a source a message waits for the turn's end (C-11.8), and with stops
// alone as well.
func TestMessagesQueueWithoutASource(t *testing.T) {
	for _, stopOnly := range []bool{false, true} {
		stages(t, "otherwise\n  repeat 3 \"a\" 1s", func(t *testing.T, s *stage) {
			if stopOnly {
				s.config.BargeIn, s.config.StopOnly = InboxBargeIn(s.store), true
			}
			s.say("one")
			s.pass(1500 * time.Millisecond)
			s.say("two")
			s.send(encoded(t, "garbage"), "")
			s.pass(time.Minute)
			wantTranscript(t, s,
				"1/1 user accepted one", "1/2 assistant complete aaa", "2/3 user accepted two",
				"2/4 assistant complete aaa", "0/5 user rejected malformed ")
		})
	}
}

// A retry of the turn being answered does not cut it, nor does a late retry of an
// earlier turn, also one of an earlier generation (C-14.9). Sent under the same id
// by somebody else it is a new message, and does (C-14.10).
func TestRetryIsNoBargeIn(t *testing.T) {
	barging(t, func(t *testing.T, s *stage) {
		s.say("one")
		s.hear(2)
		s.say("endless")
		s.pass(2500 * time.Millisecond)
		s.sayAgain(2, "endless")
		s.pass(time.Second)
		s.sayAgain(1, "one")
		s.pass(time.Second)
		if lines := s.quiet(); len(lines) != 3 {
			t.Fatalf("a retry cut the turn: %q", lines)
		}
		payload := s.keys.signUser("talk", asker(s.owner), "m2", "endless", time.Now())
		s.sendAs(person("acme", "bob"), payload, "m2")
		s.pass(time.Second)
		wantTranscript(t, s,
			"1/1 user accepted one", "1/2 assistant complete one",
			"2/3 user accepted endless", "2/4 assistant interrupted word word word word ",
			"0/5 user rejected replayed endless")
	})
}

// A message without a key cuts, its duplicates too (C-14.11), and is rejected.
func TestKeylessMessageCuts(t *testing.T) {
	barging(t, func(t *testing.T, s *stage) {
		for i := range 2 {
			s.say("endless")
			s.pass(1500 * time.Millisecond)
			s.send(encoded(t, "no envelope"), "")
			s.pass(time.Second)
			lines := s.quiet()
			if last := lines[len(lines)-1]; len(lines) != 3*(i+1) || !strings.Contains(last, "rejected malformed") || !strings.Contains(lines[len(lines)-2], "interrupted word") {
				t.Errorf("transcript %q", lines)
			}
		}
	})
}

// A close that lands during a turn cuts it, and is consumed (C-26.4).
func TestCloseCuts(t *testing.T) {
	barging(t, func(t *testing.T, s *stage) {
		s.say("endless")
		s.pass(1500 * time.Millisecond)
		s.sendAs(ann, s.keys.signClose("talk", &ann.Identity, "c", time.Now()), "c")
		s.pass(time.Second)
		wantTranscript(t, s, "1/1 user accepted endless", "1/2 assistant interrupted word ")
		if info := s.state(); info.State != kernel.Completed {
			t.Errorf("the execution is %s", info.State)
		}
	})
}

// A tool call in flight completes, its result is on record, and the turn ends at
// the next checkpoint, with no dangling call (C-14.17, C-10.11, T57, T63). However
// often one cuts in meanwhile, the next turn works (T67), and its model is told
// that the tool was called (T59).
func TestBargeInDuringATool(t *testing.T) {
	barging(t, func(t *testing.T, s *stage) {
		s.say("use tools")
		s.pass(2 * time.Second)
		s.say("first")
		s.pass(2 * time.Second)
		s.say("second")
		s.pass(time.Minute)
		lines := s.quiet()
		if len(lines) != 6 || lines[1] != "1/2 assistant interrupted Wait." || lines[5] != "3/6 assistant complete second" {
			t.Errorf("transcript %q", lines)
		}
		if log := s.bytes(); strings.Count(log, `REQUESTED conv#o1#tool:1.1`) != 1 || strings.Count(log, "SETTLED conv#o1#tool:1.1") != 1 {
			t.Errorf("the tool's call is not whole in the log:\n%s", log)
		}
		sent := s.model.all()
		told := sent[len(sent)-1].Messages[1].Text
		if !strings.HasPrefix(told, "Wait.\n\n[") || !strings.Contains(told, "slow") {
			t.Errorf("the next turn's model is told %q of the cut one", told)
		}
	})
}

// However much tool traffic lies between a message and the last consumption, it
// is found (C-14.20): the turn is recovered in the middle, so that it has to look
// back over all of it.
func TestBargeInBehindToolTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rounds strings.Builder
		for range 40 {
			rounds.WriteString("then\n  call clock {}\n  call clock {}\n")
		}
		s := newStage(t, "when has \"tools\"\n  call clock {}\n"+rounds.String()+"then\n  forever \"a\" 1s\notherwise\n  reply")
		s.config.BargeIn = InboxBargeIn(s.store)
		s.config.Agent.Limits = agent.Limits{Rounds: 100, Calls: 200}
		s.say("tools")
		s.pass(1500 * time.Millisecond)
		s.stop()
		if n := len(s.events()); n < 300 {
			t.Fatalf("the log has %d events, too few for this test", n)
		}
		s.bootFlow()
		s.say("enough")
		s.pass(time.Minute)
		if lines := s.quiet(); len(lines) != 4 || !strings.HasPrefix(lines[1], "1/2 assistant interrupted") {
			t.Errorf("transcript %q", lines)
		}
	})
}

// The process dies after the message was stored and before it was consumed: the
// recovered turn is cut all the same, at its model call, which says nothing any
// more (C-14.18). A restart then replays all of it with no call (C-14.19, C-14.6).
func TestBargeInAcrossACrash(t *testing.T) {
	barging(t, func(t *testing.T, s *stage) {
		s.say("endless")
		s.pass(2500 * time.Millisecond)
		s.store.Before(func(_ int, batch []journal.Append) error { // nothing but the message gets through
			if batch[0].Stream != kernel.InboxStream("talk") {
				return errors.New("the process is dead")
			}
			return nil
		})
		s.say("next")
		s.stop()
		s.store.Before(nil)
		s.reboot()
		s.pass(time.Minute)
		want := []string{
			"1/1 user accepted endless", "1/2 assistant interrupted ", "2/3 user accepted next", "2/4 assistant complete next",
		}
		wantTranscript(t, s, want...)

		s.stop()
		calls := len(s.model.all())
		s.config.Agent.Model = panicking{s.model, func() { panic("an old turn calls the model") }}
		s.config.BargeIn = noSource{t}
		s.reboot()
		s.send(encoded(t, "wakes it"), "")
		s.pass(time.Minute)
		wantTranscript(t, s, append(want, "0/5 user rejected malformed ")...)
		if len(s.model.all()) != calls || s.state().State != kernel.Running {
			t.Errorf("%d model calls after %d, state %s", len(s.model.all()), calls, s.state().State)
		}
	})
}

// noSource is a source that nobody may ask.
type noSource struct{ t *testing.T }

func (n noSource) Watch(context.Context, string, int) (Arrivals, error) {
	n.t.Error("a replay subscribes")
	return nil, errors.New("no")
}

// Three turns, with a restart after the second, are three subscriptions, and none
// is left (C-14.12, C-14.13, C-3.6).
func TestSubscriptionsOfTurns(t *testing.T) {
	barging(t, func(t *testing.T, s *stage) {
		counted := &countedSource{BargeInSource: InboxBargeIn(s.store)}
		s.config.BargeIn = counted
		s.say("one")
		s.hear(2)
		s.say("endless")
		s.pass(1500 * time.Millisecond)
		s.halt(2)
		s.hear(4)
		s.reboot()
		s.say("three")
		s.hear(6)
		s.quiet()
		if n := counted.n.Load(); n != 3 {
			t.Errorf("%d subscriptions for three turns", n)
		}
		s.stop()
		if left := s.store.Counts().Subscriptions; left != 0 {
			t.Errorf("%d subscriptions are left", left)
		}
	})
}

type countedSource struct {
	BargeInSource
	n atomic.Int32
}

func (c *countedSource) Watch(ctx context.Context, conversation string, generation int) (Arrivals, error) {
	c.n.Add(1)
	return c.BargeInSource.Watch(ctx, conversation, generation)
}

// A turn whose inbox cannot be watched runs to its end.
func TestUnwatchableInbox(t *testing.T) {
	stages(t, "otherwise\n  repeat 3 \"a\" 1s", func(t *testing.T, s *stage) {
		s.config.BargeIn = brokenSource{}
		s.say("one")
		s.pass(1500 * time.Millisecond)
		s.say("two")
		s.pass(time.Minute)
		if lines := s.quiet(); len(lines) != 4 || lines[1] != "1/2 assistant complete aaa" {
			t.Errorf("transcript %q", lines)
		}
	})
}

type brokenSource struct{}

func (brokenSource) Watch(context.Context, string, int) (Arrivals, error) {
	return nil, errors.New("no subscription")
}

// The retry of a model call is given up when one cuts in, however long the
// service asked to wait.
func TestBargeInWhileWaitingToTryAgain(t *testing.T) {
	stages(t, "when has \"busy\"\n  fail rate-limited after 29s\notherwise\n  reply", func(t *testing.T, s *stage) {
		s.config.BargeIn = InboxBargeIn(s.store)
		s.say("busy")
		s.pass(2 * time.Second)
		s.say("next")
		s.pass(time.Second)
		wantTranscript(t, s,
			"1/1 user accepted busy", "1/2 assistant interrupted ", "2/3 user accepted next", "2/4 assistant complete next")
	})
}

// An interruption at each checkpoint of the loop, and inside each model call, is
// replayed from the log alone (C-10.8, C-10.9).
func TestInterruptionAtEverySite(t *testing.T) {
	sites := map[string]struct {
		at   time.Duration
		fact string
		text string
	}{
		"in the first model call":  {500 * time.Millisecond, "conv#o1#model:1:interrupt", "a"},
		"in the tool":              {5 * time.Second, "conv#o1#abort:model:2", "a b"},
		"in the second model call": {12500 * time.Millisecond, "conv#o1#model:2:interrupt", "a b\n\nc"},
	}
	for name, site := range sites {
		t.Run(name, func(t *testing.T) {
			stages(t, "when has \"go\"\n  say \"a\"\n  wait 1s\n  say \" b\"\n  call slow {}\nthen\n  wait 1s\n  say \"c\"\n  wait 9s\notherwise\n  reply", func(t *testing.T, s *stage) {
				s.config.BargeIn = InboxBargeIn(s.store)
				s.config.Agent.Tools = []agent.Tool{slow()}
				s.say("go")
				s.pass(site.at)
				s.say("next")
				s.pass(time.Minute)
				wantTranscript(t, s, "1/1 user accepted go", "1/2 assistant interrupted "+site.text, "2/3 user accepted next", "2/4 assistant complete next")
				verdict := false
				for _, e := range s.events() {
					if decided, err := kernel.DecodeEvent[kernel.Decided](e); err == nil && e.ID == site.fact {
						verdict = string(decided.Value) == "true"
					}
				}
				if !verdict {
					t.Errorf("%s does not say that the run was cut", site.fact)
				}
				s.config.Agent.Model = panicking{s.model, func() { panic("no") }}
				s.config.BargeIn = nil
				s.reboot()
				s.send(encoded(t, "wakes it"), "")
				s.pass(time.Second)
				if state := s.state(); state.State != kernel.Running {
					t.Errorf("a replay without the signal: %s %s", state.State, state.Fault)
				}
			})
		})
	}
}

// PendingInbox looks back over at most 8,192 events, and tells nothing rather than
// guess (C-14.4, C-14.5).
func TestPendingInbox(t *testing.T) {
	w := newMemoryWorld(t)
	l := w.lay("talk").flush()
	look := func(want journal.Seq, known bool) {
		t.Helper()
		got, ok, err := PendingInbox(t.Context(), w.store, "talk", l.generation)
		if err != nil || got != want || ok != known {
			t.Errorf("PendingInbox = %d, %v, %v; want %d, %v", got, ok, err, want, known)
		}
	}
	look(0, true) // the start: nothing was consumed yet
	l.event(kernel.KindConsumed, "x#1", kernel.Consumed{Topic: "another", Cursor: 9}).flush()
	look(0, true)
	l.event(kernel.KindConsumed, Topic+"#1", kernel.Consumed{Topic: Topic, Cursor: 7}).flush()
	look(7, true)
	for range 64 {
		l.noise(128).flush()
	}
	look(0, false)
	l.event(kernel.KindConsumed, Topic+"#2", kernel.Consumed{Topic: Topic, Cursor: 8}).noise(8191).flush()
	look(8, true)
	l.event(kernel.KindContinued, "", nil).flush()
	l.generation++
	l.next = 0
	l.event(kernel.KindStarted, "", kernel.Started{
		Flow: DefaultFlowName, Version: "1", Principal: l.owner, Cursors: map[string]journal.Seq{Topic: 8},
	}).flush()
	look(8, true)
	if _, known, err := PendingInbox(t.Context(), w.store, "nothing", 0); known || err != nil {
		t.Errorf("PendingInbox of no conversation: %v, %v", known, err)
	}
}

// Only the last 256 turns are known by their keys (C-14.9), however many other
// ids stand between them.
func TestTurnKeys(t *testing.T) {
	var r replaySet
	for i := range 300 {
		r.enter(Seen{Key: fmt.Sprint("turn ", i), IssuedAt: int64(i + 1), Turn: true})
		r.enter(Seen{Key: fmt.Sprint("edit ", i), IssuedAt: int64(i + 1)})
	}
	for key, want := range map[string]bool{"turn 299": true, "turn 44": true, "turn 43": false, "edit 299": false, "": false} {
		if got := r.begunTurn(key); got != want {
			t.Errorf("begunTurn(%q) = %v, want %v", key, got, want)
		}
	}
}

// A message that came past the client, and so bears no key of its own out, does
// not cut the turn that answers it: the look for what waits comes when it is known
// to be consumed (K9).
func TestMessageDoesNotCutItself(t *testing.T) {
	barging(t, func(t *testing.T, s *stage) {
		s.sendAs(s.owner, s.keys.signUser("talk", asker(s.owner), "m", "hello", time.Now()), "another id")
		wantTranscript(t, s, "1/1 user accepted hello", "1/2 assistant complete hello")
	})
}

// A turn that is cut just when its model asks for a tool: the call was never whole,
// so it is neither run nor told of, and the next turn's request is whole (T61).
func TestBargeInAtAToolCall(t *testing.T) {
	stages(t, "when has \"tools\"\n  say \"Wait.\"\n  call slow {}\n  wait 50s\notherwise\n  reply", func(t *testing.T, s *stage) {
		s.config.BargeIn = InboxBargeIn(s.store)
		s.config.Agent.Tools = []agent.Tool{slow()}
		s.say("use tools")
		s.pass(time.Second)
		s.say("next")
		s.pass(time.Second)
		wantTranscript(t, s,
			"1/1 user accepted use tools", "1/2 assistant interrupted Wait.", "2/3 user accepted next", "2/4 assistant complete next")
		if strings.Contains(s.bytes(), "tool.slow") {
			t.Error("a call that was not whole was run")
		}
		if told := s.model.all()[1].Messages[1]; told.Text != "Wait." || len(told.Calls) != 0 {
			t.Errorf("the next turn's model is told %+v", told)
		}
	})
}
