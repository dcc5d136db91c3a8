package conversation

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// weigh is what a request costs by the counter's own measure: each message, the
// instructions, and the names and descriptions of the tools.
func weigh(counter TokenCounter, req model.Request) int {
	tokens := func(text string) int { return tokensOf(context.Background(), counter, text) }
	sum := tokens(req.System) + counter.PerMessage()
	var tools []string
	for _, tool := range req.Tools {
		tools = append(tools, tool.Name, tool.Description)
	}
	sum += tokens(strings.Join(tools, "\n"))
	for _, message := range req.Messages {
		sum += tokens(message.Text) + counter.PerMessage()
	}
	return sum
}

// fits are the recorded verdicts.
func (s *stage) fits() []Fit {
	s.t.Helper()
	return decided[Fit](s, "conv#fit:")
}

// decided reads the values of the decisions whose id has the part.
func decided[T any](s *stage, part string) (values []T) {
	s.t.Helper()
	for _, e := range s.events() {
		if e.Kind != kernel.KindDecided || !strings.Contains(e.ID, part) {
			continue
		}
		d, err := kernel.DecodeEvent[kernel.Decided](e)
		if err != nil || d.Source != SourceBudget || d.Fault != "" {
			s.t.Errorf("decision %s of source %s: fault %q, %v", e.ID, d.Source, d.Fault, err)
		}
		var v T
		if err := json.Unmarshal(d.Value, &v); err != nil {
			s.t.Errorf("decision %s: %v", e.ID, err)
		}
		values = append(values, v)
	}
	return values
}

// chat says texts one after another and waits for each reply.
func (s *stage) chat(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		before := len(s.transcript())
		s.say(text)
		s.hear(before + 2)
	}
}

// numbered makes n texts of so many words.
func numbered(n, words int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprintf("message %d%s", i+1, strings.Repeat(" word", words)))
	}
	return texts
}

// Each request stays within the window by the counter's own measure, holds the
// newest turns, and would not hold one more; what was evicted stays in the
// transcript. Each verdict tells exactly what its request costs (C-20.2, C-20.9,
// C-20.10, C-20.16, C-21.1).
func TestRequestsFit(t *testing.T) {
	for name, counter := range map[string]TokenCounter{"heuristic": HeuristicTokenCounter{}, "by the byte": &byLength{per: 3}} {
		t.Run(name, func(t *testing.T) {
			stages(t, "when has \"4 \"\n  fail refused\notherwise\n  reply", func(t *testing.T, s *stage) {
				b := Budget{ContextWindow: 600, ReserveOutputTokens: 100}
				if name != "heuristic" {
					b.ContextWindow *= 4
				}
				s.config.Settings.Budget, s.config.Counter = b, counter
				texts := numbered(12, 9)
				s.chat(texts...)
				evicted := false
				for i, req := range s.model.all() {
					fit := s.fits()[i]
					if got := weigh(counter, req); got > b.ContextWindow-b.ReserveOutputTokens || got != fit.Tokens {
						t.Errorf("request %d costs %d of %d; the verdict is %+v", i+1, got, b.ContextWindow-b.ReserveOutputTokens, fit)
					}
					if want := 2*fit.Keep + 1; len(req.Messages) != want {
						t.Errorf("request %d has %d messages, want %d", i+1, len(req.Messages), want)
					}
					if fit.Keep < i {
						evicted = true
						older := model.Request{Messages: []model.Message{
							{Text: taint.Fence(taint.Tainted(texts[i-fit.Keep-1], taint.OriginUser))}, {Text: texts[i-fit.Keep-1]},
						}}
						if strings.Contains(texts[i-fit.Keep-1], " 4 ") {
							older.Messages[1].Text = placeholderFailed
						}
						more := weigh(counter, older) - weigh(counter, model.Request{})
						if fit.Tokens+more <= b.ContextWindow-b.ReserveOutputTokens {
							t.Errorf("request %d of %d tokens has room for a turn of %d more", i+1, fit.Tokens, more)
						}
					}
				}
				if !evicted {
					t.Error("nothing was evicted")
				}
				if n := len(s.transcript()); n != 24 {
					t.Errorf("the transcript has %d records, want 24", n)
				}
			})
		})
	}
}

