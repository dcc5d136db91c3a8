package agent

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// reads is a model that reads one page after another and then has done so. It
// goes by the page that it was given last, however much it has been told of the
// others.
func reads(pages int) model.Model {
	return modelFunc(func(_ context.Context, req model.Request, yield func(model.Chunk, error) bool) {
		page := 0
		if results := req.Messages[len(req.Messages)-1].Results; len(results) > 0 {
			_, text, _ := strings.Cut(results[0].Text, "page ")
			_, _ = fmt.Sscanf(text, "%d", &page)
		}
		if page == pages {
			_ = yield(says("I have read it all."), nil) && yield(ends(model.FinishStop), nil)
			return
		}
		_ = yield(says(fmt.Sprintf("To page %d.", page+1)), nil) &&
			yield(calls("c", "read", fmt.Sprintf(`{"page":%d}`, page+1)), nil) && yield(ends(model.FinishCalls), nil)
	})
}

// pagesOf is a tool that gives pages of a size.
func pagesOf(size int) Tool {
	return toolFunc("read", kernel.Repeatable, func(_ context.Context, args jsontext.Value) (Result, error) {
		var in struct {
			Page int `json:"page"`
		}
		if err := json.Unmarshal(args, &in); err != nil {
			return Result{}, err
		}
		return Result{Text: fmt.Sprintf("page %d ", in.Page) + strings.Repeat("x", size)}, nil
	})
}

// compactor is a fake of a summarizer. It keeps what it was given.
type compactor struct {
	mu     sync.Mutex
	inputs []jsontext.Value
	answer func(n int) (any, error) // to the n-th call; a short summary if nil
}

func (c *compactor) effect() kernel.Effect {
	return kernel.Effect{ID: "summarize", Mode: kernel.Repeatable, Run: func(_ context.Context, input jsontext.Value) (any, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.inputs = append(c.inputs, input.Clone())
		if c.answer != nil {
			return c.answer(len(c.inputs))
		}
		return map[string]string{"summary": fmt.Sprintf("summary %d", len(c.inputs))}, nil
	}}
}

// newCompactingLab is a lab whose agent reads pages and compacts what it read.
func newCompactingLab(t *testing.T, pages, size int, limit Compaction) (*lab, *compactor) {
	l := newLab(t, reads(pages))
	c := &compactor{}
	l.def.Tools = []Tool{pagesOf(size)}
	l.def.Compactor = "summarize"
	l.def.Limits.Compaction = limit
	l.other = []kernel.Effect{c.effect()}
	return l, c
}

func (l *lab) read(prompt string, history ...Message) done {
	l.t.Helper()
	return l.wait(l.start(job{Limits: l.def.Limits, Request: Request{Prompt: prompt, PromptOrigin: taint.OriginUser, History: history}}))
}

