package conversation

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// paced is a model whose words come when a test can tell them apart.
const paced = `
when has "endless"
  forever "word " 1s
when has "refused"
  fail refused
when has "mute"
  wait 2s
  finish stop
otherwise
  wait 3s
  say "Yes. "
  wait 4s
  say "No."
`

// Each turn is told once, with how it ended and what it took: to its first words
// and to its record, counted from the admission. A replay tells nothing (C-13.20).
func TestOnTurn(t *testing.T) {
	stages(t, paced, func(t *testing.T, s *stage) {
		var told []TurnReport
		s.config.BargeIn = InboxBargeIn(s.store)
		s.config.OnTurn = func(r TurnReport) { told = append(told, r) }
		s.say("hello")
		s.hear(2)
		s.say("refused")
		s.hear(4)
		s.say("mute")
		s.hear(6)
		s.say("endless")
		s.pass(5500 * time.Millisecond)
		s.say("hello")
		s.hear(10)
		s.reboot()
		s.send(encoded(t, "wake"), "")
		s.quiet()
		want := []TurnReport{
			{Status: StatusComplete, FirstWords: 3 * time.Second, Took: 7 * time.Second},
			{Status: StatusFailed, Reason: ReasonModelError},
			{Status: StatusComplete, Took: 2 * time.Second},
			{Status: StatusInterrupted, FirstWords: time.Second, Took: 5500 * time.Millisecond},
			{Status: StatusComplete, FirstWords: 3 * time.Second, Took: 7 * time.Second},
		}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("told of (-want +got):\n%s", diff)
		}
	})
}

// A turn that a crash cuts is told when it has ended, and its time is that which
// the person waited.
func TestOnTurnAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, paced)
		var told []TurnReport
		s.config.OnTurn = func(r TurnReport) { told = append(told, r) }
		s.say("hello")
		s.pass(4 * time.Second)
		s.stop()
		s.pass(time.Minute)
		s.bootFlow()
		s.hear(2)
		want := []TurnReport{{Status: StatusComplete, FirstWords: 67 * time.Second, Took: 71 * time.Second}}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("told of (-want +got):\n%s", diff)
		}
	})
}

// Each rejection is told once with its reason, those that are only counted too,
// and never on a replay (C-13.3, C-13.12, C-13.20).
func TestOnRejected(t *testing.T) {
	stages(t, "otherwise\n  reply", func(t *testing.T, s *stage) {
		var told []Reason
		s.config.Settings.MaxInvalidRecords = 1
		s.config.OnRejected = func(r Reason) { told = append(told, r) }
		s.summarize(Budget{ContextWindow: 700, ReserveOutputTokens: 100}, (&recorder{}).run)
		s.say("hello")
		s.hear(2)
		s.send(encoded(t, "garbage"), "")
		s.send(encoded(t, map[string]string{"body": "forged"}), "")
		s.sendAs(s.owner, s.keys.signUser("talk", asker(s.owner), "m1", "hello", time.Now()), "again")
		s.edit(99, "instead")
		s.say(strings.Repeat("too much ", 400))
		s.quiet()
		s.reboot()
		s.say("goodbye")
		s.quiet()
		want := []Reason{ReasonMalformed, ReasonUnauthenticated, ReasonReplayed, ReasonEditInvalid, ReasonPromptTooLarge}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("told of (-want +got):\n%s", diff)
		}
	})
}

// A hook that panics stops nothing.
func TestHooksPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "otherwise\n  reply")
		told := 0
		s.config.OnTurn = func(TurnReport) { told++; panic("hook") }
		s.config.OnRejected = func(Reason) { told++; panic("hook") }
		s.send(encoded(t, "garbage"), "")
		for i := range 2 {
			s.say(fmt.Sprint("turn ", i+1))
			s.hear(2*i + 3)
		}
		wantTranscript(t, s, "0/1 user rejected malformed ",
			"1/2 user accepted turn 1", "1/3 assistant complete turn 1", "2/4 user accepted turn 2", "2/5 assistant complete turn 2")
		if told != 3 {
			t.Errorf("the hooks were called %d times, want 3", told)
		}
	})
}