// facts is a memory that recalls as much as it may.
type facts struct{}

func (facts) Recall(context.Context, string, string) ([]agent.Fact, error) {
	return slices.Repeat([]agent.Fact{{Text: strings.Repeat("é", 500)}}, 16), nil
}

// What a memory recalls joins the request after the fit, and fits too (C-20.16,
// C-10.13).
func TestRecalledFactsFit(t *testing.T) {
	stages(t, "otherwise\n  say \"yes\"", func(t *testing.T, s *stage) {
		s.config.Agent.Memory, s.config.Agent.Limits.MemoryScope = facts{}, "ann"
		s.config.Settings.Budget = Budget{ContextWindow: 18_000, ReserveOutputTokens: 100}
		s.chat(numbered(8, 2500)...)
		kept := s.fits()[7].Keep
		if n := weigh(HeuristicTokenCounter{}, s.model.all()[7]); n > 17_900 || n < 12_000 || kept < 1 || kept > 4 {
			t.Errorf("the last request has %d tokens and %d earlier turns", n, kept)
		}
	})
}

// A message that does not fit, not even alone, is rejected: neither the model nor
// the summarizer is called for it, it began no turn, nothing is evicted, and the
// dialogue goes on (C-20.5, C-13.15).
func TestPromptTooLarge(t *testing.T) {
	stages(t, "otherwise\n  reply", func(t *testing.T, s *stage) {
		sums := &recorder{}
		s.summarize(Budget{ContextWindow: 700, ReserveOutputTokens: 100}, sums.run)
		large := strings.Repeat("too much ", 400)
		s.chat("one")
		s.say(large)
		s.hear(3)
		s.chat("two")
		want := []string{
			"1/1 user accepted one", "1/2 assistant complete one", "0/3 user rejected prompt-too-large " + large,
			"2/4 user accepted two", "2/5 assistant complete two",
		}
		if diff := cmp.Diff(want, s.transcript()); diff != "" {
			t.Errorf("transcript (-want +got):\n%s", diff)
		}
		sent := s.model.all()
		if len(sent) != 2 || len(sent[1].Messages) != 3 || len(sums.inputs) != 0 {
			t.Errorf("%d requests, the last of %d messages, and %d summaries; want 2, 3, 0", len(sent), len(sent[len(sent)-1].Messages), len(sums.inputs))
		}
		if fits := s.fits(); len(fits) != 3 || fits[1].OK || fits[1].Keep != 0 {
			t.Errorf("verdicts %+v", fits)
		}
		if strings.Contains(fmt.Sprint(s.ids()), "o2:summar") {
			t.Errorf("a rejected message is summarized: %q", s.ids())
		}
	})
}

// A message that was rejected for its size is remembered, and not as one that
// began a turn (C-13.7, C-14.9).
func TestTooLargeBeganNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "otherwise\n  reply")
		s.config.Settings.Budget, s.config.Settings.RotateEveryTurns = Budget{ContextWindow: 500}, 1
		s.say("one")
		s.say(strings.Repeat("too much ", 400))
		s.say("two")
		s.hear(5)
		var begun []bool
		for _, e := range s.events() {
			if e.Kind != kernel.KindStarted {
				continue
			}
			started, err := kernel.DecodeEvent[kernel.Started](e)
			if err != nil {
				t.Fatal(err)
			}
			begun = nil
			if c, err := CarryOf(started.Input, 1); err == nil {
				for _, seen := range c.Seen {
					begun = append(begun, seen.Turn)
				}
			}
		}
		if diff := cmp.Diff([]bool{true, false}, begun); diff != "" {
			t.Errorf("turns begun (-want +got):\n%s", diff)
		}
	})
}

