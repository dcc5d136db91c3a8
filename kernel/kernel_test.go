package kernel_test

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

func flow(name string, run func(c *kernel.Context, input jsontext.Value) (any, error)) kernel.Flow {
	return kernel.Flow{Name: name, Version: "1", Run: run}
}

func TestLogOfOneExecution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kernel.Config{
			Effects: []kernel.Effect{echo},
			Flows: []kernel.Flow{flow("f", func(c *kernel.Context, input jsontext.Value) (any, error) {
				n, err := c.Decide("d", "dice", func(context.Context) (int, error) { return 4, nil })
				if err != nil {
					return nil, err
				}
				return c.Execute[string]("s", "echo", fmt.Sprintf("%s %d", unquoted(input), n))
			})},
		})
		w.start("f", "x", "hello")
		want := []string{
			`0 STARTED  {"flow":"f","version":"1","principal":{"tenant":"acme","actor":"ann"},"input":"hello"}`,
			`1 DECIDED d {"source":"dice","value":4}`,
			`2 REQUESTED s {"effect":"echo","hash":"` + hashOfHello + `"}`,
			`3 SETTLED s {"value":"hello 4"}`,
			`4 ENDED  {"state":"completed","output":"hello 4"}`,
		}
		if diff := cmp.Diff(want, w.log("x")); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
		info, err := w.rt.Query(t.Context(), ann, "x")
		if err != nil || info.State != kernel.Completed || string(info.Output) != `"hello 4"` {
			t.Errorf("Query = %+v, %v; want completed with output", info, err)
		}
		if got := w.store.Counts().Appends; got != 3 {
			t.Errorf("appends = %d; want 3: start, the request with what stood before it, the result with the end", got)
		}
	})
}

// hashOfHello is SHA-256 of the line "echo" and the JSON text "hello 4".
const hashOfHello = "cf9d472add1e2699b4acf57b0a2202611c8475b21ed7d678d4a4dbba7d4ddb96"

func TestStartIsOnce(t *testing.T) { // C-4.2
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kernel.Config{Effects: []kernel.Effect{echo}, Flows: []kernel.Flow{chatter(&counter{})}})
		var mu sync.Mutex
		created := 0
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				_, ok, err := w.rt.Start(t.Context(), ann, kernel.StartRequest{Flow: "chatter", ID: "x", Input: map[string]int{"n": i}})
				if err != nil {
					t.Errorf("Start: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				if ok {
					created++
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if created != 1 {
			t.Errorf("created %d executions; want 1", created)
		}
		before := w.log("x")
		if _, ok, err := w.rt.Start(t.Context(), bob, kernel.StartRequest{Flow: "chatter", ID: "x", Input: "other"}); ok || err != nil {
			t.Errorf("second Start = %v, %v; want false, nil", ok, err)
		}
		synctest.Wait()
		if diff := cmp.Diff(before, w.log("x")); diff != "" {
			t.Errorf("second start changed the log:\n%s", diff)
		}
	})
}

func TestIDs(t *testing.T) { // C-4.4, C-4.5, K13
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kernel.Config{
			Effects: []kernel.Effect{echo}, Flows: []kernel.Flow{chatter(&counter{})}, Reserved: []string{"lease:"},
		})
		for _, id := range []string{"a~b", "a::b", "__parley_x", "inbox:x", "lease:x", strings.Repeat("x", 513), "\xff"} {
			_, _, err := w.rt.Start(t.Context(), ann, kernel.StartRequest{Flow: "chatter", ID: id})
			if !errors.Is(err, kernel.ErrInvalid) {
				t.Errorf("Start(%.20q) = %v; want ErrInvalid", id, err)
			}
		}
		id, _, err := w.rt.Start(t.Context(), ann, kernel.StartRequest{Flow: "chatter"})
		if err != nil || len(id) != 26 {
			t.Errorf("Start without id = %q, %v; want 26 characters", id, err)
		}
	})
}

