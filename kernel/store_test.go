package kernel_test

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// A failure of the store is never a step's outcome: it takes the runtime with
// it, and the next one goes on from what is durable (K1). Every append of the
// dialogue fails once, before and after the write.
func TestStoreFailsAtEveryAppend(t *testing.T) {
	drive := func(w *world, send func(text, id string)) {
		for i := range 5 {
			send(fmt.Sprint("m", i), fmt.Sprint(i))
		}
		send("end", "end")
	}
	for _, written := range []bool{false, true} {
		for k := 1; ; k++ {
			failed := false
			synctest.Test(t, func(t *testing.T) {
				var calls counter
				w := newWorld(t, kernel.Config{Effects: []kernel.Effect{echo}, Flows: []kernel.Flow{chatter(&calls)}})
				if written {
					w.store.PoisonAfter(k)
				} else {
					w.store.PoisonBefore(k)
				}
				attempt := func(text, id string) error {
					return w.rt.Send(t.Context(), ann, "x", "in", quoted(text), id)
				}
				start := func() error {
					_, _, err := w.rt.Start(t.Context(), ann, kernel.StartRequest{Flow: "chatter", ID: "x", Input: map[string]any{}})
					return err
				}
				again := func() { // a new process, and a healthy store
					failed = true
					w.rt.Close()
					w.heal()
					w.boot()
				}
				retry := func(call func() error) {
					if err := call(); err != nil && !errors.Is(err, kernel.ErrEnded) {
						if !errors.Is(err, journal.ErrPoisoned) && !errors.Is(err, kernel.ErrNotFound) {
							t.Errorf("append %d: %v", k, err)
						}
						again()
						if err := call(); err != nil && !errors.Is(err, kernel.ErrEnded) {
							t.Errorf("append %d, again: %v", k, err)
						}
					}
					synctest.Wait()
				}
				retry(start)
				drive(w, func(text, id string) { retry(func() error { return attempt(text, id) }) })
				if w.rt.Err() != nil {
					again()
				}
				info, err := w.rt.Query(t.Context(), ann, "x")
				if err != nil || info.State != kernel.Completed || string(info.Output) != "6" {
					t.Errorf("append %d (written %v): Query = %+v, %v; want completed after 6 turns", k, written, info, err)
				}
			})
			if !failed {
				if k < 10 {
					t.Errorf("only %d appends", k)
				}
				break
			}
		}
	}
}

func TestFailedIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kernel.Config{Effects: []kernel.Effect{echo}, Flows: []kernel.Flow{chatter(&counter{})}})
		w.start("chatter", "x", map[string]any{})
		w.store.PoisonBefore(2) // the activation's own, after the send
		w.send("x", "m", "")
		select {
		case <-w.rt.Failed():
		default:
			t.Fatal("Failed is not closed after the store failed")
		}
		if err := w.rt.Err(); !errors.Is(err, journal.ErrPoisoned) {
			t.Errorf("Err = %v; want ErrPoisoned", err)
		}
		if err := w.rt.Send(t.Context(), ann, "x", "in", quoted("m"), ""); !errors.Is(err, journal.ErrPoisoned) {
			t.Errorf("Send = %v; want ErrPoisoned", err)
		}
	})
}

// A rival that has moved the log on makes the activation start again from the
// log; what it held back is not written (C-4.18, T04).
func TestRivalWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		var calls counter
		w = newWorld(t, kernel.Config{
			Effects: []kernel.Effect{{ID: "rob", Mode: kernel.Repeatable, Run: func(ctx context.Context, in jsontext.Value) (any, error) {
				if calls.add("rob") == 1 { // another worker settles the step meanwhile
					settled := []journal.Event{{Kind: kernel.KindSettled, ID: "s", Data: jsontext.Value(`{"value":"rival"}`)}}
					if err := w.store.Append(ctx, journal.Append{Stream: "x", Expect: 2, Events: settled}); err != nil {
						return nil, err
					}
				}
				return "mine", nil
			}}},
			Flows: []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
				value, err := c.Execute[string]("s", "rob", nil)
				if err == nil {
					c.Receive("in")
				}
				return value, err
			})},
		})
		w.start("f", "x", nil)
		w.send("x", "go", "")
		info, err := w.rt.Query(t.Context(), ann, "x")
		if err != nil || string(info.Output) != `"rival"` || calls.count("rob") != 1 {
			t.Errorf("Query = %+v, %v, runs %d; want the rival's value and one run", info, err, calls.count("rob"))
		}
	})
}

// A fact that is asked for again is served again, though a hot execution has
// let its bytes go.
func TestFactsAreServedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls counter
		w := newWorld(t, kernel.Config{
			Effects: []kernel.Effect{scripted("e", kernel.Once, &calls, func(n int) (any, error) { return n, nil })},
			Flows: []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
				var got []int
				for range 3 {
					d, _ := c.Decide("d", "s", func(context.Context) (int, error) { return calls.add("d"), nil })
					e, _ := c.Execute[int]("e", "e", nil)
					got = append(got, d, e)
				}
				return got, nil
			})},
		})
		w.start("f", "x", nil)
		if info, _ := w.rt.Query(t.Context(), ann, "x"); string(info.Output) != "[1,1,1,1,1,1]" {
			t.Errorf("output = %s; want all ones", info.Output)
		}
		w.wantKinds("x", "STARTED", "DECIDED d", "REQUESTED e", "SETTLED e", "ENDED")
	})
}
