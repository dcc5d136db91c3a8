package conversation

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

const talkative = `
when has "time"
  say "Let me look."
  call clock {}
then
  say "It is late."
when has "silent"
  finish stop
when has "broken"
  say "I was about to"
  fail unavailable after 31s "at secret.host"
when has "refused"
  fail refused "key secret"
otherwise
  reply
`

// A dialogue: turns, ordinals, a tool, an empty reply, two failures, the close
// (C-13.16, C-15.3 to C-15.8, C-25.1, C-26.2).
func TestDialogue(t *testing.T) {
	stages(t, talkative, func(t *testing.T, s *stage) {
		for i, text := range []string{"hello", "what time is it", "be silent", "broken", "refused", "bye"} {
			s.say(text)
			s.hear(2*i + 2)
		}
		s.send(s.keys.signClose("talk", &ann.Identity, "c1", time.Now()), "c1")
		got := s.quiet()
		want := []string{
			"1/1 user accepted hello", "1/2 assistant complete hello",
			"2/3 user accepted what time is it", "2/4 assistant complete Let me look.\n\nIt is late.",
			"3/5 user accepted be silent", "3/6 assistant complete ",
			"4/7 user accepted broken", "4/8 assistant failed model-error I was about to",
			"5/9 user accepted refused", "5/10 assistant failed model-error ",
			"6/11 user accepted bye", "6/12 assistant complete bye",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("transcript (-want +got):\n%s", diff)
		}
		for _, r := range s.records() {
			if r.Asker == nil || *r.Asker != ann.Identity {
				t.Errorf("record %d has the asker %v, want %v", r.Ord, r.Asker, ann.Identity)
			}
			if (r.Status == StatusFailed) != (r.ErrorID != "") {
				t.Errorf("record %d is %s and has the error id %q", r.Ord, r.Status, r.ErrorID)
			}
		}
		if info := s.state(); info.State != kernel.Completed {
			t.Errorf("the execution is %s after the close", info.State)
		}

		// The last request: the asker's words fenced, the model's own plain, a
		// placeholder where it said nothing, roles alternating (C-13.10, C-13.17,
		// C-13.18).
		sent := s.model.all()
		last := sent[len(sent)-1]
		var wantMessages []model.Message
		for i, pair := range [][2]string{
			{"hello", "hello"},
			{"what time is it", "Let me look.\n\nIt is late."},
			{"be silent", "(no reply)"},
			{"broken", "I was about to"},
			{"refused", "(no reply: the request failed)"},
			{"bye", ""},
		} {
			wantMessages = append(wantMessages, model.Message{Role: model.User, Text: taint.Fence(taint.Tainted(pair[0], taint.OriginUser))})
			if i < 5 {
				wantMessages = append(wantMessages, model.Message{Role: model.Assistant, Text: pair[1]})
			}
		}
		if diff := cmp.Diff(wantMessages, last.Messages); diff != "" {
			t.Errorf("last request (-want +got):\n%s", diff)
		}
		if want := "Be brief.\n\n" + taint.Explanation; last.System != want {
			t.Errorf("system prompt %q, want %q", last.System, want)
		}
	})
}

