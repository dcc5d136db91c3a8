package journaltest

import (
	"fmt"
	"testing"

	"github.com/parley-run/parley/journal"
)

// RunDurable holds a store against what a durable one promises besides (C-3.8):
// what was acknowledged is there after the store is opened again, be it after
// Close or after the process was killed in the middle of its work.
//
// open opens the store that lives in place, an empty folder of the test at
// first (a store elsewhere may take it as a name), and may be called again once
// the store is closed or its process is dead. RunDurable must be called from a
// test function itself and be all that it does, as it starts the test binary
// once more with that test alone.
func RunDurable(t *testing.T, open func(t *testing.T, place string) journal.Store) {
	if place, ok := childPlace(); ok {
		appendUntilKilled(t, open(t, place))
		return
	}
	t.Run("reopen", func(t *testing.T) { reopen(t, open) })
	t.Run("kill", func(t *testing.T) { kill(t, open) })
}

// reopen: events, heads and rows outlive the store that wrote them, and it goes
// on where it stood.
func reopen(t *testing.T, open func(t *testing.T, place string) journal.Store) {
	place := t.TempDir()
	want := []string(nil)
	for i := range 4 {
		s := open(t, place)
		wantIDs(t, s, "s", want...)
		id := fmt.Sprint(i, ".")
		row := journal.Row{Space: "x", Key: "k", Sort: id}
		wantConflict(t, s, journal.Append{Stream: "s", Expect: journal.Seq(len(want) + 1), Events: facts("x", 1)})
		must(t, s, journal.Append{Stream: "s", Expect: journal.Seq(len(want)), Events: facts(id, 2), Rows: []journal.Row{row}})
		want = append(want, id+"0", id+"1")
		wantRows(t, s, "x", "", "", 10, journal.Forward, row)
		if err := s.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	s := open(t, place)
	defer s.Close()
	wantIDs(t, s, "s", want...)
	wantRows(t, s, "x", "", "", 10, journal.Forward, journal.Row{Space: "x", Key: "k", Sort: "3."})
}
