package kernel_test

import (
	"encoding/json/jsontext"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/kernel"
)

// The events around a value add to its depth, and JSON ends at 10,000 levels: a
// deep payload is refused where it comes in, and never wedges who receives it.
func TestDeepValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kernel.Config{Flows: []kernel.Flow{{
			Name: "deep", Version: "1", Needs: []kernel.Feature{kernel.Inbox},
			Run: func(c *kernel.Context, _ jsontext.Value) (any, error) { return c.Receive("in"), nil },
		}}})
		nested := func(depth int) jsontext.Value {
			return jsontext.Value(strings.Repeat("[", depth) + strings.Repeat("]", depth))
		}
		w.start("deep", "one", nil)
		for _, depth := range []int{kernel.MaxDepth + 1, 9_998, 9_999, 10_000} {
			if err := w.rt.Send(t.Context(), ann, "one", "in", nested(depth), ""); !errors.Is(err, kernel.ErrInvalid) {
				t.Errorf("Send of a payload of depth %d = %v, want %v", depth, err, kernel.ErrInvalid)
			}
			if _, _, err := w.rt.Start(t.Context(), ann, kernel.StartRequest{Flow: "deep", Input: nested(depth)}); !errors.Is(err, kernel.ErrTooLarge) {
				t.Errorf("Start with an input of depth %d = %v, want %v", depth, err, kernel.ErrTooLarge)
			}
		}
		if err := w.rt.Send(t.Context(), ann, "one", "in", nested(kernel.MaxDepth), ""); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		info, err := w.rt.Query(t.Context(), ann, "one")
		if err != nil || info.State != kernel.Completed {
			t.Errorf("the receiver of the deepest payload is %s %s, %v", info.State, info.Fault, err)
		}
		flat := jsontext.Value("[" + strings.Repeat("[],", kernel.MaxDepth) + "[]]")
		w.start("deep", "two", nil)
		if err := w.rt.Send(t.Context(), ann, "two", "in", flat, ""); err != nil {
			t.Errorf("Send of a wide payload: %v", err)
		}
	})
}
