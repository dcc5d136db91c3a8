package conversation

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// vendor is a model that refuses and reports requests by what they cost in the
// heuristic's tokens.
type vendor struct {
	refuses func(tokens int) bool
	reports func(tokens int) int // nothing if nil
}

func (v vendor) Stream(_ context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		n := weigh(HeuristicTokenCounter{}, req)
		if v.refuses != nil && v.refuses(n) {
			yield(model.Chunk{}, model.ErrOverflow)
			return
		}
		finish := model.Finish{Reason: model.FinishStop}
		if v.reports != nil {
			finish.Usage.InputTokens = v.reports(n)
		}
		_ = yield(model.Chunk{Text: "ok"}, nil) && yield(model.Chunk{Finish: &finish}, nil)
	}
}

// outcomes has a letter for each message: . answered, F failed, R rejected.
func (s *stage) outcomes() string {
	var out strings.Builder
	for _, r := range s.records() {
		switch {
		case r.Status == StatusRejected:
			out.WriteByte('R')
		case r.Status == StatusComplete:
			out.WriteByte('.')
		case r.Role == RoleAssistant:
			out.WriteByte('F')
		}
	}
	return out.String()
}

// scales are those of the recorded verdicts.
func (s *stage) scales() (all []int) {
	for _, fit := range s.fits() {
		all = append(all, fit.Scale)
	}
	return all
}

// tell says a text and waits for what comes of it, a rejection too.
func (s *stage) tell(text string) {
	s.t.Helper()
	s.say(text)
	s.quiet()
}

// One absurd report does not close a conversation: a message that only the scale
// keeps out goes to the model alone, whose next report puts the scale right
// (C-20.5, C-20.17).
func TestAbsurdReportClosesNothing(t *testing.T) {
	stages(t, "otherwise\n  reply", func(t *testing.T, s *stage) {
		lied := false
		s.model.inner = vendor{reports: func(n int) int {
			if !lied {
				lied = true
				return math.MaxInt
			}
			return n
		}}
		s.config.Agent.System = taint.Plain(strings.Repeat("rule ", 1000)) // more than a quarter of the window
		s.config.Settings.Budget = Budget{ContextWindow: 4500, ReserveOutputTokens: 500}
		for i := range 4 {
			s.tell(fmt.Sprint("message ", i))
		}
		if got := s.outcomes(); got != "...." {
			t.Fatalf("outcomes %s, scales %v", got, s.scales())
		}
		if fit := s.fits()[1]; fit.Scale != maxScale || fit.Keep != 0 || len(s.model.all()[1].Messages) != 1 {
			t.Errorf("after the report the verdict is %+v, with %d messages", fit, len(s.model.all()[1].Messages))
		}
		if fit := s.fits()[3]; fit.Scale != 0 || fit.Keep != 2 {
			t.Errorf("after an honest report the verdict is %+v", fit)
		}
		s.tell(strings.Repeat("too much ", 2000))
		if got := s.outcomes(); got != "....R" {
			t.Errorf("outcomes %s: what does not fit by the counter's own measure is rejected", got)
		}
	})
}

// Nor does a model that refuses everything for a while (C-20.5, C-20.17).
func TestRefusalsCloseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "otherwise\n  reply")
		away := true
		s.model.inner = vendor{refuses: func(int) bool { return away }}
		s.config.Settings.Budget = Budget{ContextWindow: 1000, ReserveOutputTokens: 100}
		long := strings.Repeat("word ", 300) // 375 tokens
		for range 9 {
			s.tell(long)
		}
		away = false
		s.tell(long)
		if got := s.outcomes(); got != "FFFFFFFFF." {
			t.Errorf("outcomes %s, scales %v", got, s.scales())
		}
	})
}

// A model whose window is smaller than what is set refuses one request, or two,
// and never again, whatever it reports (C-20.17, T78).
func TestRefusedSizeIsNotTriedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		reports func(int) int
		most    int // failed turns
	}{
		"nothing":    {nil, 1},
		"the truth":  {func(n int) int { return n }, 1},
		"half of it": {func(n int) int { return n / 2 }, 2},
		"one token":  {func(int) int { return 1 }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, "otherwise\n  reply")
				s.config.Settings.RotateEveryTurns = 5
				s.model.inner = vendor{refuses: func(n int) bool { return n > 3300 }, reports: test.reports}
				s.config.Settings.Budget = Budget{ContextWindow: 4100, ReserveOutputTokens: 100}
				s.chat(numbered(24, 150)...)
				if got := s.outcomes(); strings.Count(got, "F") > test.most || strings.HasSuffix(got, "F") {
					t.Errorf("outcomes %s, scales %v", got, s.scales())
				}
			})
		})
	}
}

// A scale that leaves room for no more than small requests comes down again
// (C-20.17, T82b).
func TestScaleOfASmallWindowComesDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "otherwise\n  reply")
		lied := false
		s.model.inner = vendor{reports: func(n int) int {
			if n >= minMeasured && !lied {
				lied = true
				return 100 * n
			}
			return n
		}}
		s.config.Settings.Budget = Budget{ContextWindow: 2500, ReserveOutputTokens: 100}
		s.chat(numbered(30, 50)...)
		scales := s.scales()
		for i, scale := range scales {
			if scale > 100 && i+1 < len(scales) && scales[i+1] > 100 {
				t.Fatalf("scales %v", scales)
			}
		}
		if !lied || scales[29] != 0 {
			t.Errorf("the vendor lied: %v; scales %v", lied, scales)
		}
	})
}