// ids are those of all facts.
func (s *stage) ids() (ids []string) {
	for _, e := range s.events() {
		if e.ID != "" && (e.Kind == kernel.KindDecided || e.Kind == kernel.KindRequested) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// The verdict costs one decision a message, and there is none without a budget
// (C-13.22, C-16.2, C-16.4 to C-16.6).
func TestBudgetIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "otherwise\n  reply")
		s.summarize(Budget{ContextWindow: 600, ReserveOutputTokens: 100}, (&recorder{}).run)
		s.config.Settings.MaxWindowTurns = 1
		s.chat("one", "two", "three")
		want := []string{
			"conv#settings", "conv#o1:admit", "conv#fit:1", "conv#o1:user", "conv#o1#abort:model:1", "conv#o1#model:1", "conv#o1:reply",
			"conv#o2:admit", "conv#fit:2", "conv#o2:user", "conv#o2#abort:model:1", "conv#o2#model:1", "conv#o2:reply",
			"conv#o3:admit", "conv#fit:3", "conv#o3:user", "conv#o3:summarize", "conv#o3:summarize:outcome", "conv#o3:summary",
			"conv#o3#abort:model:1", "conv#o3#model:1", "conv#o3:reply",
		}
		got := slices.DeleteFunc(s.ids(), func(id string) bool { return strings.HasPrefix(id, "message") || strings.HasPrefix(id, "inbox") })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ids (-want +got):\n%s", diff)
		}
	})
}

// A replay applies the recorded verdicts whatever the counter says now, counts no
// old text again, and asks nothing of a summarizer (C-20.12, C-21.9). The costs
// that are on record go on to serve.
func TestReplayWithAnotherCounter(t *testing.T) {
	stages(t, "otherwise\n  reply", func(t *testing.T, s *stage) {
		first := &recorder{}
		s.summarize(Budget{ContextWindow: 600, ReserveOutputTokens: 100}, first.run)
		texts := numbered(9, 9)
		s.chat(texts...)
		before := s.events()
		if len(first.inputs) == 0 {
			t.Fatal("nothing was summarized")
		}

		other := &byLength{}
		s.config.Counter = counterFunc(func(_ context.Context, text string) (int, error) {
			for _, old := range texts[:8] { // the ninth turn was not counted yet
				if strings.Contains(text, old) {
					t.Errorf("the old text %q is counted again", old)
				}
			}
			_, _ = other.Count(context.Background(), text)
			return 1, nil
		})
		second := &recorder{reply: func(int) (any, error) { panic("a replay summarizes") }}
		s.config.Summarizer.Run = second.run
		s.reboot()
		s.chat("after all")
		if diff := cmp.Diff(before, s.events()[:len(before)]); diff != "" {
			t.Errorf("the log changed (-before +after):\n%s", diff)
		}
		if len(second.inputs) != 0 {
			t.Errorf("%d summaries are asked for after the restart", len(second.inputs))
		}
		if n := len(other.asked); n > 2+2+3 { // instructions at construction and in the fit; prompt; the ninth turn
			t.Errorf("%d texts are counted for one message: %q", n, other.asked)
		}
	})
}

// A steady conversation counts only what is new: the prompt and the two sides of
// the newest turn beside the instructions, which are this process's (C-20.4).
func TestSteadyConversationCountsItsNewestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "otherwise\n  reply")
		counter := &byLength{}
		s.config.Counter = counter
		s.config.Settings.Budget = Budget{ContextWindow: 1 << 20, ReserveOutputTokens: 1}
		const instructions = 2 // system prompt and tools
		for i, text := range numbered(50, 2) {
			counter.asked = nil
			s.chat(text)
			if i == 0 {
				continue
			}
			if n := len(counter.asked) - instructions; n != 3 {
				t.Fatalf("message %d: %d texts are counted, want prompt, and both sides of the turn before: %q", i+1, n, counter.asked)
			}
		}
	})
}

