package agent

import (
	"context"
	"encoding/json/jsontext"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/kernel"
)

// lastResult is what the model was told of its last call.
func lastResult(l *lab) string {
	sent := l.model.sent()
	messages := sent[len(sent)-1].Messages
	return messages[len(messages)-1].Results[0].Text
}

const callsOnce = `
otherwise
  call act {"what":"open the door"}
then
  say "so be it"
`

// A tool has its time. What a tool that runs once came to after that is
// unknown, and one that overlooks its context is left behind (T59).
func TestToolTimeout(t *testing.T) {
	for _, test := range []struct {
		name  string
		mode  kernel.Mode
		deaf  bool
		told  string
		after time.Duration
	}{
		{"once", kernel.Once, false, tellUnknown, 120 * time.Second},
		{"repeatable", kernel.Repeatable, false, tellTimeout, 120 * time.Second},
		{"once and deaf", kernel.Once, true, tellUnknown, 120*time.Second + grace},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, plays(t, callsOnce))
				leave := make(chan struct{})
				defer close(leave)
				l.def.Tools = []Tool{toolFunc("act", test.mode, func(ctx context.Context, _ jsontext.Value) (Result, error) {
					if test.deaf {
						<-leave
					}
					<-ctx.Done()
					return Result{}, ctx.Err()
				})}
				start := time.Now()
				got := l.ask("go")
				if got.Code != "" || got.Reply.Text != "so be it" || lastResult(l) != test.told {
					t.Errorf("came to %+v, the model was told %q, want %q", got, lastResult(l), test.told)
				}
				if after := time.Since(start); after != test.after {
					t.Errorf("it took %v, want %v", after, test.after)
				}
			})
		})
	}
}

// T59: the process dies while a tool acts. The tool is not called again, and
// the model is told that the outcome is unknown, not that nothing was done. A
// repeatable tool is called again.
func TestToolCutByACrash(t *testing.T) {
	for _, test := range []struct {
		name  string
		mode  kernel.Mode
		calls int32
		told  string
	}{
		{"once", kernel.Once, 1, tellUnknown},
		{"repeatable", kernel.Repeatable, 2, "acted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, plays(t, callsOnce))
				l.wrap = true
				var called atomic.Int32
				l.def.Tools = []Tool{toolFunc("act", test.mode, func(ctx context.Context, _ jsontext.Value) (Result, error) {
					if called.Add(1) == 1 {
						<-ctx.Done()
						return Result{}, ctx.Err()
					}
					return Result{Text: "acted"}, nil
				})}
				id := l.start(job{Request: Request{Prompt: "go"}})
				synctest.Wait()
				l.stop()
				l.boot()
				if got := l.wait(id); got.Code != "" || got.Reply.Text != "so be it" {
					t.Errorf("came to %+v", got)
				}
				if called.Load() != test.calls {
					t.Errorf("the tool was called %d times, want %d", called.Load(), test.calls)
				}
				if told := lastResult(l); !strings.Contains(told, test.told) {
					t.Errorf("the model was told %q, want %q", told, test.told)
				}
			})
		})
	}
}

// The clock tells the time of a zone, and says what is wrong with its arguments.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			args   string
			text   string
			failed bool
		}{
			{`{}`, "Saturday, 1 January 2000, 00:00:00 +00:00 (UTC)", false},
			{`{"zone":"UTC"}`, "Saturday, 1 January 2000, 00:00:00 +00:00 (UTC)", false},
			{`{"zone":"Local"}`, "There is no such time zone here.", true},
			{`{"zone":"../../etc/passwd"}`, "There is no such time zone here.", true},
			{`{"zone":7}`, `The arguments are not {"zone": "<IANA time zone>"}.`, true},
		} {
			got, err := Clock().Run(t.Context(), jsontext.Value(test.args))
			if err != nil || got.Text != test.text || got.Failed != test.failed {
				t.Errorf("clock %s = %+v, %v; want %q", test.args, got, err, test.text)
			}
		}
	})
}
