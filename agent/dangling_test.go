package agent

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
)

// The spy holds every request of these tests against the contract of a request:
// each call has exactly one result beside it.

// toldOf says what the model was told of its last calls, by their names.
func toldOf(l *lab) map[string]string {
	sent := l.model.sent()
	messages := sent[len(sent)-1].Messages
	out := map[string]string{}
	for _, r := range messages[len(messages)-1].Results {
		out[r.Name] += r.Text
	}
	return out
}

// T57, T63: a run is interrupted while its only tool is running, before any
// result. The tool is let finish, the run ends as interrupted, and the next run
// of the same agent is answered.
func TestInterruptedWhileAToolRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, plays(t, "when is \"act\"\n  say \"I act. \"\n  call act {}\nthen\n  say \"never said\"\notherwise\n  say \"here I am\""))
		interrupt, finish := make(chan struct{}), make(chan struct{})
		finished := false
		l.def.Tools = []Tool{toolFunc("act", kernel.Once, func(ctx context.Context, _ jsontext.Value) (Result, error) {
			close(interrupt)
			<-finish
			finished = ctx.Err() == nil
			return Result{Text: "acted"}, nil
		})}
		l.sign = func(context.Context) <-chan struct{} { return interrupt }
		id := l.start(job{Request: Request{Prompt: "act"}})
		synctest.Wait()
		close(finish)
		if got := l.wait(id); got.Code != "AGENT_INTERRUPTED" || got.Reply.Text != "I act. " || !finished {
			t.Errorf("came to %+v, tool finished %t; want it interrupted with its partial text, and the tool let finish", got, finished)
		}
		l.sign = nil
		if got := l.ask("and now?"); got.Code != "" || got.Reply.Text != "here I am" {
			t.Errorf("the next run came to %+v", got)
		}
	})
}

// T58: runs that are interrupted, fail or are cut by a stop of the process at any
// point leave no call without a result: every request of what follows is whole.
func TestNoDanglingCalls(t *testing.T) {
	rounds := 60
	if underRace || testing.Short() {
		rounds = 15
	}
	for seed := range uint64(rounds) {
		synctest.Test(t, func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 58))
			l := newLab(t, plays(t, "otherwise\n  words \"let me see\" 20ms\n  call slow {}\n  call fails {}\n  call none {}\nthen\n  words \"once more\" 20ms\n  call slow {}\n  call slow {}\nthen\n  words \"that is all\" 20ms"))
			l.wrap = true
			l.def.Tools = []Tool{
				toolFunc("slow", kernel.Once, func(ctx context.Context, _ jsontext.Value) (Result, error) {
					select {
					case <-time.After(50 * time.Millisecond):
						return Result{Text: "slowly"}, nil
					case <-ctx.Done():
						return Result{}, ctx.Err()
					}
				}),
				toolFunc("fails", kernel.Repeatable, func(context.Context, jsontext.Value) (Result, error) { return Result{}, errors.New("broken") }),
			}
			interrupt := make(chan struct{})
			l.sign = func(context.Context) <-chan struct{} { return interrupt }
			id := l.start(job{Request: Request{Prompt: "go"}})
			for range 2 {
				<-time.After(time.Duration(chance.IntN(300)) * time.Millisecond)
				if chance.IntN(3) == 0 {
					close(interrupt)
					break
				}
				l.stop()
				l.boot()
			}
			got := l.wait(id)
			if got.Code != "" && got.Code != "AGENT_INTERRUPTED" {
				t.Errorf("seed %d: came to %+v", seed, got)
			}
			if got.Code == "" && !strings.HasSuffix(got.Reply.Text, "that is all") {
				t.Errorf("seed %d: came to %+v, want the end of it", seed, got)
			}
		})
	}
}

// T62: the process dies while several tools of one reply run. What has finished
// is kept, what has not is told as unknown or runs again, and the run goes on.
func TestCrashInAParallelBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, plays(t, "otherwise\n  call done {}\n  call open {}\n  call again {}\nthen\n  say \"so be it\""))
		l.wrap = true
		var mu sync.Mutex
		ran := map[string]int{}
		add := func(name string, mode kernel.Mode, run func(ctx context.Context, time int) (Result, error)) {
			l.def.Tools = append(l.def.Tools, toolFunc(name, mode, func(ctx context.Context, _ jsontext.Value) (Result, error) {
				mu.Lock()
				ran[name]++
				n := ran[name]
				mu.Unlock()
				return run(ctx, n)
			}))
		}
		add("done", kernel.Once, func(context.Context, int) (Result, error) { return Result{Text: "finished"}, nil })
		add("open", kernel.Once, func(ctx context.Context, _ int) (Result, error) { <-ctx.Done(); return Result{}, ctx.Err() })
		add("again", kernel.Repeatable, func(ctx context.Context, n int) (Result, error) {
			if n == 1 {
				<-ctx.Done()
				return Result{}, ctx.Err()
			}
			return Result{Text: "the second time"}, nil
		})
		id := l.start(job{Request: Request{Prompt: "go"}})
		synctest.Wait()
		l.stop()
		l.boot()
		if got := l.wait(id); got.Code != "" || got.Reply.Text != "so be it" {
			t.Errorf("came to %+v", got)
		}
		if diff := cmp.Diff(map[string]int{"done": 1, "open": 1, "again": 2}, ran); diff != "" {
			t.Errorf("runs of the tools (-want +got):\n%s", diff)
		}
		for name, want := range map[string]string{"done": "finished", "open": tellUnknown, "again": "the second time"} {
			if got := toldOf(l)[name]; !strings.Contains(got, want) {
				t.Errorf("of %s the model was told %q, want %q", name, got, want)
			}
		}
	})
}

// T64: whatever a model's service makes of its calls, every one is closed: no id,
// one id for all, an id that is no word, no such tool, arguments that are none.
func TestEveryCallIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, modelFunc(func(_ context.Context, req model.Request, yield func(model.Chunk, error) bool) {
			if len(req.Messages) > 1 {
				_ = yield(says("so be it"), nil) && yield(ends(model.FinishStop), nil)
				return
			}
			for i, call := range []model.Chunk{
				calls("", "act", `{}`), calls("a", "act", `{}`), calls("a", "act", `{}`), calls("call-1", "act", `{}`),
				calls("an id of \"words\"", "act", `{}`), calls("b", "none", `{}`), calls("c", "act", `[`), calls("d", "", ``),
			} {
				if !yield(call, nil) {
					t.Errorf("the model was cut at call %d", i)
					return
				}
			}
			yield(ends(model.FinishCalls), nil)
		}))
		var ran atomic.Int32
		l.def.Tools = []Tool{toolFunc("act", kernel.Once, func(context.Context, jsontext.Value) (Result, error) {
			return Result{Text: fmt.Sprint("acted ", ran.Add(1))}, nil
		})}
		got := l.ask("go")
		if got.Code != "" || got.Reply.Text != "so be it" || ran.Load() != 5 {
			t.Errorf("came to %+v, the tool ran %d times, want 5", got, ran.Load())
		}
		messages := l.model.sent()[1].Messages
		asked, answered := messages[1].Calls, messages[2].Results
		if len(asked) != 8 || len(answered) != 8 {
			t.Fatalf("%d calls and %d results in the next request, want 8 and 8", len(asked), len(answered))
		}
		for i, result := range answered {
			if result.CallID != asked[i].ID || result.Text == "" {
				t.Errorf("result %d is %+v, want one for call %s", i, result, asked[i].ID)
			}
		}
	})
}
