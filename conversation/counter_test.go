package conversation

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// The vectors of C-20.8.
func TestHeuristicTokenCounter(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "a": 1, "abcd": 1, "abcde": 2, "\n\x00": 1, "語": 1, "😀": 1, "é": 1,
		"abcd語": 2, "a語b": 2, "abcde語語": 4, "한글 두 글자": 6, "e\u0301": 2, "\xff": 1,
	} {
		if got, err := (HeuristicTokenCounter{}).Count(t.Context(), text); got != want || err != nil {
			t.Errorf("Count(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	if per := (HeuristicTokenCounter{}).PerMessage(); per != 4 {
		t.Errorf("PerMessage() = %d, want 4", per)
	}
}

// Scripts that a vendor's tokenizer takes nearly by the character are never
// counted too low, alone or mixed with a tool's description, and no more than
// twice too high. The rates are those that were measured with o200k, per
// character (T78, T80, T81).
func TestCounterOnScripts(t *testing.T) {
	for _, test := range []struct {
		script, text string
		rate         float64
	}{
		{"Hangul", "회의는 화요일 아침 아홉 시에 시작하고 점심 전에 끝납니다. 자료는 어제 보냈습니다.", 0.60},
		{"Hangul without spaces", "회의는화요일아침아홉시에시작하고점심전에끝납니다자료는어제보냈습니다", 0.96},
		{"Han", "会议在星期二上午九点开始，午饭之前结束。资料昨天已经寄出，请先看第三页。", 0.79},
		{"Kana", "かいぎはかようびのあさにはじまり、おひるまえにおわります。しりょうはきのうおくりました。", 0.74},
	} {
		characters := float64(utf8.RuneCountInString(test.text))
		got := float64(heuristicCount(test.text))
		if low := test.rate * characters; got < low || got > 2*low {
			t.Errorf("%s: %v tokens for %v characters, want %v to %v", test.script, got, characters, low, 2*low)
		}
		mixed := "search_calendar: " + test.text + " Returns JSON with start and end."
		ascii := float64(len("search_calendar:  Returns JSON with start and end.")) / 4
		if got, low := float64(heuristicCount(mixed)), test.rate*characters+ascii; got < low || got > 2*low {
			t.Errorf("%s with a tool: %v tokens, want %v to %v", test.script, got, low, 2*low)
		}
	}
}

// counterFunc is a counter that is a function, without overhead.
type counterFunc func(ctx context.Context, text string) (int, error)

func (f counterFunc) Count(ctx context.Context, text string) (int, error) { return f(ctx, text) }
func (counterFunc) PerMessage() int                                       { return 0 }

// A counter that cannot count is replaced for that text alone (C-20.15).
func TestCounterFallsBack(t *testing.T) {
	for name, bad := range map[string]func() (int, error){
		"fails":             func() (int, error) { return 7, errors.New("no") },
		"panics":            func() (int, error) { panic("no") },
		"less than nothing": func() (int, error) { return -1, nil },
	} {
		counter := counterFunc(func(_ context.Context, text string) (int, error) {
			if text == "bad text" {
				return bad()
			}
			return 100, nil
		})
		if got := tokensOf(t.Context(), counter, "bad text"); got != 2 {
			t.Errorf("%s: %d tokens, want 2 of the heuristic", name, got)
		}
		if got := tokensOf(t.Context(), counter, "good"); got != 100 {
			t.Errorf("%s: another text has %d tokens, want 100 of the counter", name, got)
		}
	}
	if got := tokensOf(t.Context(), counterFunc(func(context.Context, string) (int, error) { return 1 << 62, nil }), "x"); got != maxTokens {
		t.Errorf("an absurd count is taken as %d", got)
	}
}

// overhead is a counter whose overhead is a function.
type overhead func() int

func (overhead) Count(_ context.Context, text string) (int, error) { return heuristicCount(text), nil }
func (o overhead) PerMessage() int                                 { return o() }

// An overhead that cannot be had is the heuristic's, and the budget holds
// (C-20.15, C-20.16).
func TestOverheadFallsBack(t *testing.T) {
	for name, bad := range map[string]overhead{
		"panics": func() int { panic("no") }, "less than nothing": func() int { return -7 },
	} {
		if got := overheadOf(bad); got != 4 {
			t.Errorf("%s: an overhead of %d, want 4", name, got)
		}
	}
	if got := overheadOf(overhead(func() int { return 1 << 62 })); got != maxTokens {
		t.Errorf("an absurd overhead is taken as %d", got)
	}
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "otherwise\n  reply")
		s.config.Counter = overhead(func() int { panic("no") })
		s.config.Settings.Budget = Budget{ContextWindow: 600, ReserveOutputTokens: 100}
		s.chat("one")
		s.tell(strings.Repeat("too much ", 2000))
		if got := s.outcomes(); got != ".R" {
			t.Errorf("outcomes %s", got)
		}
	})
}

// A counter that blocks holds up a turn for no longer than its time: what is left
// is counted by the heuristic (C-20.7, C-20.15).
func TestBlockingCounter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "otherwise\n  reply")
		calls := 0
		s.config.Counter = counterFunc(func(ctx context.Context, text string) (int, error) {
			if !strings.Contains(text, "hello") {
				return heuristicCount(text), nil
			}
			calls++
			<-ctx.Done()
			return 0, ctx.Err()
		})
		s.config.Settings.Budget = Budget{ContextWindow: 1000, ReserveOutputTokens: 100}
		start := time.Now()
		s.say("hello")
		if got := s.hear(2); got[1] != "1/2 assistant complete hello" {
			t.Errorf("transcript %q", got)
		}
		if took := time.Since(start); took != countTime || calls != 1 {
			t.Errorf("the turn took %v with %d blocked counts, want %v and one", took, calls, countTime)
		}
	})
}

// modelCounter is a model that counts.
type modelCounter int

func (m modelCounter) Count(context.Context, string) (int, error) { return int(m), nil }

// A model's own counter serves as it is (C-9.5).
func TestExactTokenCounter(t *testing.T) {
	for _, test := range []struct{ overhead, want int }{{0, 4}, {3, 3}} {
		counter := ExactTokenCounter{Model: modelCounter(12), Overhead: test.overhead}
		if n := tokensOf(t.Context(), counter, "x"); n != 12 || overheadOf(counter) != test.want {
			t.Errorf("with overhead %d it counts %d and %d a message, want 12 and %d", test.overhead, n, overheadOf(counter), test.want)
		}
	}
}