// Instructions that leave no room are refused at construction, once; where they
// have grown under a generation that recorded a smaller window, each message is
// rejected, nothing loops, and nothing is called (T73, C-20.14).
func TestInstructionsLargerThanTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "otherwise\n  reply")
		sums := &recorder{}
		s.summarize(Budget{ContextWindow: 500, ReserveOutputTokens: 100}, sums.run)
		s.chat("one", "two")
		s.config.Agent.System = taint.Plain(strings.Repeat("rule ", 400))
		if _, err := NewFlow(s.config); err == nil || !strings.Contains(err.Error(), "system prompt and tools") {
			t.Errorf("NewFlow with instructions larger than the window: %v", err)
		}
		s.config.Settings.Budget.ContextWindow = 10_000 // acts from the next generation on
		s.reboot()
		s.say("three")
		s.say("four")
		got := s.hear(6)
		if got[4] != "0/5 user rejected prompt-too-large three" || got[5] != "0/6 user rejected prompt-too-large four" {
			t.Errorf("transcript %q", got)
		}
		if len(s.model.all()) != 2 || len(sums.inputs) != 0 || s.state().State != kernel.Running {
			t.Errorf("%d requests, %d summaries, the execution is %s", len(s.model.all()), len(sums.inputs), s.state().State)
		}
	})
}

// A budget's own bounds (C-20.14).
func TestBudgetRefusals(t *testing.T) {
	s := newStage(t, "otherwise\n  reply")
	for _, test := range []struct {
		budget Budget
		says   string
	}{
		{Budget{ContextWindow: -1}, "ContextWindow"},
		{Budget{ContextWindow: 100, ReserveOutputTokens: -1}, "ReserveOutputTokens"},
		{Budget{ContextWindow: 1000, ReserveOutputTokens: 1000}, "leaves nothing"},
		{Budget{ReserveOutputTokens: 10}, "leaves nothing"},
		{Budget{ContextWindow: 1 << 60}, "ContextWindow"},
		{Budget{ContextWindow: 1000, MaxSummaryTokens: -1}, "MaxSummaryTokens"},
		{Budget{Summarizer: "summarize"}, "leaves nothing"},
		{Budget{ContextWindow: 1000, Summarizer: "summarize"}, "summarizer \"summarize\""},
	} {
		s.config.Settings.Budget = test.budget
		if _, err := NewFlow(s.config); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("NewFlow with %+v: %v, want an error that says %q", test.budget, err, test.says)
		}
	}
	got := string(encoded(t, Settings{Budget: Budget{ContextWindow: 1003, ReserveOutputTokens: 7, Summarizer: "s"}}.withDefaults().Budget))
	if want := `{"contextWindow":1003,"reserveOutputTokens":7,"maxSummaryTokens":250,"summarizer":"s"}`; got != want {
		t.Errorf("a recorded budget is %s, want %s", got, want)
	}
}

// recorder is a summarizer that keeps what it was given.
type recorder struct {
	mu     sync.Mutex
	inputs []string
	reply  func(n int) (any, error) // the n-th answer, from 1; "summary n" if nil
}

func (r *recorder) run(_ context.Context, input jsontext.Value) (any, error) {
	r.mu.Lock()
	r.inputs = append(r.inputs, string(input))
	n := len(r.inputs)
	r.mu.Unlock()
	if r.reply != nil {
		return r.reply(n)
	}
	return agent.Summary{Text: fmt.Sprint("summary ", n)}, nil
}

// summarize gives the stage a budget with a summarizer.
func (s *stage) summarize(b Budget, run func(context.Context, jsontext.Value) (any, error)) {
	b.Summarizer = "summarize"
	s.config.Settings.Budget = b
	s.config.Summarizer = kernel.Effect{ID: "summarize", Mode: kernel.Repeatable, Run: run}
}
