package conversation_test

import (
	"testing"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
)

func TestTurnOf(t *testing.T) {
	for _, test := range []struct {
		execution, step    string
		conversation, turn string
		ok                 bool
	}{
		{"abc", "conv#o12#model:1", "abc", "conv#o12", true},
		{"abc", "conv#o12:summarize", "abc", "conv#o12", true},
		{"turn:abc:o3:00ff", "turn#model:1", "abc", "turn:abc:o3:00ff", true},
		{"abc", "conv#settings", "abc", "", false},
		{"abc", "conv#o:x", "abc", "", false},
		{"abc", "conv#o0#x", "abc", "", false},
		{"abc", "", "abc", "", false},
	} {
		in, turn, ok := conversation.TurnOf(kernel.Step{Execution: test.execution, ID: test.step})
		if ok != test.ok || ok && (in != test.conversation || turn != test.turn) {
			t.Errorf("TurnOf(%q, %q) = %q, %q, %v", test.execution, test.step, in, turn, ok)
		}
	}
}

// L-16.2: a turn has ended when that is on record, and not before.
func TestTurnOver(t *testing.T) {
	const shared = "turn:c:o2:00ff"
	work := func(id string) journal.Event { return journal.Event{Kind: kernel.KindRequested, ID: id} }
	ended := journal.Event{Kind: kernel.KindEnded}
	long := func(id string) (events []journal.Event) {
		for range 70 {
			events = append(events, journal.Event{Kind: kernel.KindRequested})
		}
		return append([]journal.Event{work(id)}, events...)
	}
	for name, test := range map[string]struct {
		turn    string
		streams map[string][]journal.Event
		want    bool
	}{
		"nothing there":           {"conv#o2", nil, false},
		"at work":                 {"conv#o2", map[string][]journal.Event{"c": {work("conv#o1:reply"), work("conv#o2:user"), work("conv#o2#model:1")}}, false},
		"at work for long":        {"conv#o2", map[string][]journal.Event{"c": long("conv#o2#tool:1")}, false},
		"replied":                 {"conv#o2", map[string][]journal.Event{"c": {work("conv#o2#model:1"), work("conv#o2:reply")}}, true},
		"dropped":                 {"conv#o2", map[string][]journal.Event{"c": {work("conv#o2:dropped")}}, true},
		"another is at work":      {"conv#o2", map[string][]journal.Event{"c": {work("conv#o10:user")}}, true},
		"another, long ago":       {"conv#o2", map[string][]journal.Event{"c": long("conv#o3:user")}, true},
		"before it":               {"conv#o2", map[string][]journal.Event{"c": {work("conv#o1:reply")}}, false},
		"cancelled":               {"conv#o2", map[string][]journal.Event{"c": {work("conv#o2#model:1"), ended}}, true},
		"in an older generation":  {"conv#o2", map[string][]journal.Event{"c": {work("conv#o2:reply")}, "c~1": {work("")}}, true},
		"at work after rotation":  {"conv#o2", map[string][]journal.Event{"c": {work("conv#o1:reply")}, "c~1": {work("conv#o2:user")}}, false},
		"shared and at work":      {shared, map[string][]journal.Event{"c": {work("conv#o9:reply")}, shared: {work("turn#begun")}}, false},
		"shared and over":         {shared, map[string][]journal.Event{shared: {work("turn#answer"), ended}}, true},
		"shared and not there":    {shared, nil, false},
		"another one's turn over": {shared, map[string][]journal.Event{"turn:c:o3:00ff": {ended}}, false},
	} {
		store := memory.New()
		for stream, events := range test.streams {
			for i := range events {
				events[i].Data = []byte("{}")
			}
			if err := store.Append(t.Context(), journal.Append{Stream: stream, Events: events}); err != nil {
				t.Fatal(name, err)
			}
		}
		if got, err := conversation.TurnOver(t.Context(), store, "c", test.turn); got != test.want || err != nil {
			t.Errorf("%s: TurnOver = %v, %v", name, got, err)
		}
		store.Close()
		if got, err := conversation.TurnOver(t.Context(), store, "c", test.turn); got || err == nil {
			t.Errorf("%s: with a closed store TurnOver = %v, %v", name, got, err)
		}
	}
}