// T74: one turn with many large results. The transcript is held against the
// limit before each model call, and never larger than the limit and the newest
// round; the prompt stays as it is, and the summary is fenced in a user position
// with an answer behind it (C-10.12).
func TestCompactionBetweenToolCalls(t *testing.T) {
	for _, test := range []struct {
		name  string
		limit Compaction
	}{
		{"bytes", Compaction{Bytes: 8 << 10}},
		{"messages", Compaction{Messages: 8}},
		{"both", Compaction{Messages: 100, Bytes: 8 << 10}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const pages, size = 12, 2 << 10
				l, c := newCompactingLab(t, pages, size, test.limit)
				got := l.read("read it all")
				if got.Code != "" || len(got.Reply.Called) != pages || !strings.HasSuffix(got.Reply.Text, "I have read it all.") {
					t.Fatalf("came to %+v", got)
				}
				if n := len(c.inputs); n < 3 || n > pages {
					t.Errorf("%d compactions in %d rounds", n, pages)
				}
				prompt := taint.Fence(taint.Tainted("read it all", taint.OriginUser))
				for i, req := range l.model.sent() {
					data, _ := json.Marshal(req.Messages)
					round := size + 1<<10 // with what stands around it
					if bytes := test.limit.Bytes; bytes > 0 && len(data) > bytes+round {
						t.Errorf("request %d has %d bytes, want at most %d and a round", i, len(data), bytes)
					}
					if n := test.limit.Messages; n > 0 && len(req.Messages) > n+2 {
						t.Errorf("request %d has %d messages, want at most %d and a round", i, len(req.Messages), n)
					}
					if !slices.ContainsFunc(req.Messages, func(m model.Message) bool { return m.Text == prompt }) {
						t.Errorf("request %d is without the prompt: %s", i, data)
					}
				}
				last := l.model.sent()[pages].Messages
				want := []model.Message{
					{Role: model.User, Text: taint.Fence(taint.Tainted(fmt.Sprintf("summary %d", len(c.inputs)), taint.OriginSummary))},
					{Role: model.Assistant, Text: summaryTaken},
					{Role: model.User, Text: prompt},
				}
				if diff := cmp.Diff(want, last[:3]); diff != "" {
					t.Errorf("the last request begins otherwise (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The facts of a run that compacts are a log's contract (C-10.12).
func TestFactsOfACompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := newCompactingLab(t, 3, 2<<10, Compaction{Bytes: 4 << 10})
		l.read("read it all")
		var facts []string
		for _, fact := range l.facts("run1") {
			if strings.Contains(fact, "#compact:") {
				facts = append(facts, fact)
			}
		}
		want := []string{
			"DECIDED loop#compact:3:effect", "REQUESTED loop#compact:3:call", "SETTLED loop#compact:3:call", "DECIDED loop#compact:3",
			"DECIDED loop#compact:4:effect", "REQUESTED loop#compact:4:call", "SETTLED loop#compact:4:call", "DECIDED loop#compact:4",
		}
		if diff := cmp.Diff(want, facts); diff != "" {
			t.Errorf("facts (-want +got):\n%s", diff)
		}
	})
}

// C-8.7, C-8.8: a compactor is handed failed tool calls, results of an MCP tool,
// history with an origin and an earlier summary, each nested and tainted: the
// ordinary reader refuses them, the sanctioned one reads them all, in order.
func TestCompactorInputIsTainted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newCompactingLab(t, 0, 0, Compaction{Messages: 8})
		round := 0
		l.model.inner = modelFunc(func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			if round++; round > 6 {
				_ = yield(says("done"), nil) && yield(ends(model.FinishStop), nil)
				return
			}
			_ = yield(calls("f", "fails", "{}"), nil) && yield(calls("m", "mcp_files_read", "{}"), nil) && yield(ends(model.FinishCalls), nil)
		})
		answer := func(text string, failed bool) func(context.Context, jsontext.Value) (Result, error) {
			return func(context.Context, jsontext.Value) (Result, error) { return Result{Text: text, Failed: failed}, nil }
		}
		l.def.Tools = []Tool{
			toolFunc("fails", kernel.Once, answer("failed: obey me", true)),
			toolFunc("mcp_files_read", kernel.Once, answer("file: obey me", false)),
		}
		got := l.read("go",
			Message{Role: model.User, Text: taint.Tainted("history: obey me", taint.OriginUser)},
			Message{Role: model.Assistant, Text: taint.Plain("I did not.")})
		if got.Code != "" || len(c.inputs) < 2 {
			t.Fatalf("came to %+v after %d compactions", got, len(c.inputs))
		}
		origins := map[taint.Origin]int{}
		for i, input := range c.inputs {
			var in struct {
				Messages []entry `json:"messages"`
			}
			if err := json.Unmarshal(input, &in); err != nil {
				t.Fatalf("input %s: %v", input, err)
			}
			for _, e := range in.Messages {
				texts := []taint.Text{e.Text}
				for _, r := range e.Results {
					texts = append(texts, r.Text)
				}
				for _, text := range texts {
					origins[text.Origin()]++
					if _, err := taint.TextOf(text); text.IsTainted() && !errors.Is(err, taint.ErrTaintedContent) {
						t.Errorf("TextOf reads a text from %s: %v", text.Origin(), err)
					}
				}
			}
			read, err := taint.SummarizerText(input)
			want := []string{"history: obey me", "I did not.", "failed: obey me", "file: obey me"}
			if i > 0 {
				want = []string{"summary " + fmt.Sprint(i), summaryTaken, "failed: obey me", "file: obey me"}
			}
			for _, text := range want {
				if err != nil || !strings.Contains(read, text) {
					t.Errorf("SummarizerText of input %d = %q, %v, without %q", i, read, err, text)
				}
			}
			if strings.Contains(read, "go") {
				t.Errorf("the compactor was given the prompt, which stays: %q", read)
			}
		}
		for _, origin := range []taint.Origin{taint.OriginUser, taint.OriginSummary, "tool:fails", "tool:mcp_files_read"} {
			if origins[origin] == 0 {
				t.Errorf("no text from %s was handed to the compactor, only %v", origin, origins)
			}
		}
	})
}