// A message that lands during a step waits for its end (C-5.8, T21); ten quick
// ones come in order.
func TestMessagesWaitAndComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		w := newWorld(t, kernel.Config{
			Effects: []kernel.Effect{{ID: "slow", Mode: kernel.Repeatable, Run: func(ctx context.Context, in jsontext.Value) (any, error) {
				time.Sleep(time.Second)
				return in, nil
			}}},
			Flows: []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
				for i := 0; ; i++ {
					text := unquoted(c.Receive("in"))
					if _, err := c.Execute[string](fmt.Sprint("s", i), "slow", text); err != nil {
						return nil, err
					}
					got = append(got, text)
				}
			})},
		})
		w.start("f", "x", nil)
		var want []string
		for i := range 10 {
			want = append(want, fmt.Sprint("m", i))
			w.send("x", want[i], fmt.Sprint("id", i))
		}
		if n := len(w.kinds("x")); n != 3 { // started, consumed, requested
			t.Errorf("log has %d events while the step runs; want 3: %v", n, w.kinds("x"))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

// Dedupe is bound to the sender, acts at delivery and survives a rotation
// (C-5.3, C-5.4, C-5.12, T26).
func TestDedupe(t *testing.T) {
	for _, hot := range []int{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			var calls counter
			w := newWorld(t, kernel.Config{Effects: []kernel.Effect{echo}, Flows: []kernel.Flow{chatter(&calls)}, Hot: hot})
			w.start("chatter", "x", map[string]any{})
			w.send("x", "one", "a")
			w.send("x", "one", "a")
			w.sendBy(bob, "x", "bob's", "a")
			w.send("x", "two", "b")
			w.send("x", "three", "c") // rotates before this one
			w.send("x", "one", "a")
			w.send("x", "three", "c")
			w.send("x", "nameless", "")
			w.send("x", "nameless", "")
			if got := calls.count("turn"); got != 6 {
				t.Errorf("turns = %d; want 6: one, bob's, two, three and two without an id", got)
			}
			if next, _, _ := w.store.HeadOf(t.Context(), kernel.InboxStream("x")); next != 9 {
				t.Errorf("inbox holds %d messages; want 9, duplicates included", next)
			}
			if info, _ := w.rt.Query(t.Context(), ann, "x~0"); info.Generation == 0 {
				t.Error("there was no rotation")
			}
		})
	}
}

// The window is bounded: the 1025th key pushes the first out (C-5.5).
func TestDedupeWindowIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls counter
		w := newWorld(t, kernel.Config{Effects: []kernel.Effect{echo}, Flows: []kernel.Flow{chatter(&calls)}})
		w.start("chatter", "x", map[string]any{})
		for i := range kernel.DedupeWindow + 1 {
			w.send("x", "m", fmt.Sprint("id", i))
		}
		w.send("x", "again", "id1") // still in the window
		w.send("x", "again", "id0") // fell out
		if got, want := calls.count("turn"), kernel.DedupeWindow+2; got != want {
			t.Errorf("turns = %d; want %d", got, want)
		}
	})
}

// Hot and cold cannot be told apart in the log, and deciders run once over
// many wakes (C-6.1, C-6.2, design §3).
func TestHotEqualsCold(t *testing.T) {
	logs := map[string][][]string{}
	for name, hot := range map[string]int{"hot": 0, "cold": -1} {
		synctest.Test(t, func(t *testing.T) {
			var calls counter
			w := newWorld(t, kernel.Config{Effects: []kernel.Effect{echo}, Flows: []kernel.Flow{chatter(&calls)}, Hot: hot})
			w.start("chatter", "x", map[string]any{})
			for i := range 9 {
				w.send("x", fmt.Sprint("m", i), fmt.Sprint(i%7))
				if name == "cold" && i%4 == 0 {
					w.reboot()
				}
			}
			w.send("x", "end", "")
			if calls.count("turn") != 7 {
				t.Errorf("%s: deciders ran %d times; want 7", name, calls.count("turn"))
			}
			for _, stream := range []string{"x", "x~1", "x~2", kernel.InboxStream("x")} {
				logs[name] = append(logs[name], w.log(stream))
			}
		})
	}
	if diff := cmp.Diff(logs["hot"], logs["cold"]); diff != "" {
		t.Errorf("logs (-hot +cold):\n%s", diff)
	}
}

// Hot executions are bounded; the least recently used goes cold, and none is
// lost.
func TestHotIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls counter
		w := newWorld(t, kernel.Config{Effects: []kernel.Effect{echo}, Flows: []kernel.Flow{chatter(&calls)}, Hot: 3})
		for i := range 20 {
			w.start("chatter", fmt.Sprint("x", i), map[string]any{})
		}
		if got := w.rt.HotCount(); got != 3 {
			t.Errorf("%d of 20 idle executions are hot; want 3", got)
		}
		for i := range 20 {
			w.send(fmt.Sprint("x", i), "m", "")
		}
		if got := calls.count("turn"); got != 20 {
			t.Errorf("turns = %d; want 20", got)
		}
	})
}

