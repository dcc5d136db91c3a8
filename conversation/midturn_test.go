package conversation

import (
	"context"
	"encoding/json/jsontext"
	"testing"
	"time"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
	"github.com/parley-run/parley/tool"
	"github.com/parley-run/parley/tool/tooltest"
)

// In the middle of a turn, at each of its places, the process comes back with
// another configuration: no log diverges, the turn has one answer, and the
// conversation goes on (K4, K5, C-11.14, C-11.16).
func TestManyConfigurationChangesInMidTurn(t *testing.T) {
	const text = `
when has "go"
  say "a"
  wait 1s
  call slow {}
  call wiki_find {}
then
  wait 1s
  say "b"
  call slow {}
then
  wait 1s
  say "c"
otherwise
  reply
`
	set := tooltest.NewSet("wiki", kernel.Once)
	set.Put(tool.Offer{Name: "find", Description: taint.Plain("Finds.")}, func(context.Context, jsontext.Value) (tool.Result, error) {
		return tool.Result{Text: "tea"}, nil
	})
	beside := func(s *stage) {
		s.config.Agent.Compactor, s.config.Agent.WriteBack, s.config.Agent.Memory = "summarize", "keep", forgetful{}
		s.config.Agent.Limits = agent.Limits{Compaction: agent.Compaction{Messages: 8}, MemoryScope: "m", WriteBackScope: "m"}
	}
	changes := map[string]func(s *stage){
		"barge-in off":        func(s *stage) { s.config.BargeIn = nil },
		"stops alone":         func(s *stage) { s.config.StopOnly = true },
		"a tool removed":      func(s *stage) { s.config.Agent.Tools = nil },
		"the set removed":     func(s *stage) { s.config.Agent.Toolsets = nil },
		"all tools removed":   func(s *stage) { s.config.Agent.Tools, s.config.Agent.Toolsets = nil, nil },
		"memory off":          func(s *stage) { s.config.Agent.Memory, s.config.Agent.Limits.MemoryScope = nil, "" },
		"write-back off":      func(s *stage) { s.config.Agent.WriteBack, s.config.Agent.Limits.WriteBackScope = "", "" },
		"compaction off":      func(s *stage) { s.config.Agent.Compactor, s.config.Agent.Limits.Compaction = "", agent.Compaction{} },
		"fewer rounds":        func(s *stage) { s.config.Agent.Limits.Rounds, s.config.Agent.Limits.Calls = 1, 1 },
		"a hub":               func(s *stage) { s.config.Hub = NewHub(HubConfig{}) },
		"another system text": func(s *stage) { s.config.Agent.System = taint.Plain("Be long.") },
		"a smaller window":    func(s *stage) { s.config.Settings.MaxWindowTurns, s.config.Settings.MaxTurnChars = 1, 3 },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			for i, at := range []time.Duration{ // a model, its tools, a model, its tool, a model
				250 * time.Millisecond, 5 * time.Second, 11500 * time.Millisecond, 15 * time.Second, 22500 * time.Millisecond,
			} {
				if underRace && i%5 != len(name)%5 {
					continue
				}
				stages(t, text, func(t *testing.T, s *stage) {
					s.config.BargeIn = InboxBargeIn(s.store)
					s.config.Agent.Tools, s.config.Agent.Toolsets = []agent.Tool{slow()}, []tool.Set{set}
					for _, id := range []kernel.EffectID{"summarize", "keep"} {
						s.other = append(s.other, kernel.Effect{ID: id, Mode: kernel.Repeatable, Run: func(context.Context, jsontext.Value) (any, error) {
							return map[string]string{"summary": "s"}, nil
						}})
					}
					beside(s)
					for i := range 3 {
						s.say("x")
						s.hear(2 * (i + 1))
					}
					s.say("go")
					s.pass(at)
					s.stop()
					change(s)
					s.boot()
					s.pass(time.Hour)
					s.say("y")
					s.pass(time.Hour)
					lines := s.quiet()
					if state := s.state(); state.State != kernel.Running || len(lines) != 10 {
						t.Errorf("after %v: the execution is %s %s; transcript %q", at, state.State, state.Fault, lines)
					}
				})
			}
		})
	}
}

type forgetful struct{}

func (forgetful) Recall(context.Context, string, string) ([]agent.Fact, error) {
	return []agent.Fact{{Text: "nothing"}}, nil
}