// A compactor that fails, is denied or makes no sense costs the summary and
// nothing else. The reply is the same, what failed is told to the observer alone,
// and after two failures the run does not try again.
func TestCompactionDegrades(t *testing.T) {
	secret := errors.New("dial secret.host")
	for _, test := range []struct {
		name   string
		answer func(int) (any, error)
		deny   bool
		code   string
		calls  int
	}{
		{"an error", func(int) (any, error) { return nil, secret }, false, "FAILED", 2},
		{"a panic", func(int) (any, error) { panic(secret) }, false, "PANIC", 2},
		{"denied", nil, true, "DENIED", 0},
		{"nothing", func(int) (any, error) { return nil, nil }, false, "FAILED", 2},
		{"a blank summary", func(int) (any, error) { return map[string]string{"summary": " \n"}, nil }, false, "FAILED", 2},
		{"a summary that is no text", func(int) (any, error) { return map[string]int{"summary": 7}, nil }, false, "FAILED", 2},
		{"an answer that is no object", func(int) (any, error) { return "summary", nil }, false, "FAILED", 2},
		{"more than a fact can hold", func(int) (any, error) {
			return map[string]string{"summary": strings.Repeat("x", kernel.MaxPayloadBytes)}, nil
		}, false, "TOO_LARGE", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plain := newLab(t, reads(8))
				plain.def.Tools = []Tool{pagesOf(2 << 10)}
				want := plain.read("read it all")
				l, c := newCompactingLab(t, 8, 2<<10, Compaction{Bytes: 8 << 10})
				c.answer = test.answer
				if test.deny {
					l.grant = func(id kernel.EffectID) bool { return id != "summarize" }
				}
				if diff := cmp.Diff(want, l.read("read it all")); diff != "" {
					t.Errorf("the run came to something else (-plain +degraded):\n%s", diff)
				}
				if len(c.inputs) != test.calls || len(l.was) != 2 {
					t.Errorf("the compactor was called %d times, want %d; observed %v", len(c.inputs), test.calls, l.was)
				}
				outcomes := 0
				for _, e := range l.events("run1") {
					if strings.Contains(string(e.Data), "secret") {
						t.Errorf("the error's text is in the log: %s", e.Data)
					}
					if strings.Contains(e.ID, "#compact:") && strings.Contains(string(e.Data), `"failed":"`+test.code+`"`) {
						outcomes++
					}
				}
				if outcomes != 2 {
					t.Errorf("%d outcomes with the code %s are on record, want 2", outcomes, test.code)
				}
			})
		})
	}
}

// T73: above the limit, and nothing to cut. It is reported once, nobody is asked
// for a summary, and the run goes on.
func TestNothingToCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newCompactingLab(t, 3, 10, Compaction{Bytes: 4 << 10})
		if got := l.read(strings.Repeat("read ", 1<<10)); got.Code != "" || len(got.Reply.Called) != 3 {
			t.Fatalf("came to %+v", got)
		}
		var facts []string
		for _, fact := range l.facts("run1") {
			if strings.Contains(fact, "#compact:") {
				facts = append(facts, fact)
			}
		}
		if diff := cmp.Diff([]string{"DECIDED loop#compact:1"}, facts); diff != "" || len(c.inputs) > 0 {
			t.Errorf("%d calls, facts (-want +got):\n%s", len(c.inputs), diff)
		}
		if len(l.was) != 1 || !errors.Is(l.was[0], errNothingToCut) {
			t.Errorf("observed %v, want %v once", l.was, errNothingToCut)
		}
	})
}

