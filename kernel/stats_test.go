package kernel_test

import (
	"context"
	"encoding/json/jsontext"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/kernel"
)

// What a runtime is at: parked executions have nothing waiting, one at work has
// what lies behind the message that it took, before a restart and after it; one
// that is stuck is neither.
func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		gated := kernel.Effect{ID: "gated", Mode: kernel.Repeatable, Run: func(ctx context.Context, _ jsontext.Value) (any, error) {
			select {
			case <-gate:
			case <-ctx.Done():
			}
			return "through", ctx.Err()
		}}
		w := newWorld(t, kernel.Config{Effects: []kernel.Effect{gated}, Flows: []kernel.Flow{
			flow("works", func(c *kernel.Context, _ jsontext.Value) (any, error) {
				for {
					text := unquoted(c.Receive("in"))
					if _, err := c.Execute[string](text, "gated", nil); err != nil {
						return nil, err
					}
				}
			}),
			flow("breaks", func(*kernel.Context, jsontext.Value) (any, error) { panic("broken") }),
		}})
		check := func(when string, want kernel.Stats, backlog int) {
			t.Helper()
			synctest.Wait()
			if got := w.rt.Stats(); got != want {
				t.Errorf("%s: Stats() = %+v, want %+v", when, got, want)
			}
			if got := w.rt.Backlog(t.Context()); got != backlog {
				t.Errorf("%s: Backlog() = %d, want %d", when, got, backlog)
			}
		}
		w.start("works", "x", nil)
		w.start("works", "y", nil)
		check("parked", kernel.Stats{Hot: 2}, 0)
		for _, text := range []string{"a", "b", "c"} {
			w.send("x", text, text)
		}
		check("at work", kernel.Stats{Hot: 2, Busy: 1}, 2)
		w.reboot() // which wakes the one that was parked too: it was so for less than a second
		check("after a restart", kernel.Stats{Hot: 2, Busy: 1}, 2)
		w.start("breaks", "z", nil)
		check("one is stuck", kernel.Stats{Hot: 2, Busy: 1, Stuck: 1}, 2)
		close(gate)
		check("done", kernel.Stats{Hot: 2, Stuck: 1}, 0)
	})
}
