package kernel_test

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// betweenStore calls between once, when the head of a stream was read backward: in
// the middle of a cancel or a query.
type betweenStore struct {
	journal.Store
	between atomic.Pointer[func() error]
}

func (s *betweenStore) ReadRange(ctx context.Context, stream string, from journal.Seq, limit int, dir journal.Direction) ([]journal.Event, error) {
	events, err := s.Store.ReadRange(ctx, stream, from, limit, dir)
	if dir == journal.Backward {
		if between := s.between.Swap(nil); between != nil {
			err = errors.Join(err, (*between)())
		}
	}
	return events, err
}

func newBetweenWorld(t *testing.T, run func(c *kernel.Context, input jsontext.Value) (any, error), effects ...kernel.Effect) (*betweenStore, *world) {
	t.Helper()
	w := newWorld(t, kernel.Config{})
	w.rt.Close()
	store := &betweenStore{Store: w.inner}
	rt, err := kernel.New(kernel.Config{
		Store: store, Flows: []kernel.Flow{flow("f", run)}, Effects: effects,
		Features: []kernel.Feature{kernel.Inbox, kernel.Continuations},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.rt = rt
	return store, w
}

// A message that wakes the execution in the middle of a cancel, and brings it to
// its next generation or to its end, costs the cancel another try: it ends the
// head, and never a log that is over (C-4.9).
func TestCancelMeetsAnotherEnd(t *testing.T) {
	for name, test := range map[string]struct {
		end  func() (any, error)
		want kernel.State
		last string // stream
	}{
		"a rotation": {func() (any, error) { return nil, kernel.ContinueAsNew(nil) }, kernel.Cancelled, "x~1"},
		"an end":     {func() (any, error) { return nil, nil }, kernel.Completed, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, w := newBetweenWorld(t, func(c *kernel.Context, _ jsontext.Value) (any, error) {
					c.Receive("in")
					return test.end()
				})
				w.start("f", "x", nil)
				interfere := func() error { w.send("x", "go", ""); return nil }
				store.between.Store(&interfere)
				w.cancel("x")
				if got := w.state("x"); got != test.want {
					t.Errorf("state = %s; want %s", got, test.want)
				}
				for _, stream := range []string{"x", test.last} {
					kinds := w.kinds(stream)
					over := slices.IndexFunc(kinds, func(kind string) bool {
						return strings.HasPrefix(kind, kernel.KindEnded) || strings.HasPrefix(kind, kernel.KindContinued)
					})
					if over != len(kinds)-1 {
						t.Errorf("log of %q = %q; want one end, at its end", stream, kinds)
					}
				}
			})
		})
	}
}

// Who has read the end of an execution and sends is refused, though its last run is
// not gone yet (C-4.9, C-29.8).
func TestSendBehindTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kernel.Config{Flows: []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
			c.Receive("in")
			return nil, nil
		})}})
		w.start("f", "x", nil)
		var got error
		w.store.After(func(_ int, batch []journal.Append) error {
			for _, event := range batch[0].Events {
				if event.Kind == kernel.KindEnded {
					got = w.rt.Send(t.Context(), ann, "x", "in", quoted("late"), "")
				}
			}
			return nil
		})
		w.send("x", "go", "")
		if !errors.Is(got, kernel.ErrEnded) {
			t.Errorf("Send = %v; want ErrEnded", got)
		}
	})
}

// An execution whose cancel failed was stopped in the middle, and goes on: it is
// not cancelled, and nobody else would wake it (C-4.9, K10).
func TestFailedCancelGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls counter
		store, w := newBetweenWorld(t, func(c *kernel.Context, _ jsontext.Value) (any, error) {
			return c.Execute[string]("h", "hang", nil)
		}, hang("hang", kernel.Repeatable, &calls))
		w.start("f", "x", nil)
		failure := errors.New("no answer")
		fails := func() error { return failure }
		store.between.Store(&fails)
		if err := w.rt.Cancel(t.Context(), ann, "x"); !errors.Is(err, failure) {
			t.Errorf("Cancel = %v; want %v", err, failure)
		}
		synctest.Wait()
		if got := w.state("x"); got != kernel.Completed {
			t.Errorf("state = %s; want completed", got)
		}
	})
}

// A rival that rotates the log while it is read here, and goes to sleep, leaves
// the message that woke us to us: we go on in its generation (C-4.18, K1).
func TestWakeMeetsARotation(t *testing.T) {
	for k := 1; k <= 12; k++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, kernel.Config{Hot: -1, Flows: []kernel.Flow{
				flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
					c.Receive("in")
					c.Receive("in")
					return nil, nil
				}),
			}})
			w.start("f", "x", nil)
			reads := 0
			w.store.OnRead(func(string) error {
				if reads++; reads != k {
					return nil
				}
				return w.inner.Append(context.Background(),
					journal.Append{Stream: "x", Expect: journal.AtEnd, Events: []journal.Event{{Kind: kernel.KindContinued}}},
					journal.Append{Stream: "x~1", Events: []journal.Event{{Kind: kernel.KindStarted, Data: []byte(`{"flow":"f","version":"1"}`)}}})
			})
			w.send("x", "hello", "")
			w.store.OnRead(nil)
			if log := strings.Join(append(w.log("x"), w.log("x~1")...), "\n"); !strings.Contains(log, "hello") {
				t.Errorf("rotation before read %d of %d: nobody took the message:\n%s", k, reads, log)
			}
		})
	}
}
