package kernel_test

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// awaiting is a parent whose step starts a child, by the runtime that the step
// names, and waits for its end.
func awaiting(kid kernel.Flow) kernel.Config {
	return kernel.Config{
		Effects: []kernel.Effect{{ID: "child", Mode: kernel.Repeatable, Run: func(ctx context.Context, in jsontext.Value) (any, error) {
			step, _ := kernel.StepFrom(ctx)
			id, _, err := step.Runtime().Start(ctx, ann, kernel.StartRequest{Flow: kid.Name, ID: "kid", ChildOf: step})
			if err != nil {
				return nil, err
			}
			info, err := step.Runtime().Wait(ctx, ann, id)
			return string(info.State) + " " + string(info.Output), err
		}}},
		Flows: []kernel.Flow{
			kid,
			flow("parent", func(c *kernel.Context, _ jsontext.Value) (any, error) { return c.Execute[string]("p", "child", nil) }),
		},
	}
}

// Wait returns when the execution is over, whether it is hot, cold, or was over
// already; and with its context.
func TestWait(t *testing.T) {
	for name, hot := range map[string]int{"hot": 0, "cold": -1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := awaiting(flow("kid", func(c *kernel.Context, _ jsontext.Value) (any, error) { return c.Receive("in"), nil }))
				config.Hot = hot
				w := newWorld(t, config)
				w.start("parent", "x", nil)
				<-time.After(time.Minute)
				if got := w.state("x"); got != kernel.Running {
					t.Fatalf("the parent is %s before its child has ended", got)
				}
				w.send("kid", "done", "")
				<-time.After(2 * time.Second) // a cold one is looked at each second
				synctest.Wait()
				info, err := w.rt.Wait(t.Context(), ann, "x")
				if err != nil || string(info.Output) != `"completed \"done\""` {
					t.Errorf("Wait = %s %s, %v; want the child's state and output", info.State, info.Output, err)
				}
				w.start("kid", "alone", nil)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if _, err := w.rt.Wait(ctx, ann, "alone"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Wait for one that goes on: %v, want the end of the context", err)
				}
				if _, err := w.rt.Wait(t.Context(), ann, "nobody"); !errors.Is(err, kernel.ErrNotFound) {
					t.Errorf("Wait for one that is not there: %v, want ErrNotFound", err)
				}
			})
		})
	}
}

// An execution that cannot go on is not waited for for ever.
func TestWaitForStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, awaiting(flow("kid", func(c *kernel.Context, _ jsontext.Value) (any, error) { panic("a bug") })))
		w.start("parent", "x", nil)
		info, err := w.rt.Wait(t.Context(), ann, "x")
		if err != nil || string(info.Output) != `"stuck "` {
			t.Errorf("Wait = %s %s, %v; want the child stuck", info.State, info.Output, err)
		}
	})
}

// What is loaded is on no record, and is loaded again by each run; an error leaves
// the execution stuck until its next wake (K15).
func TestLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loads, broken := 0, false
		w := newWorld(t, kernel.Config{
			Effects: []kernel.Effect{{ID: "echo", Run: func(_ context.Context, in jsontext.Value) (any, error) { return in, nil }}},
			Flows: []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
				text := c.Load(func(ctx context.Context) (string, error) {
					if step, ok := kernel.StepFrom(ctx); !ok || step.Execution != "x" || step.Runtime() == nil {
						t.Errorf("loaded for %+v, %v", step, ok)
					}
					if loads++; broken {
						return "", errors.New("away")
					}
					return "from elsewhere", nil
				})
				said, err := c.Execute[string]("s", "echo", text)
				c.Receive("in")
				return said, err
			})},
		})
		broken = true
		w.start("f", "x", nil)
		if got := w.state("x"); got != kernel.Stuck {
			t.Errorf("with a load that fails the execution is %s, want it stuck", got)
		}
		broken = false
		w.send("x", "go", "")
		w.reboot()
		w.wantKinds("x", "STARTED", "REQUESTED s", "SETTLED s", "MESSAGE_CONSUMED in#1", "ENDED")
		if loads != 2 {
			t.Errorf("loaded %d times, want once for each run", loads)
		}
	})
}

// A row puts an execution into the list of somebody who did not start it, as long
// as it stands (C-29.13).
func TestListRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kernel.Config{Flows: []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
			for {
				c.Receive("in")
			}
		})}})
		carl := identity.Identity{Tenant: identity.Some("acme"), Actor: "carl"}
		list := func() (ids []string) {
			t.Helper()
			listed, err := w.rt.Owned(t.Context(), carl, "f", "", 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range listed {
				ids = append(ids, l.ID)
			}
			return ids
		}
		if _, _, err := w.rt.Start(t.Context(), kernel.By(identity.Principal{Identity: carl}), kernel.StartRequest{Flow: "f", ID: "own"}); err != nil {
			t.Fatal(err)
		}
		for i, id := range []string{"a", "b"} {
			at := time.Now().Add(time.Duration(i+1) * time.Second)
			if _, _, err := w.rt.Start(t.Context(), ann, kernel.StartRequest{Flow: "f", ID: id, Rows: []journal.Row{kernel.ListRow(carl, "f", id, at)}}); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := list(), []string{"b", "a", "own"}; !cmp.Equal(got, want) {
			t.Errorf("the list is %v, want %v", got, want)
		}
		row := kernel.ListRow(carl, "f", "a", time.Now().Add(time.Minute))
		if err := w.rt.Send(t.Context(), ann, "a", "in", quoted("m"), "", row); err != nil {
			t.Fatal(err)
		}
		if got, want := list(), []string{"a", "b", "own"}; !cmp.Equal(got, want) {
			t.Errorf("after a message the list is %v, want %v", got, want)
		}
		row.Delete = true
		if err := w.rt.Send(t.Context(), ann, "b", "in", quoted("m"), "", row); err != nil {
			t.Fatal(err)
		}
		if got, want := list(), []string{"b", "own"}; !cmp.Equal(got, want) {
			t.Errorf("after its row was taken away the list is %v, want %v", got, want)
		}
	})
}