// The ids of a dialogue's decisions are frozen (C-16). A finished turn of a
// plain conversation is five facts before its model call and two behind it.
func TestDecisionIDs(t *testing.T) {
	play := func(t *testing.T, rotate int) (ids []string) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, talkative)
			s.config.Settings.RotateEveryTurns = rotate
			s.say("hello")
			s.hear(2)
			s.say("what time is it")
			s.hear(4)
			s.send(encoded(t, "no envelope"), "")
			s.hear(5)
			s.send(s.keys.signClose("talk", &ann.Identity, "c1", time.Now()), "c1")
			s.quiet()
			for _, e := range s.events() {
				ids = append(ids, strings.TrimSpace(e.Kind+" "+e.ID))
				if e.Kind != kernel.KindDecided {
					continue
				}
				decided, err := kernel.DecodeEvent[kernel.Decided](e)
				if err != nil || !slices.Contains(RecordedFactSources(), decided.Source) { // C-6.4
					t.Errorf("decision %s has the source %q, %v", e.ID, decided.Source, err)
				}
			}
		})
		return ids
	}
	turn1 := []string{
		"DECIDED conv#o1:admit", "DECIDED conv#o1:user",
		"DECIDED conv#o1#abort:model:1", "REQUESTED conv#o1#model:1",
		"SETTLED conv#o1#model:1", "DECIDED conv#o1:reply",
	}
	turn2 := []string{
		"DECIDED conv#o2:admit", "DECIDED conv#o2:user",
		"DECIDED conv#o2#abort:model:1", "REQUESTED conv#o2#model:1", "SETTLED conv#o2#model:1",
		"DECIDED conv#o2#abort:tools:1", "REQUESTED conv#o2#tool:1.1", "SETTLED conv#o2#tool:1.1",
		"DECIDED conv#o2#abort:model:2", "REQUESTED conv#o2#model:2", "SETTLED conv#o2#model:2",
		"DECIDED conv#o2:reply",
	}
	rejected := []string{"DECIDED conv#o3:admit", "DECIDED conv#o3:user"}
	closed := []string{"DECIDED conv#o4:admit", "DECIDED conv#closed", "ENDED"}
	start := []string{"STARTED", "DECIDED conv#settings"}

	var want []string
	for i, part := range [][]string{turn1, turn2, rejected, closed} {
		if i == 0 {
			want = append(want, start...)
		}
		want = append(want, "MESSAGE_CONSUMED conversation:turn#"+string(rune('1'+i)))
		want = append(want, part...)
	}
	if diff := cmp.Diff(want, play(t, 0)); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}

	want = append(append(append([]string{}, start...), "MESSAGE_CONSUMED conversation:turn#1"), turn1...)
	for _, part := range [][]string{turn2, rejected, closed} {
		consumed := "MESSAGE_CONSUMED conversation:turn#1"
		if len(want) < 12 {
			consumed = "MESSAGE_CONSUMED conversation:turn#2"
		}
		want = append(append(append(want, consumed, "CONTINUED"), start...), part...)
	}
	if diff := cmp.Diff(want, play(t, 1)); diff != "" {
		t.Errorf("ids with a rotation at every envelope (-want +got):\n%s", diff)
	}
}

// A wake that replays finished turns, replied or failed, makes no model call,
// no tool call, no hook call, and reads the journal no more often than a wake
// without any (C-13.20, C-25.6, C-42.2).
func TestReplayCallsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, talkative)
		hooks := 0
		s.config.OnError = func(string, error, Where) { hooks++ }
		for i, text := range []string{"hello", "what time is it", "broken", "refused"} {
			s.say(text)
			s.hear(2*i + 2)
		}
		calls, before := len(s.model.all()), s.transcript()
		if hooks != 2 {
			t.Fatalf("the error hook was called %d times for two failures", hooks)
		}
		for range 3 {
			s.stop()
			counts := s.store.Counts()
			s.bootFlow()
			s.send(encoded(t, "wake"), "")
			s.quiet()
			if made := s.store.Counts().Since(counts); made.Subscribes != 0 || made.Reads > 8 {
				t.Errorf("the wake made %+v", made)
			}
		}
		after := s.transcript()
		if diff := cmp.Diff(before, after[:len(before)]); diff != "" {
			t.Errorf("the transcript changed (-before +after):\n%s", diff)
		}
		if len(s.model.all()) != calls || hooks != 2 {
			t.Errorf("replays made %d model calls and %d hook calls", len(s.model.all())-calls, hooks-2)
		}
	})
}

