package kernel_test

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

func (w *world) cancel(id string) {
	w.t.Helper()
	if err := w.rt.Cancel(w.t.Context(), ann, id); err != nil {
		w.t.Fatalf("Cancel(%q): %v", id, err)
	}
	synctest.Wait()
}

// Cancel is terminal, hot and cold, parked and in a step; what a flow holds is
// released (C-4.9, K2). That no goroutine is left over the bubble itself sees to.
func TestCancel(t *testing.T) {
	for name, test := range map[string]struct {
		hot  int
		busy bool
	}{"parked hot": {0, false}, "cold": {-1, false}, "in a step": {0, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls counter
				released, survived := 0, false
				w := newWorld(t, kernel.Config{
					Hot:     test.hot,
					Effects: []kernel.Effect{hang("hang", kernel.Repeatable, &calls)},
					Flows: []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
						defer func() { released++ }()
						c.Receive("in")
						for { // a body that goes on after every error
							if _, err := c.Execute[string]("s", "hang", nil); err == nil {
								survived = true
								return nil, nil
							}
						}
					})},
				})
				w.start("f", "x", nil)
				if test.busy {
					w.send("x", "go", "")
				}
				w.cancel("x")
				if got := w.state("x"); got != kernel.Cancelled {
					t.Errorf("state = %s; want cancelled", got)
				}
				if err := w.rt.Send(t.Context(), ann, "x", "in", quoted("m"), ""); !errors.Is(err, kernel.ErrEnded) {
					t.Errorf("Send after Cancel = %v; want ErrEnded", err)
				}
				log := w.log("x")
				w.cancel("x") // changes nothing
				w.reboot()
				if diff := cmp.Diff(log, w.log("x")); diff != "" {
					t.Errorf("a cancelled execution went on:\n%s", diff)
				}
				if survived || released == 0 {
					t.Errorf("survived = %v, released = %d; want false, at least 1", survived, released)
				}
			})
		})
	}
}

// An effect that ignores the end of its context is left behind after its
// grace, and its result goes nowhere (K8).
func TestCancelLeavesDeafEffectBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kernel.Config{
			Effects: []kernel.Effect{{ID: "deaf", Run: func(context.Context, jsontext.Value) (any, error) {
				time.Sleep(time.Hour)
				return "late", nil
			}}},
			Flows: []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
				return c.Execute[string]("s", "deaf", nil)
			})},
		})
		w.start("f", "x", nil)
		began := time.Now()
		w.cancel("x")
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("Cancel took %v; want the grace of 5 s", took)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		w.wantKinds("x", "STARTED", "REQUESTED s", "ENDED")
	})
}

// parents is a flow whose step starts a child and waits, and the child flow.
func parents(w **world) kernel.Config {
	return kernel.Config{
		Effects: []kernel.Effect{{ID: "child", Mode: kernel.Repeatable, Run: func(ctx context.Context, in jsontext.Value) (any, error) {
			step, _ := kernel.StepFrom(ctx)
			if _, _, err := (*w).rt.Start(ctx, ann, kernel.StartRequest{Flow: unquoted(in), ChildOf: step}); err != nil {
				return nil, err
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}}},
		Flows: []kernel.Flow{
			flow("grandparent", func(c *kernel.Context, _ jsontext.Value) (any, error) { return c.Execute[any]("p", "child", "parent") }),
			flow("parent", func(c *kernel.Context, _ jsontext.Value) (any, error) { return c.Execute[any]("k", "child", "kid") }),
			flow("kid", func(c *kernel.Context, _ jsontext.Value) (any, error) { c.Receive("in"); return nil, nil }),
		},
	}
}

func TestCancelReachesChildren(t *testing.T) { // C-4.10, K11
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, parents(&w))
		w.start("grandparent", "x", nil)
		family := []string{"x", "x::p", "x::p::k"}
		for _, id := range family {
			if got := w.state(id); got != kernel.Running {
				t.Fatalf("state of %s = %s; want running", id, got)
			}
		}
		w.reboot() // the steps start their children again: start-once
		w.cancel("x")
		for _, id := range family {
			if got := w.state(id); got != kernel.Cancelled {
				t.Errorf("state of %s = %s; want cancelled", id, got)
			}
		}
		owner, _ := ann.Identity()
		if list, _ := w.rt.Owned(t.Context(), owner, "kid", "", 10); len(list) != 0 {
			t.Errorf("a child is listed as an execution that its owner started: %v", list)
		}
	})
}