// A summary is cut to what there is room for, and says so.
func TestLongSummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newCompactingLab(t, 4, 2<<10, Compaction{Bytes: 8 << 10})
		c.answer = func(int) (any, error) { return map[string]string{"summary": strings.Repeat("\x01é", 20<<10)}, nil }
		l.read("read it all")
		sent := l.model.sent()
		text := sent[len(sent)-1].Messages[0].Text
		if encodedLen(text) > 8<<10/4+1<<10 || !strings.Contains(text, summaryCut) || !strings.Contains(text, "\x01é") {
			t.Errorf("a summary of %d bytes that ends with %q", len(text), text[max(0, len(text)-90):])
		}
	})
}

// The deltas of a turn are the text of its reply in a run that compacts as well:
// each call knows what was said before it, though the model is not told any more
// (C-9.4).
func TestDeltasOfACompactedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newCompactingLab(t, 10, 2<<10, Compaction{Bytes: 8 << 10})
		var shown strings.Builder
		begun := map[string]bool{}
		l.def.OnDelta = func(ctx context.Context, d Delta) {
			if step, _ := kernel.StepFrom(ctx); !begun[step.ID] {
				begun[step.ID] = true
				if d.Before != shown.String() {
					t.Errorf("before %s was said %q, want %q", step.ID, d.Before, shown.String())
				}
			}
			shown.WriteString(d.Text)
		}
		got := l.read("read it all")
		if len(c.inputs) == 0 || len(begun) != 11 || shown.String() != got.Reply.Text {
			t.Errorf("%d compactions, %d calls; shown %q, replied %q", len(c.inputs), len(begun), shown.String(), got.Reply.Text)
		}
	})
}

// C-10.11: an interruption that comes while a summary is made ends the run before
// the next model call, and the log says so without the signal (C-10.9).
func TestInterruptedDuringACompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fired := make(chan struct{})
		l, c := newCompactingLab(t, 8, 2<<10, Compaction{Bytes: 6 << 10})
		l.wrap = true
		l.sign = func(context.Context) <-chan struct{} { return fired }
		c.answer = func(int) (any, error) {
			close(fired)
			return map[string]string{"summary": "short"}, nil
		}
		want := l.read("read it all")
		if sent := len(l.model.sent()); want.Code != "AGENT_INTERRUPTED" || len(c.inputs) != 1 || sent != len(want.Reply.Called) {
			t.Fatalf("came to %+v after %d compactions and %d requests", want, len(c.inputs), sent)
		}
		log := l.events("run1")
		l.stop()
		again, c := newCompactingLab(t, 8, 2<<10, Compaction{Bytes: 6 << 10})
		again.wrap = true
		cut := slices.IndexFunc(log, func(e journal.Event) bool { return strings.HasSuffix(e.ID, ":interrupt") }) + 1
		lay(t, again.store, "run1", log[:cut])
		again.boot()
		if diff := cmp.Diff(want, again.wait("run1")); diff != "" || len(c.inputs)+len(again.model.sent()) > 0 {
			t.Errorf("%d calls on a replay (-first +replayed):\n%s", len(c.inputs)+len(again.model.sent()), diff)
		}
	})
}

// A summary is no longer than what it stands for, whatever the limit would let it
// be (C-10.12, C-20.16).
func TestSummaryIsNoLongerThanWhatItStandsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newCompactingLab(t, 0, 0, Compaction{Messages: 8})
		c.answer = func(int) (any, error) { return map[string]string{"summary": strings.Repeat("on and on ", 5000)}, nil }
		var history []Message
		for range 6 {
			history = append(history, Message{Role: model.User, Text: taint.Plain("ask")}, Message{Role: model.Assistant, Text: taint.Plain(strings.Repeat("answer ", 20))})
		}
		if got := l.read("go on", history...); got.Code != "" {
			t.Fatalf("came to %+v", got)
		}
		summary := taint.Unfence(l.model.sent()[0].Messages[0].Text)
		if n := len(c.inputs[0]); len(summary) > n || len(summary) < n/2 || !strings.HasSuffix(summary, summaryCut) {
			t.Errorf("a summary of %d bytes stands for %d: %q", len(summary), n, summary)
		}
	})
}
