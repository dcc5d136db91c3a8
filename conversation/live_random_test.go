package conversation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/kernel"
)

// What one who follows live has before them of a turn when it is over is the
// beginning of its record, whatever is cut, stopped, repeated, edited and restarted
// meanwhile; only a run that came back and said nothing more leaves words that its
// record, which takes their place, does not have (C-28.5, C-28.6, C-28.8).
func TestFollowerOfRandomDialogues(t *testing.T) {
	dialogues := uint64(1_000)
	if underRace {
		dialogues /= 20
	}
	for seed := range dialogues {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			s := newStage(t, "otherwise\n  reply")
			s.hot, s.config.Settings.RotateEveryTurns = -random.IntN(2), random.IntN(3)
			s.config.BargeIn, s.config.StopOnly = InboxBargeIn(s.store), random.IntN(8) == 0
			s.model.inner = improviser{seed}
			hub := NewHub(HubConfig{})
			s.config.Hub = hub
			s.config.Agent.Tools = []agent.Tool{dawdling("look", kernel.Repeatable), dawdling("act", kernel.Once)}
			f := listen(t, hub, "talk")
			cut := map[int]bool{} // turns in which the process came back
			for range 2 + random.IntN(6) {
				switch random.IntN(8) {
				case 0:
					s.halt(1 + random.IntN(4))
				case 1:
					s.edit(1+random.IntN(6), "an edit")
				case 2, 3:
					if s.rt != nil {
						s.stop()
						if records := s.records(); len(records) > 0 && records[len(records)-1].Status == StatusAccepted {
							cut[records[len(records)-1].Turn] = true
						}
						s.boot()
					}
				default:
					s.say(fmt.Sprint("message ", s.sent))
				}
				s.pass(time.Duration(random.IntN(4000)) * time.Millisecond)
			}
			s.pass(time.Hour)
			s.quiet()
			for _, r := range s.records() {
				shown := f.text(r.Turn)
				if r.Role != RoleAssistant || strings.HasPrefix(r.Text, shown) || cut[r.Turn] && strings.HasPrefix(shown, r.Text) {
					continue
				}
				t.Errorf("seed %d, turn %d: the record (%s) is %q, shown was %q: %q", seed, r.Turn, r.Status, r.Text, shown, f.so())
			}
			s.stop()
			if n := hub.size(); n > 1 {
				t.Errorf("seed %d: %d channels are left", seed, n)
			}
		})
	}
}
