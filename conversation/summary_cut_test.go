package conversation

import (
	"context"
	"encoding/json/v2"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// A summary ten times the window: it is cut to its tokens by the counter, the cut
// is on record, the request fits, and the next turns are answered (C-21.5, C-21.6,
// T79).
func TestSummaryLargerThanTheWindow(t *testing.T) {
	for name, text := range map[string]string{
		"ASCII": strings.Repeat("word ", 12_000), "Han": strings.Repeat("记住这些。", 2_000), "emoji": strings.Repeat("👩‍👩‍👧", 3_000),
	} {
		t.Run(name, func(t *testing.T) {
			stages(t, "otherwise\n  reply", func(t *testing.T, s *stage) {
				s.config.Settings.MaxWindowTurns = 1
				b := Budget{ContextWindow: 1000, ReserveOutputTokens: 100, MaxSummaryTokens: 200}
				s.summarize(b, (&recorder{reply: func(int) (any, error) { return agent.Summary{Text: text}, nil }}).run)
				s.chat(numbered(5, 0)...)
				for i, req := range s.model.all() {
					if got := weigh(HeuristicTokenCounter{}, req); got > 900 || got < i*20 {
						t.Errorf("request %d has %d tokens", i+1, got)
					}
				}
				summary := taint.Unfence(s.model.all()[4].Messages[0].Text)
				if n := heuristicCount(summary); n < 199 || n > 200 || !strings.HasPrefix(text, summary) || !utf8.ValidString(summary) {
					t.Errorf("the summary has %d tokens, want 200 of its beginning: %q", n, summary)
				}
				cuts := decided[summaryCut](s, ":summary")
				if len(cuts) == 0 || cuts[0].Bytes != len(summary) || cuts[0].LeftOut {
					t.Errorf("cuts on record %+v, the summary has %d bytes", cuts, len(summary))
				}
			})
		})
	}
}

// A summary that does not fit beside one large prompt is left out of that turn
// and is there again in the next (C-20.6, C-21.6).
func TestSummaryLeftOutOfOneTurn(t *testing.T) {
	stages(t, "otherwise\n  say \"yes\"", func(t *testing.T, s *stage) {
		s.config.Settings.MaxWindowTurns = 1
		b := Budget{ContextWindow: 1000, ReserveOutputTokens: 100, MaxSummaryTokens: 400}
		sums := &recorder{reply: func(n int) (any, error) {
			if n > 1 {
				return nil, errors.New("no")
			}
			return agent.Summary{Text: strings.Repeat("memo ", 300)}, nil
		}}
		s.summarize(b, sums.run)
		s.chat("one", "two", "three", strings.Repeat("much ", 500), "five")
		for i, want := range []bool{false, false, true, false, true} {
			req := s.model.all()[i]
			if got := strings.Contains(req.Messages[0].Text, "memo"); got != want {
				t.Errorf("request %d has the summary: %v, want %v", i+1, got, want)
			}
			if n := weigh(HeuristicTokenCounter{}, req); n > 900 {
				t.Errorf("request %d has %d tokens", i+1, n)
			}
		}
		if fits := s.fits(); !fits[3].OK || !fits[3].DropSummary || fits[4].DropSummary {
			t.Errorf("verdicts %+v", fits)
		}
	})
}

// A new summary that has no room beside the prompt is left out of that turn's
// request, which fits, and is in the next (C-20.16, C-21.6).
func TestNewSummaryBesideALargePrompt(t *testing.T) {
	stages(t, "otherwise\n  say \"yes\"", func(t *testing.T, s *stage) {
		s.config.Settings.MaxWindowTurns = 1
		s.summarize(Budget{ContextWindow: 1000, ReserveOutputTokens: 100, MaxSummaryTokens: 400}, (&recorder{reply: func(int) (any, error) {
			return agent.Summary{Text: strings.Repeat("memo ", 240)}, nil
		}}).run)
		s.chat("one", "two", strings.Repeat("much ", 450), "four")
		for i, want := range []bool{false, false, false, true} {
			req := s.model.all()[i]
			if got := strings.Contains(req.Messages[0].Text, "memo"); got != want {
				t.Errorf("request %d has the summary: %v, want %v", i+1, got, want)
			}
			if n := weigh(HeuristicTokenCounter{}, req); n > 900 {
				t.Errorf("request %d has %d tokens", i+1, n)
			}
		}
		if cuts := decided[summaryCut](s, ":summary"); !cuts[0].LeftOut || cuts[1].LeftOut {
			t.Errorf("cuts on record %+v", cuts)
		}
	})
}

// A counter that finds nothing in a text does not let a summary outgrow the carry:
// its bytes are bounded too (C-19.7, C-19.8).
func TestBytesOfASummary(t *testing.T) {
	stages(t, "otherwise\n  reply", func(t *testing.T, s *stage) {
		s.config.Settings.MaxWindowTurns = 1
		s.config.Counter = counterFunc(func(context.Context, string) (int, error) { return 1, nil })
		s.summarize(wide, (&recorder{reply: func(int) (any, error) {
			return agent.Summary{Text: strings.Repeat("\x01", 100_000)}, nil
		}}).run)
		s.chat(numbered(5, 0)...)
		settings := s.config.Settings.withDefaults()
		for _, out := range decided[summarized](s, ":summarize:outcome") {
			text, err := taint.Reveal(out.Text, taint.OriginSummary)
			if n := jsonBytes(text); err != nil || n > settings.summaryBytes() || n < settings.summaryBytes()-6 {
				t.Errorf("a summary has %d bytes on record, %v; want at most %d", n, err, settings.summaryBytes())
			}
		}
		if req := s.model.all()[4]; len(req.Messages) != 5 {
			t.Errorf("the last request has %d messages, want summary, acknowledgement, a turn and the prompt", len(req.Messages))
		}
	})
}

// A carry's summary: what is read back, what is refused, and when it goes
// (C-19.6, C-19.8, C-11.12).
func TestCarriedSummary(t *testing.T) {
	c := fullCarry(3, 1000, 100)
	c.Summary = Rolling{Text: taint.Tainted(strings.Repeat("s", 2000), taint.OriginSummary), Tokens: 500}
	c.Scale, c.Turns[2].Tokens = 150, 77
	bare := c
	bare.Turns, bare.Summary = []Turn{}, Rolling{}
	withSummary := bare
	withSummary.Summary = c.Summary
	if got := c.trim(jsonBytes(withSummary)); len(got.Turns) != 0 || got.Summary.IsZero() {
		t.Errorf("with room for the summary alone, %d turns stay; the summary goes: %v", len(got.Turns), got.Summary.IsZero())
	}
	if got := c.trim(jsonBytes(withSummary) - 1); !got.Summary.IsZero() {
		t.Error("a summary that has no room stays")
	}
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := CarryOf(data, 1); err != nil || back.Summary != c.Summary || back.Scale != 150 || back.Turns[2].Tokens != 77 {
		t.Errorf("CarryOf gives %+v, scale %d, %v", back.Summary, back.Scale, err)
	}
	for name, change := range map[string]func(*Carry){
		"a plain summary":        func(c *Carry) { c.Summary.Text = taint.Plain("obey") },
		"of another origin":      func(c *Carry) { c.Summary.Text = taint.Tainted("obey", taint.OriginUser) },
		"fewer tokens than none": func(c *Carry) { c.Summary.Tokens = -1 },
		"too many tokens":        func(c *Carry) { c.Turns[0].Tokens = maxTokens + 1 },
		"a negative cost":        func(c *Carry) { c.Turns[0].Tokens = -1 },
		"a wild scale":           func(c *Carry) { c.Scale = maxScale + 1 },
		"a negative scale":       func(c *Carry) { c.Scale = -1 },
	} {
		bad := c
		bad.Turns = append([]Turn{}, c.Turns...)
		change(&bad)
		if _, err := CarryOf(encoded(t, bad), 1); err == nil {
			t.Errorf("%s: CarryOf takes it", name)
		}
	}
}

// The cut of a text is the longest beginning, in whole code points (T79).
func TestCut(t *testing.T) {
	for _, text := range []string{"", "plain words here", "日本語のテキスト", "a😀b😀c", strings.Repeat("한글 ", 500)} {
		for most := range 30 {
			m := newMeasure(t.Context(), nil)
			got := m.cut(text, most)
			if n := heuristicCount(got); n > most || !strings.HasPrefix(text, got) || !utf8.ValidString(got) {
				t.Errorf("cut(%.20q, %d) = %q", text, most, got)
			}
			if rest := text[len(got):]; rest != "" {
				_, size := utf8.DecodeRuneInString(rest)
				if heuristicCount(text[:len(got)+size]) <= most {
					t.Errorf("cut(%.20q, %d) = %q, one code point more has room", text, most, got)
				}
			}
			if got := cutJSON(text, most+2); jsonBytes(got) > most+2 {
				t.Errorf("cutJSON(%.20q, %d) = %q", text, most+2, got)
			}
		}
	}
	if got := cutJSON("a\x01\x01\x01b", 10); got != "a\x01" {
		t.Errorf("cutJSON of control characters = %q", got)
	}
}

// Whatever a reserve or a scale leaves of the window, a long summary finds room in
// the requests, and one serves many turns (C-20.2, C-21.5, C-21.6).
func TestSummaryFindsRoom(t *testing.T) {
	for _, test := range []struct {
		name    string
		budget  Budget
		reports int // percent of what is predicted
	}{
		{"a large reserve", Budget{ContextWindow: 8000, ReserveOutputTokens: 6500}, 100},
		{"a large summary", Budget{ContextWindow: 4000, ReserveOutputTokens: 100, MaxSummaryTokens: 4000}, 100},
		{"a counter that counts half", Budget{ContextWindow: 8000, ReserveOutputTokens: 5000}, 200},
		{"a counter that counts a quarter", Budget{ContextWindow: 8000, ReserveOutputTokens: 1000}, 400},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, "otherwise\n  reply")
				s.model.inner = vendor{reports: func(n int) int { return n * test.reports / 100 }}
				sums := &recorder{reply: func(int) (any, error) { return agent.Summary{Text: strings.Repeat("memo ", 4000)}, nil }}
				s.summarize(test.budget, sums.run)
				s.chat(numbered(60, 40)...)
				first, without := 0, 0
				for i, req := range s.model.all() {
					switch {
					case strings.Contains(req.Messages[0].Text, "memo"):
						first = max(first, i)
					case first > 0:
						without++
					}
					if got, limit := weigh(HeuristicTokenCounter{}, req), test.budget.limit(s.fits()[i].Scale); got > limit {
						t.Errorf("request %d has %d tokens of %d", i+1, got, limit)
					}
				}
				if first == 0 || without > 2 {
					t.Errorf("%d of %d requests are without the summary", without, 60)
				}
				if n := len(sums.inputs); n > 30 {
					t.Errorf("%d summaries in 60 turns", n)
				}
			})
		})
	}
}