// Requests made side by side are durable in one append before the first effect
// begins, and each result before the slowest is in (C-6.5, T62).
func TestStepsSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		var mu sync.Mutex
		var seen []int
		w = newWorld(t, kernel.Config{
			Effects: []kernel.Effect{{ID: "nap", Mode: kernel.Once, Run: func(ctx context.Context, in jsontext.Value) (any, error) {
				requests := slices.DeleteFunc(w.kinds("x"), func(k string) bool { return !strings.HasPrefix(k, "REQUESTED") })
				mu.Lock()
				seen = append(seen, len(requests))
				mu.Unlock()
				time.Sleep(time.Duration(len(in)) * time.Second)
				return in, nil
			}}},
			Flows: []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
				a := c.Start[string]("a", "nap", "aaaaaa")
				b := c.Start[string]("b", "nap", "b")
				d := c.Start[string]("d", "nap", "ddd")
				var errs []error
				for _, p := range []*kernel.Pending[string]{a, b, d} {
					_, err := p.Await()
					errs = append(errs, err)
				}
				return nil, errors.Join(errs...)
			})},
		})
		w.start("f", "x", nil)
		time.Sleep(5500 * time.Millisecond) // b (3 s) and d (5 s) are in, a (8 s) is not
		synctest.Wait()
		w.wantKinds("x", "STARTED", "REQUESTED a", "REQUESTED b", "REQUESTED d", "SETTLED b", "SETTLED d")
		if diff := cmp.Diff([]int{3, 3, 3}, seen); diff != "" {
			t.Errorf("requests on record when the effects began (-want +got):\n%s", diff)
		}
		w.reboot() // a was cut, and runs once only
		w.wantKinds("x", "STARTED", "REQUESTED a", "REQUESTED b", "REQUESTED d", "SETTLED b", "SETTLED d", "SETTLED a", "ENDED")
		if info, _ := w.rt.Query(t.Context(), ann, "x"); info.Fault != kernel.ErrOutcomeUnknown.Code {
			t.Errorf("fault = %q; want %q", info.Fault, kernel.ErrOutcomeUnknown.Code)
		}
	})
}

func TestOwned(t *testing.T) { // K10, C-29.13
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kernel.Config{Effects: []kernel.Effect{echo}, Flows: []kernel.Flow{chatter(&counter{})}})
		for _, id := range []string{"a", "b", "c"} {
			w.start("chatter", id, map[string]any{})
			time.Sleep(time.Second)
		}
		w.send("a", "m", "")
		time.Sleep(time.Second)
		w.send("b", "end", "")
		owner, _ := ann.Identity()
		var got []string
		after := ""
		for range 3 {
			page, err := w.rt.Owned(t.Context(), owner, "chatter", after, 1)
			if err != nil || len(page) != 1 {
				t.Fatalf("Owned = %v, %v; want one", page, err)
			}
			got = append(got, page[0].ID+" "+string(page[0].State))
			after = page[0].Position
		}
		if diff := cmp.Diff([]string{"b completed", "a running", "c running"}, got); diff != "" {
			t.Errorf("Owned (-want +got):\n%s", diff)
		}
		other, _ := bob.Identity()
		if page, _ := w.rt.Owned(t.Context(), other, "chatter", "", 10); len(page) != 0 {
			t.Errorf("bob owns %v; want nothing", page)
		}
	})
}

// Only executions with something to do are woken at a start-up (K10).
func TestWorkMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kernel.Config{Effects: []kernel.Effect{echo}, Flows: []kernel.Flow{chatter(&counter{})}})
		marks := func() (keys []string) {
			rows, err := w.store.List(t.Context(), "work", "", "", 10, journal.Forward)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				keys = append(keys, row.Key)
			}
			return keys
		}
		w.start("chatter", "x", map[string]any{})
		w.start("chatter", "y", map[string]any{})
		if diff := cmp.Diff([]string{"x", "y"}, marks()); diff != "" {
			t.Errorf("marks after the start (-want +got):\n%s", diff)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := marks(); len(got) != 0 {
			t.Errorf("marks of idle executions = %v; want none", got)
		}
		w.send("y", "m", "")
		if diff := cmp.Diff([]string{"y"}, marks()); diff != "" {
			t.Errorf("marks after a send (-want +got):\n%s", diff)
		}
	})
}