// T10, T21: what is sent while a turn runs waits in the log and is answered
// when the turn is over.
func TestMessageDuringATurn(t *testing.T) {
	stages(t, "otherwise\n  wait 10s\n  reply", func(t *testing.T, s *stage) {
		s.say("one")
		s.quiet()
		s.say("two")
		s.say("three")
		if got := s.quiet(); len(got) != 1 {
			t.Errorf("during the turn the transcript is %q", got)
		}
		want := []string{
			"1/1 user accepted one", "1/2 assistant complete one",
			"2/3 user accepted two", "2/4 assistant complete two",
			"3/5 user accepted three", "3/6 assistant complete three",
		}
		if diff := cmp.Diff(want, s.hear(6)); diff != "" {
			t.Errorf("transcript (-want +got):\n%s", diff)
		}
	})
}

// T11: the process dies during a turn with a message queued behind it. The
// restart settles the turn and runs the queue.
func TestRestartDuringATurn(t *testing.T) {
	stages(t, "otherwise\n  wait 10s\n  reply", func(t *testing.T, s *stage) {
		s.say("one")
		s.say("two")
		s.pass(5 * time.Second)
		s.reboot()
		want := []string{
			"1/1 user accepted one", "1/2 assistant complete one",
			"2/3 user accepted two", "2/4 assistant complete two",
		}
		if diff := cmp.Diff(want, s.hear(4)); diff != "" {
			t.Errorf("transcript (-want +got):\n%s", diff)
		}
		if n := len(s.model.all()); n != 3 {
			t.Errorf("%d model calls, want 3: one was cut", n)
		}
	})
}

// T26, T27, C-19.10: a retry with the same message id, signed anew, is one
// turn: at once, during the turn, and after it, over rotations too.
func TestRetries(t *testing.T) {
	stages(t, "otherwise\n  wait 10s\n  reply", func(t *testing.T, s *stage) {
		retry := func() { s.send(s.keys.signUser("talk", &ann.Identity, "same", "one", time.Now()), "same") }
		retry()
		retry()
		s.pass(5 * time.Second)
		retry()
		s.hear(2)
		retry()
		s.say("two")
		s.hear(4)
		retry()
		want := []string{
			"1/1 user accepted one", "1/2 assistant complete one",
			"2/3 user accepted two", "2/4 assistant complete two",
		}
		if diff := cmp.Diff(want, s.quiet()); diff != "" {
			t.Errorf("transcript (-want +got):\n%s", diff)
		}
	})
}

// Nobody's conversation is nobody's to speak in (C-23.6).
func TestOwnerlessDialogue(t *testing.T) {
	stages(t, talkative, func(t *testing.T, s *stage) {
		s.owner = nil
		s.say("hello")
		s.send(s.keys.signUser("talk", &ann.Identity, "a", "I am ann", time.Now()), "a")
		want := []string{
			"1/1 user accepted hello", "1/2 assistant complete hello",
			"0/3 user rejected unauthenticated ",
		}
		if diff := cmp.Diff(want, s.hear(3)); diff != "" {
			t.Errorf("transcript (-want +got):\n%s", diff)
		}
		if r := s.records()[0]; r.Asker != nil {
			t.Errorf("the record names %v", r.Asker)
		}
	})
}

// A turn that hits a limit of the agent says so, and the limit in force is the
// recorded one (C-11.16).
func TestLimitsAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "otherwise\n  call clock {}\n  call clock {}\n  call clock {}\nthen\n  say \"three\"")
		s.config.Agent.Limits = agent.Limits{Calls: 2}
		s.say("one")
		limited := "1/2 assistant complete [This turn was ended early: it reached its limit of 2 tool calls.]"
		if got := s.hear(2); got[1] != limited {
			t.Errorf("reply %q, want %q", got[1], limited)
		}
		s.config.Agent.Limits = agent.Limits{}
		s.reboot()
		s.say("two")
		if got := s.hear(4); got[3] != strings.Replace(limited, "1/2", "2/4", 1) {
			t.Errorf("in the same generation the reply is %q", got[3])
		}
	})
}
