package conversation

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/model"
)

// What a measurement makes of the next fit (T82b).
func TestScaleOf(t *testing.T) {
	for percent, want := range map[int]int{
		1: 50, 22: 50, 50: 55, 60: 66, 74: 81, 75: 100, 90: 100, 100: 100, 101: 101, 160: 160, 400: 400, 5000: 400,
	} {
		if got := scaleOf(percent); got != want {
			t.Errorf("scaleOf(%d) = %d, want %d", percent, got, want)
		}
	}
}

// A report that is more than half off is worth a warning once a conversation;
// small requests and vendors that report nothing say nothing (T78, T81, T82b).
func TestMeter(t *testing.T) {
	m := new(meter)
	for _, test := range []struct {
		conversation        string
		predicted, reported int
		warn                bool
		scale               int
	}{
		{"a", 999, 9000, false, 0},
		{"a", 2000, 0, false, 0},
		{"a", 2000, 3000, false, 150},
		{"a", 2000, 1000, false, 55},
		{"a", 2000, 3100, true, 155},
		{"a", 2000, 9000, false, 400},
		{"a", 2000, 2000, false, 100},
		{"b", 2000, 900, true, 50},
		{"b", 2000, 900, false, 50},
	} {
		if got := m.observe(test.conversation, test.predicted, test.reported, 0); got != test.warn {
			t.Errorf("observe(%q, %d, %d) = %v", test.conversation, test.predicted, test.reported, got)
		}
		if got := m.scale(test.conversation); got != test.scale {
			t.Errorf("after %d for %d the scale of %q is %d, want %d", test.reported, test.predicted, test.conversation, got, test.scale)
		}
	}
	for _, test := range []struct{ before, want int }{{0, 125}, {60, 125}, {125, 156}, {399, 400}} {
		m.overflowed("c", test.before)
		if got := m.scale("c"); got != test.want {
			t.Errorf("an overflow under a scale of %d gives %d, want %d", test.before, got, test.want)
		}
	}
	for _, test := range []struct{ predicted, reported, scale int }{{999, 700, 250}, {2000, 100, 0}} {
		m.observe("c", test.predicted, test.reported, test.scale)
		if got := m.scale("c"); got != 400 {
			t.Errorf("after a refusal a report of %d for %d gives %d, want 400", test.reported, test.predicted, got)
		}
	}
	for _, test := range []struct{ predicted, reported, scale, want int }{
		{500, 2000, 300, 0}, {500, 1499, 300, 299}, {500, 600, 299, 120}, {500, 10, 120, 100}, {500, 10, 100, 100}, {0, 10, 300, 100},
	} {
		m.observe("d", test.predicted, test.reported, test.scale)
		if got := m.scale("d"); got != test.want {
			t.Errorf("a report of %d for a small %d under %d gives %d, want %d", test.reported, test.predicted, test.scale, got, test.want)
		}
	}
	for i := range 2 * maxMetered {
		m.observe(fmt.Sprint(i), 2000, 2000, 0)
	}
	if n := len(m.read); n > maxMetered {
		t.Errorf("%d conversations are remembered", n)
	}
}

// A vendor that finds half as many tokens as were predicted: the operator is told
// once, without a word of the dialogue, the window holds more turns from then on,
// and a restart keeps to the scale on record (T82b, C-20.12).
func TestReportedUsageScalesTheFit(t *testing.T) {
	stages(t, "otherwise\n  say \"好\"\n  usage 600 1", func(t *testing.T, s *stage) {
		var log bytes.Buffer
		s.config.Log = slog.New(slog.NewTextHandler(&log, nil))
		s.config.Settings.Budget = Budget{ContextWindow: 1900, ReserveOutputTokens: 100}
		text := strings.Repeat("记", 250)
		for range 9 {
			s.chat(text)
		}
		var keeps, scales []int
		for _, fit := range s.fits() {
			keeps, scales = append(keeps, fit.Keep), append(scales, fit.Scale)
		}
		if diff := cmp.Diff([]int{0, 1, 2, 3, 4, 5, 6, 7, 8}, keeps); diff != "" {
			t.Errorf("turns kept (-want +got):\n%s", diff)
		}
		if scales[0] != 0 || scales[8] != 50 {
			t.Errorf("scales %v", scales)
		}
		warned := strings.Count(log.String(), "token counter is far off")
		if warned != 1 || !strings.Contains(log.String(), "reported=600") || strings.Contains(log.String(), "记") {
			t.Errorf("%d warnings:\n%s", warned, log.String())
		}
		s.reboot()
		s.chat(text)
		if fits := s.fits(); fits[9].Scale != 50 || fits[9].Keep < 8 {
			t.Errorf("after a restart the verdict is %+v", fits[9])
		}
	})
}

// A request that is too large for the model is a failed turn; the next fits allow
// less, until the model takes them (T78).
func TestOverflowHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "when has \"big\"\n  fail overflow\notherwise\n  reply")
		s.config.Settings.Budget = Budget{ContextWindow: 1100, ReserveOutputTokens: 100}
		s.chat(numbered(12, 15)...)
		kept := s.fits()[11].Keep
		s.chat("big", "big", "big", "small")
		fits := s.fits()
		var scales []int
		for _, fit := range fits[12:] {
			scales = append(scales, fit.Scale)
		}
		if diff := cmp.Diff([]int{0, 125, 156, 195}, scales); diff != "" {
			t.Errorf("scales after each overflow (-want +got):\n%s", diff)
		}
		if last := fits[15].Keep; last >= kept {
			t.Errorf("%d turns are kept after three overflows, %d before", last, kept)
		}
		got := s.transcript()
		if got[25] != "13/26 assistant failed model-error " || got[31] != "16/32 assistant complete small" {
			t.Errorf("transcript ends %q", got[24:])
		}
	})
}

// honest is a model that reports what a request costs by the heuristic.
type honest struct{}

func (honest) Stream(_ context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		usage := model.Usage{InputTokens: weigh(HeuristicTokenCounter{}, req)}
		_ = yield(model.Chunk{Text: strings.Repeat("so ", 200)}, nil) &&
			yield(model.Chunk{Finish: &model.Finish{Reason: model.FinishStop, Usage: usage}}, nil)
	}
}

// What is predicted is what is sent, summaries old, new and left out included:
// where the vendor counts as we do, nothing is ever scaled.
func TestPredictionIsExact(t *testing.T) {
	stages(t, "otherwise\n  reply", func(t *testing.T, s *stage) {
		s.model.inner = honest{}
		s.config.Settings.MaxWindowTurns = 4
		sums := &recorder{reply: func(n int) (any, error) { return agent.Summary{Text: strings.Repeat("memo ", 500*n)}, nil }}
		s.summarize(Budget{ContextWindow: 6000, ReserveOutputTokens: 100}, sums.run)
		s.chat(append(numbered(9, 300), strings.Repeat("much ", 3800), "last", "of all")...)
		dropped := false
		for i, fit := range s.fits() {
			if fit.Scale != 0 {
				t.Errorf("verdict %d is scaled: %+v", i+1, fit)
			}
			dropped = dropped || fit.DropSummary
		}
		if len(sums.inputs) < 5 || !dropped {
			t.Errorf("%d summaries, one dropped %v", len(sums.inputs), dropped)
		}
	})
}
