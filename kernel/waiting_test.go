package kernel_test

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/kernel"
)

// A flow that takes three messages of each generation and then takes none.
func takesThree(c *kernel.Context, _ jsontext.Value) (any, error) {
	for range 3 {
		c.Receive("in")
	}
	if c.Generation() == 0 {
		return nil, kernel.ContinueAsNew(nil)
	}
	c.Receive("never")
	return nil, nil
}

// What waits is what a Receive would deliver: no duplicate of a delivered
// message, of this generation or an earlier one, and none of another topic
// (C-5.4, C-5.12).
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kernel.Config{Flows: []kernel.Flow{flow("f", takesThree)}})
		w.start("f", "x", nil)
		check := func(limit, want int) {
			t.Helper()
			synctest.Wait()
			got, _, err := kernel.Waiting(t.Context(), w.store, "x", "in", 0, limit)
			if err != nil || got != want {
				t.Errorf("Waiting up to %d = %d, %v; want %d", limit, got, err, want)
			}
		}
		check(10, 0)
		for i := range 6 {
			w.send("x", "text", fmt.Sprint("taken", i))
		}
		check(10, 0)
		for range 3 {
			for i := range 6 {
				w.send("x", "text", fmt.Sprint("taken", i))
			}
		}
		check(10, 0)
		for i := range 4 {
			w.send("x", "text", fmt.Sprint("new", i))
			w.send("x", "text", fmt.Sprint("new", i))
			if err := w.rt.Send(t.Context(), ann, "x", "other", jsontext.Value(`1`), ""); err != nil {
				t.Fatal(err)
			}
		}
		check(10, 4)
		check(2, 2)
		for range 256 {
			w.send("x", "text", "taken0")
		}
		check(10, 10) // more than it looks at
		if _, _, err := kernel.Waiting(t.Context(), w.store, "y", "in", 0, 10); !errors.Is(err, kernel.ErrNotFound) {
			t.Errorf("Waiting of a missing chain: %v; want ErrNotFound", err)
		}
	})
}
