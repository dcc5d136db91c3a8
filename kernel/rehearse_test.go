package kernel_test

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/kernel"
)

// A log that was ended from outside, or by a failure, may stop before anything
// that its flow would do, and that is no divergence. One that was completed
// may not (C-4.12).
func TestRehearseAnEnd(t *testing.T) {
	refused := errors.New("refused")
	more := func(c *kernel.Context) {
		c.Decide("more", "s", func(context.Context) (int, error) { return 1, nil })
	}
	for name, test := range map[string]struct {
		once, later func(c *kernel.Context) error // the flow as it ran, and as it is rehearsed
		cancel      bool
		diverges    bool
	}{
		"cancelled while it waited": {once: waits, later: waits, cancel: true},
		"cancelled in a step":       {once: hangs, later: hangs, cancel: true},
		"failed":                    {once: func(*kernel.Context) error { return refused }, later: func(*kernel.Context) error { return refused }},
		"failed, and would go on":   {once: func(*kernel.Context) error { return refused }, later: func(c *kernel.Context) error { more(c); return nil }},
		"completed, and would go on": {
			once:  func(*kernel.Context) error { return nil },
			later: func(c *kernel.Context) error { more(c); return nil }, diverges: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls counter
				body := test.once
				w := newWorld(t, kernel.Config{
					Effects: []kernel.Effect{hang("hang", kernel.Repeatable, &calls)},
					Flows:   []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) { return nil, body(c) })},
				})
				w.start("f", "x", nil)
				if test.cancel {
					w.cancel("x")
				}
				body = test.later
				rehearsal, err := w.rt.Rehearse(t.Context(), "x", 0)
				if got := errors.Is(err, kernel.ErrDivergence); got != test.diverges || err != nil && !got {
					t.Errorf("Rehearse = %+v, %v; want a divergence: %v", rehearsal, err, test.diverges)
				}
				if !rehearsal.Ended {
					t.Errorf("Rehearse = %+v; want it ended", rehearsal)
				}
			})
		})
	}
}

func waits(c *kernel.Context) error { c.Receive("in"); return nil }

func hangs(c *kernel.Context) error {
	_, err := c.Decide("around", "s", func(context.Context) (string, error) { return c.Execute[string]("h", "hang", nil) })
	return err
}
