package conversation

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
)

// paging is a tool that returns large pages.
func paging(size int) agent.Tool {
	return agent.Tool{
		Name: "read", Description: taint.Plain("Reads a page."), Mode: kernel.Repeatable,
		Run: func(context.Context, jsontext.Value) (agent.Result, error) {
			return agent.Result{Text: strings.Repeat("page ", size/5)}, nil
		},
	}
}

// The budget folds the turns that leave the window, and the compaction cuts a run
// with large results, both by the one effect: the first request of each turn is
// within the budget, no request is larger than the compaction's limit and a
// round, and a crash or a replay asks for no summary twice (C-11.10, C-10.12,
// C-21.2, C-20.16).
func TestBudgetAndCompactionShareAnEffect(t *testing.T) {
	const text = `when has "fold"
  call read {}
then
  call read {}
then
  call read {}
then
  call read {}
then
  say "read"
otherwise
  reply`
	stages(t, text, func(t *testing.T, s *stage) {
		const limit, page = 16 << 10, 5 << 10
		s.config.Agent.Tools = []agent.Tool{paging(page)}
		s.config.Agent.Compactor, s.config.Agent.Limits.Compaction = "summarize", agent.Compaction{Bytes: limit}
		b := Budget{ContextWindow: 2500, ReserveOutputTokens: 500, MaxSummaryTokens: 200}
		sums := &recorder{}
		s.summarize(b, sums.run)
		s.chat(append(numbered(24, 50), "fold this", "and this", "fold that", "last")...)
		if got := s.outcomes(); got != strings.Repeat(".", 28) {
			t.Fatalf("outcomes %s", got)
		}
		folds, compactions := 0, 0
		for _, id := range s.ids() {
			switch {
			case strings.HasSuffix(id, ":summarize"):
				folds++
			case strings.HasSuffix(id, ":call") && strings.Contains(id, "#compact:"):
				compactions++
			}
		}
		if folds < 2 || compactions < 2 || len(sums.inputs) != folds+compactions {
			t.Errorf("%d folds, %d compactions, %d calls of the summarizer", folds, compactions, len(sums.inputs))
		}
		fits, turn := s.fits(), 0
		for i, req := range s.model.all() {
			bytes := 0
			for _, message := range req.Messages {
				bytes += len(message.Text)
				for _, result := range message.Results {
					bytes += len(result.Text)
				}
			}
			if bytes > limit+page+2<<10 {
				t.Errorf("request %d has %d bytes", i+1, bytes)
			}
			if last := req.Messages[len(req.Messages)-1]; len(last.Results) > 0 {
				continue
			}
			if got := weigh(HeuristicTokenCounter{}, req); got > b.limit(0) {
				t.Errorf("the first request of turn %d has %d tokens, the verdict is %+v", turn+1, got, fits[turn])
			}
			turn++
		}
		calls := len(sums.inputs)
		s.reboot()
		s.chat("after all")
		if len(sums.inputs) > calls+1 {
			t.Errorf("a replay asks for %d summaries", len(sums.inputs)-calls)
		}
	})
}

// What a compaction cut of a first request, or a memory added to it, says nothing
// of the counter: no scale comes of it (C-20.17, C-11.10, C-10.13).
func TestOnlyWhatWasPredictedIsCompared(t *testing.T) {
	honest := vendor{reports: func(n int) int { return n }}
	t.Run("compaction", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, "otherwise\n  reply")
			s.model.inner = honest
			s.config.Agent.Compactor, s.config.Agent.Limits.Compaction = "summarize", agent.Compaction{Messages: 8}
			s.summarize(Budget{ContextWindow: 8000, ReserveOutputTokens: 100}, (&recorder{}).run)
			s.chat(numbered(30, 300)...)
			for i, fit := range s.fits() {
				if fit.Scale != 0 || fit.Tokens > 7900 {
					t.Errorf("verdict %d: %+v", i+1, fit)
				}
			}
		})
	})
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, "otherwise\n  reply")
			s.model.inner = honest
			s.config.Agent.Memory, s.config.Agent.Limits.MemoryScope = facts{}, "ann"
			s.config.Settings.Budget = Budget{ContextWindow: 40_000, ReserveOutputTokens: 100}
			s.chat(numbered(4, 900)...)
			if scales := s.scales(); fmt.Sprint(scales) != "[0 0 0 0]" {
				t.Errorf("scales %v", scales)
			}
		})
	})
	t.Run("results", func(t *testing.T) { // a later request of a turn is too large
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, "when has \"fold\"\n  call read {}\nthen\n  fail overflow\notherwise\n  reply")
			s.config.Agent.Tools = []agent.Tool{paging(5 << 10)}
			s.config.Settings.Budget = Budget{ContextWindow: 8000, ReserveOutputTokens: 100}
			s.chat("fold", "one", "fold", "two")
			if got := fmt.Sprint(s.outcomes(), s.scales()); got != "F.F.[0 0 0 0]" {
				t.Errorf("outcomes and scales %s", got)
			}
		})
	})
}

// A compactor that fails leaves a request that fits the budget all the same
// (C-20.16, C-11.10).
func TestFailingCompactionStaysWithinTheBudget(t *testing.T) {
	stages(t, "otherwise\n  reply", func(t *testing.T, s *stage) {
		s.model.inner = vendor{reports: func(n int) int { return n }}
		s.config.Agent.Compactor, s.config.Agent.Limits.Compaction = "summarize", agent.Compaction{Messages: 8}
		calls := 0
		s.summarize(Budget{ContextWindow: 8000, ReserveOutputTokens: 100}, func(context.Context, jsontext.Value) (any, error) {
			if calls++; calls > 12 {
				return nil, errors.New("no")
			}
			return agent.Summary{Text: "so far"}, nil
		})
		s.chat(numbered(30, 300)...)
		for i, req := range s.model.all() {
			if got := weigh(HeuristicTokenCounter{}, req); got > 7900 {
				t.Errorf("request %d has %d tokens", i+1, got)
			}
		}
	})
}
