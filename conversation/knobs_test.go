package conversation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/taint"
)

// Whatever is changed about budget, summary and compaction between two processes:
// the log is replayed as it stands, nobody is asked for a summary again, and the
// conversation goes on (C-11.16, C-20.12, C-21.9, K5).
func TestReplayWithOtherKnobs(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"a smaller window": func(c *Config) { c.Settings.Budget.ContextWindow = 700 },
		"a larger window":  func(c *Config) { c.Settings.Budget.ContextWindow = 1 << 30 },
		"no budget":        func(c *Config) { c.Settings.Budget = Budget{} },
		"no summaries":     func(c *Config) { c.Settings.Budget.Summarizer = "" },
		"short summaries":  func(c *Config) { c.Settings.Budget.MaxSummaryTokens = 1 },
		"fewer turns":      func(c *Config) { c.Settings.MaxWindowTurns = 1 },
		"fewer bytes":      func(c *Config) { c.Settings.MaxCarryBytes = minCarryBytes },
		"another counter":  func(c *Config) { c.Counter = &byLength{per: 1}; c.Settings.Budget.ContextWindow *= 5 },
		"a compaction": func(c *Config) {
			c.Agent.Compactor, c.Agent.Limits.Compaction = "summarize", agent.Compaction{Messages: 8}
		},
		"no tools":         func(c *Config) { c.Agent.Tools = nil },
		"a longer system":  func(c *Config) { c.Agent.System = taint.Plain(strings.Repeat("rule ", 100)) },
		"a smaller answer": func(c *Config) { c.Settings.Budget.ReserveOutputTokens = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			stages(t, "otherwise\n  reply", func(t *testing.T, s *stage) {
				sums := &recorder{reply: func(n int) (any, error) { return agent.Summary{Text: strings.Repeat("memo ", 50*n)}, nil }}
				s.summarize(Budget{ContextWindow: 1200, ReserveOutputTokens: 100}, sums.run)
				s.chat(numbered(14, 20)...)
				events, calls := len(s.events()), len(sums.inputs)
				if calls == 0 {
					t.Fatal("nothing was summarized")
				}
				change(&s.config)
				s.reboot()
				s.quiet()
				if len(sums.inputs) != calls || len(s.events()) != events {
					t.Errorf("the replay made %d summaries and %d events", len(sums.inputs)-calls, len(s.events())-events)
				}
				for i := range 4 {
					s.tell(fmt.Sprint("after ", i))
				}
				if got := s.outcomes(); got != strings.Repeat(".", 18) {
					t.Errorf("outcomes %s; the execution is %+v", got, s.state())
				}
			})
		})
	}
}

// A budget that is new takes over at the next generation: until then there is no
// verdict, and the settings on record have no word of it (C-10.6, C-11.16).
func TestNewBudgetWaitsForTheNextGeneration(t *testing.T) {
	stages(t, "otherwise\n  reply", func(t *testing.T, s *stage) {
		s.chat("one", "two", "three")
		if strings.Contains(s.bytes(), "budget") || strings.Contains(s.bytes(), "summary") || strings.Contains(s.bytes(), `"tokens"`) || strings.Contains(s.bytes(), `"scale"`) {
			t.Errorf("without a budget the logs speak of one: %s", s.bytes())
		}
		s.model.inner = vendor{reports: func(int) int { return 1 << 30 }}
		s.config.Settings.Budget = Budget{ContextWindow: 100_000, ReserveOutputTokens: 1}
		s.reboot()
		s.chat("four", "five")
		want := 0
		if s.config.Settings.RotateEveryTurns == 1 {
			want = 2
		}
		if got := len(s.fits()); got != want {
			t.Errorf("%d verdicts, want %d", got, want)
		}
	})
}