// The process dies right after the parent's end: the next start-up cancels the
// children (K11).
func TestOrphansAreCancelledAtStartUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, parents(&w))
		w.start("grandparent", "x", nil)
		time.Sleep(time.Minute) // the kid is idle, its work mark is gone
		ended := 0
		w.store.After(func(_ int, batch []journal.Append) error {
			if last := batch[0].Events; len(last) == 1 && last[0].Kind == kernel.KindEnded {
				if ended++; ended == 1 {
					return journal.ErrPoisoned // written, and nothing after it
				}
			}
			return nil
		})
		if err := w.rt.Cancel(t.Context(), ann, "x"); err == nil {
			t.Error("Cancel succeeded over a failing store")
		}
		w.rt.Close()
		w.heal()
		if got := w.kinds("x::p::k"); len(got) != 1 {
			t.Fatalf("log of the kid = %v; want its start alone", got)
		}
		w.boot()
		for _, id := range []string{"x", "x::p", "x::p::k"} {
			if got := w.state(id); got != kernel.Cancelled {
				t.Errorf("state of %s = %s; want cancelled", id, got)
			}
		}
	})
}

// A step whose id reads as a generation's cannot name a child: whoever named the
// child would reach another chain (C-4.4).
func TestChildOfAStepWithATilde(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, kernel.Config{
			Effects: []kernel.Effect{{ID: "child", Run: func(ctx context.Context, _ jsontext.Value) (any, error) {
				step, _ := kernel.StepFrom(ctx)
				_, _, err := w.rt.Start(ctx, ann, kernel.StartRequest{Flow: "f", ChildOf: step})
				return nil, err
			}}},
			Flows: []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
				_, err := c.Execute[any]("s~1", "child", nil)
				return nil, err
			})},
		})
		w.start("f", "x", nil)
		info, err := w.rt.Query(t.Context(), ann, "x")
		if err != nil || info.Fault != kernel.ErrInvalid.Code {
			t.Errorf("Query = %+v, %v; want the fault %s", info, err, kernel.ErrInvalid.Code)
		}
	})
}

// A child that is idle while its parent is being cancelled keeps the mark that
// brings it to its end after a crash (C-4.10, K10, K11).
func TestSweepLeavesOrphansMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, parents(&w))
		w.start("parent", "x", nil)
		w.store.After(func(_ int, batch []journal.Append) error {
			if last := batch[0].Events; len(last) == 1 && last[0].Kind == kernel.KindEnded {
				time.Sleep(5 * time.Second) // other children may take as long to stop
				return journal.ErrPoisoned
			}
			return nil
		})
		if err := w.rt.Cancel(t.Context(), ann, "x"); err == nil {
			t.Error("Cancel succeeded over a failing store")
		}
		w.rt.Close()
		w.heal()
		w.boot()
		if got := w.state("x::k"); got != kernel.Cancelled {
			t.Errorf("state of the child = %s; want cancelled", got)
		}
	})
}

func TestContinueAsNewLimits(t *testing.T) { // C-6.11
	for size, want := range map[int]kernel.State{kernel.MaxCarryBytes - 2: kernel.Running, kernel.MaxCarryBytes - 1: kernel.Stuck} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, kernel.Config{Flows: []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
				if c.Generation() == 0 {
					return nil, kernel.ContinueAsNew(strings.Repeat("x", size)) // and two quotes
				}
				c.Receive("in")
				return nil, nil
			})}})
			w.start("f", "x", nil)
			if got := w.state("x"); got != want {
				t.Errorf("carry of %d bytes: state = %s; want %s", size+2, got, want)
			}
		})
	}
}

// A new version takes over at the next generation; a missing one is stuck and
// not ended (C-4.14).
func TestVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls counter
		v1, v2 := chatter(&calls), chatter(&calls)
		v2.Version = "2"
		w := newWorld(t, kernel.Config{Effects: []kernel.Effect{echo}, Flows: []kernel.Flow{v1}})
		w.start("chatter", "x", map[string]any{})
		w.config.Flows = []kernel.Flow{v2}
		w.send("x", "wakes", "")
		time.Sleep(time.Minute) // its work mark is cleared
		w.reboot()
		if got := w.state("x"); got != kernel.Running {
			t.Errorf("state of an idle execution = %s; want running until it has to run", got)
		}
		w.send("x", "one", "")
		if got := w.state("x"); got != kernel.Stuck {
			t.Errorf("state without its version = %s; want stuck", got)
		}
		w.config.Flows = []kernel.Flow{v1, v2}
		w.reboot()
		for range 3 {
			w.send("x", "m", "")
		}
		info, err := w.rt.Query(t.Context(), ann, "x")
		if err != nil || info.Version != "2" || info.Generation != 1 {
			t.Errorf("Query = %+v, %v; want version 2 in generation 1", info, err)
		}
	})
}