// A summarizer that says it was interrupted, where nobody has cut the turn, makes
// no request larger: what is to be folded stays in the window and out of the
// prompt (C-20.16, C-21.10).
func TestInterruptedSummaryWithoutAnInterruption(t *testing.T) {
	stages(t, "otherwise\n  reply", func(t *testing.T, s *stage) {
		const limit = 1100
		sums := &recorder{reply: func(n int) (any, error) {
			if n < 4 {
				return nil, &model.InterruptedError{}
			}
			return agent.Summary{Text: "so far"}, nil
		}}
		s.summarize(Budget{ContextWindow: limit + 100, ReserveOutputTokens: 100}, sums.run)
		s.chat(numbered(14, 40)...)
		for i, req := range s.model.all() {
			if got, fit := weigh(HeuristicTokenCounter{}, req), s.fits()[i]; got > limit || len(sums.inputs) < 4 && got != fit.Tokens {
				t.Errorf("request %d has %d tokens of %d; the verdict is %+v", i+1, got, limit, fit)
			}
		}
		if len(sums.inputs) < 4 || !strings.Contains(sums.inputs[3], "message 1 ") {
			t.Errorf("%d summaries; the fourth has what the first could not take: %.300s", len(sums.inputs), sums.inputs[len(sums.inputs)-1])
		}
	})
}
