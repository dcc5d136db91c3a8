package conversation_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
)

// TestChangedConfiguration: between two processes the system prompt, the limits,
// the tools and the keys change, in the middle of a turn too; nothing diverges,
// and the conversation goes on (C-11.16, C-13.5, C-41, K4, K5).
func TestChangedConfiguration(t *testing.T) {
	p := plan{
		script: `when has "slow"
  say "Wait. "
  wait 1h
otherwise
  reply`,
		settings: conversation.Settings{RotateEveryTurns: 5},
	}
	for _, hot := range []int{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			inner := memory.New()
			calls := &tally{n: map[string]int{}}
			h := build(t, p, journaltest.Wrap(inner), calls, hot)
			if _, err := h.client.Start(t.Context(), zoe, "talk"); err != nil {
				t.Fatal(err)
			}
			h.ask("1", "one")
			h.ask("2", "two")
			h.send("3", "slow")
			synctest.Wait() // the model is at it
			h.send("4", "queued under the old key")
			h.rt.Close()

			p := p
			p.script = "otherwise\n  reply"
			p.settings.RotateEveryTurns = 1
			p.system, p.tools = "You are another test.", []string{"look"}
			p.keys = [][]byte{[]byte("a new key of thirty-two bytes or more"), token}
			h = build(t, p, journaltest.Wrap(inner), calls, hot)
			h.settle()
			h.ask("5", "under the new key")
			h.rt.Close()

			p.keys = p.keys[:1] // the old one is dropped
			h = build(t, p, journaltest.Wrap(inner), calls, hot)
			defer h.rt.Close()
			h.ask("6", "six")
			h.ask("7", "seven")
			want := []string{
				`1/1 user accepted  "one"`, `1/2 assistant complete  "one"`,
				`2/3 user accepted  "two"`, `2/4 assistant complete  "two"`,
				`3/5 user accepted  "slow"`, `3/6 assistant complete  "slow"`,
				`4/7 user accepted  "queued under the old key"`, `4/8 assistant complete  "queued under the old key"`,
				`5/9 user accepted  "under the new key"`, `5/10 assistant complete  "under the new key"`,
				`6/11 user accepted  "six"`, `6/12 assistant complete  "six"`,
				`7/13 user accepted  "seven"`, `7/14 assistant complete  "seven"`,
			}
			if diff := cmp.Diff(want, h.transcript()); diff != "" {
				t.Errorf("hot %d: transcript (-want +got):\n%s", hot, diff)
			}
			info, err := h.rt.Query(t.Context(), kernel.By(*zoe), "talk")
			if err != nil {
				t.Fatal(err)
			}
			for g := range info.Generation + 1 {
				if _, err := h.rt.Rehearse(t.Context(), "talk", g); err != nil {
					t.Errorf("hot %d: Rehearse of generation %d: %v", hot, g, err)
				}
			}
		})
	}
}
