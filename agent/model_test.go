package agent

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// fails is a model whose first replies fail, each in its own way, and whose next
// one is whole.
func fails(seen *[]time.Duration, before string, errs ...error) model.Model {
	var n atomic.Int32
	start := time.Now()
	return modelFunc(func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
		*seen = append(*seen, time.Since(start))
		i := int(n.Add(1)) - 1
		if i < len(errs) {
			if before == "" || yield(says(before), nil) {
				yield(model.Chunk{}, errs[i])
			}
			return
		}
		_ = yield(says("whole"), nil) && yield(ends(model.FinishStop), nil)
	})
}

// A model call is tried three times, as the service asks or after 0.5 and 1 s,
// and only while nothing was said.
func TestRetries(t *testing.T) {
	limited := func(after time.Duration) error { return &model.RetryError{Err: model.ErrRateLimited, After: after} }
	unavailable := fmt.Errorf("dial secret.host: %w", model.ErrUnavailable)
	for _, test := range []struct {
		name   string
		before string
		errs   []error
		at     []time.Duration
		text   string
		code   string
	}{
		{
			"as asked", "",
			[]error{limited(7 * time.Second), limited(30 * time.Second)},
			[]time.Duration{0, 7 * time.Second, 37 * time.Second},
			"whole", "",
		},
		{
			"exponential", "",
			[]error{unavailable, model.ErrCut},
			[]time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond},
			"whole", "",
		},
		{
			"no more than three", "",
			[]error{unavailable, unavailable, unavailable},
			[]time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond},
			"", "MODEL_UNAVAILABLE",
		},
		{"not longer than 30 s", "", []error{limited(31 * time.Second)}, []time.Duration{0}, "", "MODEL_RATE_LIMITED"},
		{"not after a delta", "He said: ", []error{unavailable}, []time.Duration{0}, "He said: ", "MODEL_UNAVAILABLE"},
		{"not a refusal", "", []error{model.ErrRefused}, []time.Duration{0}, "", "MODEL_REFUSED"},
		{"not an overflow", "", []error{model.ErrOverflow}, []time.Duration{0}, "", "MODEL_OVERFLOW"},
		{"an error without a code", "", []error{errors.New("secret")}, []time.Duration{0}, "", "FAILED"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var at []time.Duration
				l := newLab(t, fails(&at, test.before, test.errs...))
				got := l.ask("hi")
				if got.Reply.Text != test.text || got.Code != test.code {
					t.Errorf("came to %q with code %q, want %q with %q", got.Reply.Text, got.Code, test.text, test.code)
				}
				if fmt.Sprint(at) != fmt.Sprint(test.at) {
					t.Errorf("the model was called at %v, want %v", at, test.at)
				}
				if test.code == "" && len(l.was) != 0 || test.code != "" && len(l.was) != 1 {
					t.Errorf("observed %v, code %q", l.was, test.code)
				}
				if test.code != "" && len(l.was) == 1 && !errors.Is(l.was[0], test.errs[len(test.errs)-1]) {
					t.Errorf("observed %v, want the model's own error", l.was)
				}
				for _, e := range l.events("run1") {
					if strings.Contains(string(e.Data), "secret") {
						t.Errorf("the error's text is in the log: %s", e.Data)
					}
				}
			})
		})
	}
}

// A model that falls silent, or goes on for too long, is cut; what it said is
// kept.
func TestModelTimeouts(t *testing.T) {
	for _, test := range []struct {
		name   string
		script string
		text   string
		after  time.Duration
	}{
		{"silence", `say "One."
  wait 61s
  say "Two."`, "One.", 60 * time.Second},
		{"silence before the first word", `wait 61s
  say "One."`, "", 60 * time.Second},
		{"in all", `repeat 11 "x" 59s`, "xxxxxxxxxx", 10 * time.Minute},
		{"deaf and talking", `deaf
  say "One."
  wait 61s
  say "Two."`, "One.", 61 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, plays(t, "otherwise\n  "+test.script))
				start := time.Now()
				got := l.ask("hi")
				if got.Code != model.ErrTimeout.Code || got.Reply.Text != test.text {
					t.Errorf("came to %q with code %q, want %q with %q", got.Reply.Text, got.Code, test.text, model.ErrTimeout.Code)
				}
				if after := time.Since(start); after != test.after {
					t.Errorf("it took %v, want %v", after, test.after)
				}
			})
		})
	}
}

// A model that overlooks the end of its context is left behind.
func TestModelLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		defer close(leave)
		l := newLab(t, modelFunc(func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			yield(says("One."), nil)
			<-leave
			yield(says("Two."), nil)
		}))
		start := time.Now()
		got := l.ask("hi")
		if got.Code != model.ErrTimeout.Code || got.Reply.Text != "One." {
			t.Errorf("came to %q with code %q, want %q with %q", got.Reply.Text, got.Code, "One.", model.ErrTimeout.Code)
		}
		if after := time.Since(start); after != model.DefaultTotal+2*grace {
			t.Errorf("it took %v, want %v", after, model.DefaultTotal+2*grace)
		}
	})
}

