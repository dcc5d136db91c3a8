// Package journaltest is what a journal is, in executable form.
//
// A store is finished when [Run] passes, and a durable one when [RunDurable]
// does too. [Wrap] puts counters and faults around any store, for the tests of
// those who write into one.
package journaltest

import (
	"encoding/json/jsontext"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/journal"
)

// Run holds a store against the contract of [journal.Store] (C-3.1 to C-3.6,
// C-3.9). Each call of open gives an empty store, which Run closes.
func Run(t *testing.T, open func(t *testing.T) journal.Store) {
	for _, group := range []struct {
		name  string
		cases []contractCase
	}{
		{"append", appendCases},
		{"read", readCases},
		{"list", listCases},
		{"subscribe", subscribeCases},
		{"concurrent", concurrentCases},
		{"end", endCases},
		{"model", modelCases},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) {
					store := open(t)
					t.Cleanup(func() { store.Close() }) // a case may have closed it
					c.run(t, store)
				})
			}
		})
	}
}

// contractCase is one promise of the contract, tried on an empty store.
type contractCase struct {
	name string
	run  func(t *testing.T, s journal.Store)
}

// facts returns n events that can be told apart by their ids: a0, a1, ….
func facts(id string, n int) []journal.Event {
	events := make([]journal.Event, n)
	for i := range events {
		events[i] = journal.Event{Kind: "FACT", ID: fmt.Sprint(id, i), Data: jsontext.Value(fmt.Sprint(i))}
	}
	return events
}

// must appends a batch that has to be accepted.
func must(t *testing.T, s journal.Store, batch ...journal.Append) {
	t.Helper()
	if err := s.Append(t.Context(), batch...); err != nil {
		t.Fatalf("Append: %v", err)
	}
}

// read returns a range that has to be readable.
func read(t *testing.T, s journal.Store, stream string, from journal.Seq, limit int, dir journal.Direction) []journal.Event {
	t.Helper()
	events, err := s.ReadRange(t.Context(), stream, from, limit, dir)
	if err != nil {
		t.Fatalf("ReadRange(%q, %d, %d, %d): %v", stream, from, limit, dir, err)
	}
	return events
}

// wantIDs compares the ids of a whole stream, and that its sequences are 0, 1,
// 2, ….
func wantIDs(t *testing.T, s journal.Store, stream string, want ...string) {
	t.Helper()
	var got []string
	for i, event := range read(t, s, stream, 0, 1000, journal.Forward) {
		got = append(got, event.ID)
		if event.Seq != journal.Seq(i) {
			t.Errorf("event %d of %q has sequence %d", i, stream, event.Seq)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ids of %q (-want +got):\n%s", stream, diff)
	}
	next, ok, err := s.HeadOf(t.Context(), stream)
	if err != nil || next != journal.Seq(len(want)) || ok != (len(want) > 0) {
		t.Errorf("HeadOf(%q) = %d, %t, %v, want %d, %t", stream, next, ok, err, len(want), len(want) > 0)
	}
}
