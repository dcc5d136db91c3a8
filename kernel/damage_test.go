package kernel_test

import (
	"context"
	"encoding/json/jsontext"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// A log that cannot be read makes its own execution stuck. It is no failure of
// the store: every other execution goes on, after a start-up too (K8, K13).
func TestDamagedLogStopsNobodyElse(t *testing.T) {
	for name, events := range map[string][]journal.Event{
		"a start that is none":          {{Kind: kernel.KindStarted, Data: []byte(`{"flow":1}`)}},
		"a consumption that is none":    {{Kind: kernel.KindStarted, Data: []byte(`{"flow":"f","version":"1"}`)}, {Kind: kernel.KindConsumed, Data: []byte(`[]`)}},
		"an event of an unknown kind":   {{Kind: kernel.KindStarted, Data: []byte(`{"flow":"f","version":"1"}`)}, {Kind: "?", Data: []byte(`1`)}},
		"a parent that there is not":    {{Kind: kernel.KindStarted, Data: []byte(`{"flow":"f","version":"1","parent":"gone"}`)}},
		"a parent whose end is damaged": {{Kind: kernel.KindStarted, Data: []byte(`{"flow":"f","version":"1","parent":"damaged"}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, kernel.Config{Flows: []kernel.Flow{flow("f", func(c *kernel.Context, _ jsontext.Value) (any, error) {
					c.Receive("in")
					return nil, nil
				})}})
				w.rt.Close()
				err := w.inner.Append(t.Context(),
					journal.Append{Stream: "damaged", Events: []journal.Event{
						{Kind: kernel.KindStarted, Data: []byte(`{"flow":"f","version":"1"}`)}, {Kind: kernel.KindEnded, Data: []byte(`{"state":1}`)},
					}},
					journal.Append{Stream: "x", Events: events, Rows: []journal.Row{{Space: "work", Key: "x"}}})
				if err != nil {
					t.Fatal(err)
				}
				w.boot()
				if err := w.rt.Err(); err != nil {
					t.Fatalf("the runtime failed with one log: %v", err)
				}
				w.start("f", "y", nil)
				w.send("y", "go", "")
				if got := w.state("y"); got != kernel.Completed {
					t.Errorf("state of another execution = %s; want completed", got)
				}
			})
		})
	}
}

// A fact that is larger than an event can be makes its own execution stuck: the
// store took nothing and is whole (K8).
func TestOversizedFactStopsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kernel.Config{Flows: []kernel.Flow{
			flow("huge", func(c *kernel.Context, _ jsontext.Value) (any, error) {
				c.Decide(strings.Repeat("x", journal.MaxEventBytes), "s", func(context.Context) (int, error) { return 1, nil })
				return nil, nil
			}),
			flow("f", func(*kernel.Context, jsontext.Value) (any, error) { return nil, nil }),
		}})
		w.start("huge", "x", nil)
		if got := w.state("x"); got != kernel.Stuck {
			t.Errorf("state = %s; want stuck", got)
		}
		w.start("f", "y", nil)
		if got := w.state("y"); got != kernel.Completed {
			t.Errorf("state of another execution = %s; want completed", got)
		}
	})
}

// A message that met the end of its execution leaves a work mark behind. The
// next start-up looks once and clears it (K10).
func TestMarkOfAnEndedExecutionGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kernel.Config{Flows: []kernel.Flow{flow("f", func(*kernel.Context, jsontext.Value) (any, error) { return nil, nil })}})
		w.start("f", "x", nil)
		err := w.inner.Append(t.Context(), journal.Append{ // what Send writes, having found the execution hot
			Stream: kernel.InboxStream("x"), Expect: journal.AtEnd,
			Events: []journal.Event{{Kind: kernel.KindMessage, Data: []byte(`{"topic":"in","payload":1}`)}},
			Rows:   []journal.Row{{Space: "work", Key: "x"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.reboot()
		rows, err := w.inner.List(t.Context(), "work", "", "", 10, journal.Forward)
		if err != nil || len(rows) != 0 {
			t.Errorf("work marks after a start-up = %v, %v; want none", rows, err)
		}
	})
}