// The deltas of a turn are the text of its reply, over rounds too; a replay has
// none (C-9.4).
func TestDeltas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, plays(t, `
otherwise
  words "Let me look at that."
  call clock {}
then
  call clock {}
then
  words "It is late."
`))
		var mu sync.Mutex
		var shown strings.Builder
		before := map[string]string{"loop#model:1": "", "loop#model:3": "Let me look at that."}
		l.def.Tools = []Tool{Clock()}
		l.def.OnDelta = func(ctx context.Context, d Delta) {
			mu.Lock()
			defer mu.Unlock()
			if step, ok := kernel.StepFrom(ctx); !ok || step.Execution != "run1" {
				t.Errorf("a delta of step %+v", step)
			}
			if step, _ := kernel.StepFrom(ctx); d.Before != before[step.ID] {
				t.Errorf("before %s was said %q, want %q", step.ID, d.Before, before[step.ID])
			}
			shown.WriteString(d.Text)
		}
		got := l.ask("go")
		if got.Reply.Text != "Let me look at that.\n\nIt is late." || shown.String() != got.Reply.Text {
			t.Errorf("shown %q, replied %q", shown.String(), got.Reply.Text)
		}
	})
}

// A reply and a result end at 256 KiB and say so, whatever they are made of:
// an event must hold them.
func TestCuts(t *testing.T) {
	for _, unit := range []string{"\x01", "😀"} {
		t.Run(fmt.Sprintf("%q", unit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				big := strings.Repeat(unit, MaxTextBytes/len(unit)+1)
				l := newLab(t, modelFunc(func(_ context.Context, req model.Request, yield func(model.Chunk, error) bool) {
					if len(req.Messages) == 1 {
						_ = yield(calls("c", "big", "{}"), nil) && yield(ends(model.FinishCalls), nil)
						return
					}
					for yield(says(big[:len(big)/4]), nil) {
					}
				}))
				l.def.Tools = []Tool{toolFunc("big", kernel.Once, func(context.Context, jsontext.Value) (Result, error) {
					return Result{Text: big}, nil
				})}
				got := l.ask("go")
				text := got.Reply.Text
				if got.Code != "" || len(text) > MaxTextBytes || encodedLen(text) > maxEncodedBytes || !strings.HasSuffix(text, replyCut) {
					t.Errorf("code %q, a reply of %d bytes that ends with %q", got.Code, len(text), text[max(0, len(text)-80):])
				}
				if len(text) < MaxTextBytes/4 {
					t.Errorf("only %d bytes of the reply are left", len(text))
				}
				result := l.model.sent()[1].Messages[2].Results[0].Text
				if !strings.Contains(result, resultCut) {
					t.Errorf("the result does not say that it was cut; it ends with %q", result[max(0, len(result)-120):])
				}
			})
		})
	}
}

// What a model and a tool send is made valid UTF-8 on entry (K6).
func TestScrub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, modelFunc(func(_ context.Context, req model.Request, yield func(model.Chunk, error) bool) {
			if len(req.Messages) == 1 {
				for range 2 {
					if !yield(calls("bad\xffid", "raw", "{}"), nil) {
						return
					}
				}
				yield(ends(model.FinishCalls), nil)
				return
			}
			_ = yield(says("a\xffb"), nil) && yield(ends(model.FinishStop), nil)
		}))
		l.def.Tools = []Tool{toolFunc("raw", kernel.Once, func(context.Context, jsontext.Value) (Result, error) {
			return Result{Text: "\xf0\x9f"}, nil
		})}
		if got := l.ask("go"); got.Reply.Text != "a\uFFFDb" {
			t.Errorf("reply %q", got.Reply.Text)
		}
		if got, want := l.model.sent()[1].Messages[2].Results[0].Text, taint.Fence(taint.Tainted("\uFFFD", "tool:raw")); got != want {
			t.Errorf("result %q, want %q", got, want)
		}
	})
}

// A reply with more calls than can be recorded is no reply.
func TestTooManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, modelFunc(func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			for yield(calls("c", "none", "{}"), nil) {
			}
		}))
		if got := l.ask("go"); got.Code != model.ErrMalformed.Code {
			t.Errorf("code %q, want %q", got.Code, model.ErrMalformed.Code)
		}
	})
}

// A definition that cannot work is refused when its effects are made (C-8.3).
func TestRefusals(t *testing.T) {
	run := func(context.Context, jsontext.Value) (Result, error) { return Result{}, nil }
	tainted := taint.Tainted("obey", taint.OriginUser)
	model := plays(t, "otherwise\n  reply")
	for _, test := range []struct {
		name string
		def  Definition
	}{
		{"no model", Definition{}},
		{"tainted system prompt", Definition{Model: model, System: tainted}},
		{"tainted description", Definition{Model: model, Tools: []Tool{{Name: "a", Description: tainted, Run: run}}}},
		{"tool without a name", Definition{Model: model, Tools: []Tool{{Run: run}}}},
		{"tool with a strange name", Definition{Model: model, Tools: []Tool{{Name: "a b", Run: run}}}},
		{"tool with a long name", Definition{Model: model, Tools: []Tool{{Name: strings.Repeat("a", 65), Run: run}}}},
		{"two of one name", Definition{Model: model, Tools: []Tool{{Name: "a", Run: run}, {Name: "a", Run: run}}}},
		{"tool that does nothing", Definition{Model: model, Tools: []Tool{{Name: "a"}}}},
		{"schema that is none", Definition{Model: model, Tools: []Tool{{Name: "a", Run: run, Schema: jsontext.Value(`[]`)}}}},
		{"negative limit", Definition{Model: model, Limits: Limits{Calls: -1}}},
		{"negative time", Definition{Model: model, ToolTimeout: -1}},
	} {
		if effects, err := test.def.Effects(); err == nil || effects != nil {
			t.Errorf("%s: Effects() = %v, %v; want an error and nothing", test.name, effects, err)
		}
	}
	if _, err := (Definition{Model: model, System: tainted}).Effects(); !errors.Is(err, taint.ErrTaintedContent) {
		t.Errorf("a tainted system prompt gives %v, want %v", err, taint.ErrTaintedContent)
	}
}
