package kernel_test

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
)

// scripted is an effect that does what its function says and counts its runs.
func scripted(id kernel.EffectID, mode kernel.Mode, calls *counter, run func(n int) (any, error)) kernel.Effect {
	return kernel.Effect{ID: id, Mode: mode, Run: func(ctx context.Context, _ jsontext.Value) (any, error) {
		return run(calls.add(string(id)))
	}}
}

// hang is an effect that waits until it is cut, the first time.
func hang(id kernel.EffectID, mode kernel.Mode, calls *counter) kernel.Effect {
	return kernel.Effect{ID: id, Mode: mode, Run: func(ctx context.Context, _ jsontext.Value) (any, error) {
		if calls.add(string(id)) == 1 {
			<-ctx.Done()
			return "late", nil
		}
		step, _ := kernel.StepFrom(ctx)
		return fmt.Sprint("again ", step.Again), nil
	}}
}

func TestCutStep(t *testing.T) { // C-6.6, T59
	for mode, want := range map[kernel.Mode]string{
		kernel.Repeatable: `{"value":"again true"}`,
		kernel.Once:       `{"fault":"OUTCOME_UNKNOWN"}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			var calls counter
			w := newWorld(t, kernel.Config{
				Effects: []kernel.Effect{hang("hang", mode, &calls)},
				Flows: []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
					value, err := c.Execute[string]("s", "hang", nil)
					if errors.Is(err, kernel.ErrOutcomeUnknown) {
						value = "unknown"
					}
					c.Receive("in") // never comes
					return value, nil
				})},
			})
			w.start("f", "x", nil)
			w.reboot()
			w.wantKinds("x", "STARTED", "REQUESTED s", "SETTLED s")
			if got := w.log("x")[2]; !strings.HasSuffix(got, want) {
				t.Errorf("mode %d: result = %s; want %s", mode, got, want)
			}
			w.reboot()
			w.wantKinds("x", "STARTED", "REQUESTED s", "SETTLED s")
		})
	}
}

// A failed Repeatable step is not served, a failed Once step is (C-6.7).
func TestFailedStep(t *testing.T) {
	for mode, runs := range map[kernel.Mode]int{kernel.Repeatable: 2, kernel.Once: 1} {
		synctest.Test(t, func(t *testing.T) {
			var calls counter
			w := newWorld(t, kernel.Config{
				Effects: []kernel.Effect{scripted("bad", mode, &calls, func(int) (any, error) { return nil, errors.New("secret host") })},
				Flows: []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
					if _, err := c.Execute[string]("s", "bad", nil); err == nil {
						t.Error("the step succeeded")
					}
					c.Receive("in")
					return nil, nil
				})},
			})
			w.start("f", "x", nil)
			w.reboot()
			if got := calls.count("bad"); got != runs {
				t.Errorf("mode %d: effect ran %d times over one restart; want %d", mode, got, runs)
			}
			if all := strings.Join(w.log("x"), "\n"); strings.Contains(all, "secret") {
				t.Errorf("the text of an error is in the log:\n%s", all)
			}
		})
	}
}

func TestRetry(t *testing.T) { // C-6.8
	synctest.Test(t, func(t *testing.T) {
		var calls counter
		effect := scripted("flaky", kernel.Repeatable, &calls, func(n int) (any, error) {
			if n < 3 {
				return nil, errors.New("not yet")
			}
			return n, nil
		})
		effect.Retry = kernel.Retry{Attempts: 5, Wait: func(_ context.Context, attempt int, _ error) bool {
			<-time.After(time.Duration(attempt) * time.Second)
			return true
		}}
		w := newWorld(t, kernel.Config{
			Effects: []kernel.Effect{effect},
			Flows: []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
				return c.Execute[int]("s", "flaky", nil)
			})},
		})
		w.start("f", "x", nil)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		w.wantKinds("x", "STARTED", "REQUESTED s", "SETTLED s", "ENDED")
		if calls.count("flaky") != 3 {
			t.Errorf("runs = %d; want 3", calls.count("flaky"))
		}
	})
}

func TestDenial(t *testing.T) { // C-4.17, C-6.9
	synctest.Test(t, func(t *testing.T) {
		var calls counter
		denied := false
		w := newWorld(t, kernel.Config{
			Effects: []kernel.Effect{scripted("e", kernel.Once, &calls, func(int) (any, error) { return 1, nil })},
			Granted: grantsNothing,
			Flows: []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
				_, err := c.Execute[int]("s", "e", nil)
				denied = errors.Is(err, kernel.ErrDenied)
				return nil, nil
			})},
		})
		w.start("f", "x", nil)
		if !denied || calls.count("e") != 0 {
			t.Errorf("denied = %v, runs = %d; want true, 0", denied, calls.count("e"))
		}
	})
}

// A panic in the host's own hooks fails the step, and not the process.
func TestPanickingHooks(t *testing.T) {
	for name, config := range map[string]kernel.Config{
		"Granted": {
			Granted: func(*identity.Identity, kernel.EffectID) bool { panic("no") },
			Effects: []kernel.Effect{echo},
		},
		"Retry.Wait": {Effects: []kernel.Effect{{
			ID: "echo", Mode: kernel.Repeatable,
			Run:   func(context.Context, jsontext.Value) (any, error) { return nil, errors.New("fails") },
			Retry: kernel.Retry{Attempts: 2, Wait: func(context.Context, int, error) bool { panic("no") }},
		}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			config.Flows = []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
				return c.Execute[string]("s", "echo", "x")
			})}
			w := newWorld(t, config)
			w.start("f", "x", nil)
			if info, err := w.rt.Query(t.Context(), ann, "x"); err != nil || info.Fault != kernel.ErrPanic.Code {
				t.Errorf("a panic in %s: Query = %+v, %v; want fault %s", name, info, err, kernel.ErrPanic.Code)
			}
		})
	}
}

func TestPanics(t *testing.T) { // K2
	synctest.Test(t, func(t *testing.T) {
		broken := true
		w := newWorld(t, kernel.Config{
			Effects: []kernel.Effect{{ID: "boom", Mode: kernel.Repeatable, Run: func(context.Context, jsontext.Value) (any, error) { panic("user text") }}},
			Flows: []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
				_, err := c.Decide("d", "s", func(context.Context) (int, error) { panic("user text") })
				_, err2 := c.Execute[int]("e", "boom", nil)
				_, err3 := c.Decide("j", "s", func(context.Context) (any, error) { return func() {}, nil }) // no JSON form
				for _, err := range []error{err, err2, err3} {
					if !errors.Is(err, kernel.ErrPanic) {
						t.Errorf("err = %v; want ErrPanic", err)
					}
				}
				if broken {
					panic("user text")
				}
				return "mended", nil
			})},
		})
		w.start("f", "x", nil)
		if got := w.state("x"); got != kernel.Stuck {
			t.Errorf("state = %s; want stuck", got)
		}
		if text := w.logged.String(); strings.Contains(text, "user text") {
			t.Errorf("a panic's text is in the operator's log: %s", text)
		}
		before := len(w.log("x"))
		broken = false
		w.reboot()
		if got := w.state("x"); got != kernel.Completed {
			t.Errorf("state with a mended build = %s; want completed", got)
		}
		if got := len(w.log("x")); got != before+3 {
			t.Errorf("log grew by %d; want 3: the facts that were not durable, and the end", got-before)
		}
	})
}

// A re-run that differs writes nothing, says where, and goes on with the right
// build (C-4.12, K8).
func TestDivergence(t *testing.T) {
	decide := func(c *kernel.Context, id string) {
		c.Decide(id, "s", func(context.Context) (string, error) { return id, nil })
	}
	step := func(c *kernel.Context, id, input string) { c.Execute[string](id, "echo", input) }
	original := func(c *kernel.Context) { decide(c, "a"); step(c, "b", "in"); c.Receive("in"); decide(c, "z") }
	for name, test := range map[string]struct {
		body func(c *kernel.Context)
		at   string
	}{
		"another decision first":   {func(c *kernel.Context) { decide(c, "new"); original(c) }, "a"},
		"a fact left out":          {func(c *kernel.Context) { step(c, "b", "in"); c.Receive("in"); decide(c, "z") }, "a"},
		"another input":            {func(c *kernel.Context) { decide(c, "a"); step(c, "b", "other") }, "b"},
		"a step for a decision":    {func(c *kernel.Context) { step(c, "a", "in") }, "a"},
		"another topic":            {func(c *kernel.Context) { decide(c, "a"); step(c, "b", "in"); c.Receive("out") }, "in#1"},
		"an end too early":         {func(c *kernel.Context) { decide(c, "a"); step(c, "b", "in") }, "z"},
		"a new step in the middle": {func(c *kernel.Context) { decide(c, "a"); step(c, "new", "in"); original(c) }, "b"},
		"a wrapper where none was": {func(c *kernel.Context) {
			c.Decide("w", "s", func(context.Context) (int, error) { decide(c, "a"); return 0, nil })
		}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := original
				w := newWorld(t, kernel.Config{Effects: []kernel.Effect{echo}, Flows: []kernel.Flow{
					flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) { body(c); c.Receive("in"); return nil, nil }),
				}})
				w.start("f", "x", nil)
				w.send("x", "one", "")
				before := w.log("x")
				body = test.body
				w.reboot()
				w.send("x", "two", "") // a wake
				if got := w.state("x"); got != kernel.Stuck {
					t.Errorf("state = %s; want stuck", got)
				}
				if diff := cmp.Diff(before, w.log("x")); diff != "" {
					t.Errorf("the diverged run wrote (-before +after):\n%s", diff)
				}
				_, err := w.rt.Rehearse(t.Context(), "x", 0)
				if d, ok := errors.AsType[*kernel.DivergenceError](err); !ok || d.ID != test.at || !errors.Is(err, kernel.ErrDivergence) {
					t.Errorf("Rehearse = %v; want a divergence at %q", err, test.at)
				}
				body = original
				w.reboot()
				if got := w.state("x"); got != kernel.Completed {
					t.Errorf("state with the right build = %s; want completed", got)
				}
			})
		})
	}
}

// A decision around steps: met one by one until it is on record, then taken
// whole (C-6.14).
func TestDecisionAroundSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls counter
		w := newWorld(t, kernel.Config{
			Effects: []kernel.Effect{echo, hang("hang", kernel.Repeatable, &calls)},
			Flows: []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
				c.Decide("outer", "s", func(context.Context) (string, error) {
					calls.add("outer")
					c.Decide("inner", "s", func(context.Context) (int, error) { return calls.add("inner"), nil })
					c.Execute[string]("e", "echo", "x")
					return c.Execute[string]("h", "hang", nil)
				})
				c.Receive("in")
				return nil, nil
			})},
		})
		w.start("f", "x", nil)
		w.reboot() // in the middle of the outer decision
		w.reboot()
		w.reboot()
		w.wantKinds("x", "STARTED", "DECIDED inner", "REQUESTED e", "SETTLED e", "REQUESTED h", "SETTLED h", "DECIDED outer")
		if calls.count("inner") != 1 || calls.count("outer") != 2 || calls.count("hang") != 2 {
			t.Errorf("runs: inner %d, outer %d, hang %d; want 1, 2, 2", calls.count("inner"), calls.count("outer"), calls.count("hang"))
		}
		for _, line := range w.log("x")[1:6] {
			if !strings.Contains(line, `"in":"outer"`) {
				t.Errorf("fact beneath the decision does not say so: %s", line)
			}
		}
	})
}

// Every prefix of the log, in commit order, resumes and comes to the same end
// (K12), hot and cold.
func TestEveryPrefixResumes(t *testing.T) {
	record := func(t *testing.T, config kernel.Config, drive func(w *world)) (batches [][]journal.Append, logs [][]string) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, config)
			w.store.Record()
			drive(w)
			batches = w.store.Recorded()
			for _, stream := range []string{"x", "x~1", "x~2"} {
				logs = append(logs, w.log(stream))
			}
		})
		return batches, logs
	}
	drive := func(w *world) {
		w.start("chatter", "x", map[string]any{})
		for i := range 5 {
			w.send("x", fmt.Sprint("m", i), fmt.Sprint(i))
			w.send("x", fmt.Sprint("m", i), fmt.Sprint(i)) // a retry whose answer was lost (T27)
		}
		w.send("x", "end", "")
	}
	var calls counter
	config := kernel.Config{Effects: []kernel.Effect{echo}, Flows: []kernel.Flow{chatter(&calls)}}
	batches, want := record(t, config, drive)
	prefixes := 0
	for prefix := range journaltest.Prefixes(batches) {
		prefixes++
		for _, hot := range []int{0, -1} {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New()
				for _, batch := range prefix {
					if err := store.Append(t.Context(), batch...); err != nil {
						t.Fatalf("lay prefix: %v", err)
					}
				}
				w := &world{t: t, store: journaltest.Wrap(store), config: config}
				w.config.Hot = hot
				w.boot()
				defer func() { w.rt.Close() }()
				drive(w) // the sender has had no answer and tries everything again
				var got [][]string
				for _, stream := range []string{"x", "x~1", "x~2"} {
					got = append(got, stripCursors(w.log(stream)))
				}
				if diff := cmp.Diff(stripAll(want), got); diff != "" {
					t.Errorf("prefix of %d writes, hot %d (-want +got):\n%s", len(prefix), hot, diff)
				}
			})
		}
	}
	if prefixes < 30 {
		t.Errorf("only %d prefixes", prefixes)
	}
}

// stripCursors removes what a repeated send changes: the place in the inbox,
// and the window that it is told from.
func stripCursors(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		if at := strings.Index(line, `"cursor":`); at >= 0 {
			end := at + strings.IndexAny(line[at:], ",}")
			line = line[:at] + line[end:]
		}
		if at := strings.Index(line, `"cursors":`); at >= 0 {
			end := at + strings.Index(line[at:], "}")
			line = line[:at] + line[end:]
		}
		out[i] = line
	}
	return out
}

func stripAll(logs [][]string) [][]string {
	out := make([][]string, len(logs))
	for i, lines := range logs {
		out[i] = stripCursors(lines)
	}
	return out
}
