package journaltest

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/journal"
)

var appendCases = []contractCase{
	{"gives back exact bytes", exactBytes},
	{"numbers without gaps", numbers},
	{"conflict writes nothing", conflict},
	{"all streams and rows or none", atomic},
	{"condition without events", condition},
	{"at the end", atEnd},
	{"empty batch", emptyBatch},
	{"too large", tooLarge},
	{"malformed", malformed},
	{"context done before", doneBefore},
}

// exactBytes: data come back byte for byte, times in UTC cut to milliseconds,
// and neither side shares memory with the store.
func exactBytes(t *testing.T, s journal.Store) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 678_900_000, time.FixedZone("", 3600))
	events := []journal.Event{
		{Seq: 77, Kind: "STARTED", ID: "ä/1", Time: at, Data: jsontext.Value(" {\"b\" :1.0, \"a\":\"é\\u00e9\\n\"} \n")},
		{Kind: "ENDED"},
		{Kind: "ENDED", Time: time.UnixMilli(-1), Data: jsontext.Value{}},
		{Kind: "FACT", Data: jsontext.Value(`1e400`)},
	}
	want := []journal.Event{
		{Seq: 0, Kind: "STARTED", ID: "ä/1", Time: time.Date(2030, 1, 2, 2, 4, 5, 678_000_000, time.UTC), Data: jsontext.Value(" {\"b\" :1.0, \"a\":\"é\\u00e9\\n\"} \n")},
		{Seq: 1, Kind: "ENDED"},
		{Seq: 2, Kind: "ENDED", Time: time.Date(1969, 12, 31, 23, 59, 59, 999_000_000, time.UTC)},
		{Seq: 3, Kind: "FACT", Data: jsontext.Value(`1e400`)},
	}
	must(t, s, journal.Append{Stream: "s", Events: events})
	clear(events[0].Data)
	for range 2 {
		got := read(t, s, "s", 0, 10, journal.Forward)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ReadRange (-want +got):\n%s", diff)
		}
		for _, event := range got {
			if event.Time.Location() != time.UTC {
				t.Errorf("the time of event %d is not in UTC: %v", event.Seq, event.Time)
			}
			clear(event.Data)
		}
	}
}

// numbers: 0, 1, 2, … over several appends, each stream for itself (C-3.1).
func numbers(t *testing.T, s journal.Store) {
	must(t, s, journal.Append{Stream: "a", Expect: 0, Events: facts("x", 2)})
	must(t, s, journal.Append{Stream: "b", Expect: 0, Events: facts("y", 1)})
	must(t, s, journal.Append{Stream: "a", Expect: 2, Events: facts("z", 1)})
	wantIDs(t, s, "a", "x0", "x1", "z0")
	wantIDs(t, s, "b", "y0")
	wantIDs(t, s, "A")
}

// conflict: every expectation but the right one is refused (C-3.2).
func conflict(t *testing.T, s journal.Store) {
	for _, expect := range []journal.Seq{1, 1 << 40} {
		wantConflict(t, s, journal.Append{Stream: "s", Expect: expect, Events: facts("x", 1)})
	}
	must(t, s, journal.Append{Stream: "s", Events: facts("a", 2)})
	for _, expect := range []journal.Seq{0, 1, 3} {
		wantConflict(t, s, journal.Append{Stream: "s", Expect: expect, Events: facts("x", 2)})
	}
	wantIDs(t, s, "s", "a0", "a1")
	must(t, s, journal.Append{Stream: "s", Expect: 2, Events: facts("b", 1)})
	wantIDs(t, s, "s", "a0", "a1", "b0")
}

func wantConflict(t *testing.T, s journal.Store, batch ...journal.Append) {
	t.Helper()
	if err := s.Append(t.Context(), batch...); !errors.Is(err, journal.ErrConflict) {
		t.Errorf("Append at %q %d: %v, want ErrConflict", batch[0].Stream, batch[0].Expect, err)
	}
}

// atomic: one stream that has moved on keeps every other stream, and every row,
// from being written (C-3.2).
func atomic(t *testing.T, s journal.Store) {
	old := journal.Row{Space: "x", Key: "old", Sort: "1"}
	must(t, s, journal.Append{Stream: "a", Events: facts("a", 1), Rows: []journal.Row{old}})
	parts := []journal.Append{
		{Stream: "b", Expect: 0, Events: facts("b", 1), Rows: []journal.Row{{Space: "x", Key: "new", Sort: "2"}}},
		{Stream: "a", Expect: 0, Events: facts("c", 1), Rows: []journal.Row{{Space: "x", Key: "old", Delete: true}}},
		{Stream: "c", Expect: journal.AtEnd, Events: facts("d", 1)},
	}
	for range parts {
		wantConflict(t, s, parts...)
		parts = append(parts[1:], parts[0])
	}
	wantIDs(t, s, "a", "a0")
	wantIDs(t, s, "b")
	wantIDs(t, s, "c")
	wantRows(t, s, "x", "", "", 10, journal.Forward, old)

	for i := range parts {
		if parts[i].Stream == "a" {
			parts[i].Expect = 1
		}
	}
	must(t, s, parts...)
	wantIDs(t, s, "a", "a0", "c0")
	wantIDs(t, s, "b", "b0")
	wantIDs(t, s, "c", "d0")
	wantRows(t, s, "x", "", "", 10, journal.Forward, journal.Row{Space: "x", Key: "new", Sort: "2"})
}

// condition: an append without events writes its rows only if the stream ends
// where it says, and holds for the rest of its batch.
func condition(t *testing.T, s journal.Store) {
	must(t, s, journal.Append{Stream: "s", Events: facts("a", 2)})
	row := journal.Row{Space: "x", Key: "k", Sort: "1"}
	wantConflict(t, s, journal.Append{Stream: "s", Expect: 1, Rows: []journal.Row{row}})
	wantConflict(t, s, journal.Append{Stream: "none", Expect: 1, Rows: []journal.Row{row}})
	wantConflict(t, s, journal.Append{Stream: "t", Events: facts("b", 1)}, journal.Append{Stream: "s", Expect: 0})
	wantRows(t, s, "x", "", "", 10, journal.Forward)
	must(t, s, journal.Append{Stream: "t", Events: facts("b", 1)}, journal.Append{Stream: "s", Expect: 2}, journal.Append{Stream: "none", Rows: []journal.Row{row}})
	wantRows(t, s, "x", "", "", 10, journal.Forward, row)
	wantIDs(t, s, "s", "a0", "a1")
	wantIDs(t, s, "t", "b0")
	wantIDs(t, s, "none")
}

// atEnd: an append without an expectation always fits.
func atEnd(t *testing.T, s journal.Store) {
	for _, id := range []string{"a", "b", "c"} {
		must(t, s, journal.Append{Stream: "s", Expect: journal.AtEnd, Events: facts(id, 1)})
	}
	must(t, s, journal.Append{Stream: "t", Expect: journal.AtEnd})
	wantIDs(t, s, "s", "a0", "b0", "c0")
	wantIDs(t, s, "t")
}

func emptyBatch(t *testing.T, s journal.Store) {
	must(t, s)
}

// tooLarge: the largest event is accepted, and one byte more refuses the batch.
func tooLarge(t *testing.T, s journal.Store) {
	text := func(size int) jsontext.Value {
		return jsontext.Value(`"` + strings.Repeat("x", size-2) + `"`)
	}
	largest := text(journal.MaxEventBytes)
	name := strings.Repeat("n", journal.MaxNameBytes)
	row := journal.Row{Space: "x", Key: "k"}
	must(t, s, journal.Append{Stream: name, Events: []journal.Event{{Kind: name, Data: largest}}})
	if got := read(t, s, name, 0, 1, journal.Forward); string(got[0].Data) != string(largest) {
		t.Errorf("the largest event came back with %d bytes, want %d", len(got[0].Data), len(largest))
	}
	for what, part := range map[string]journal.Append{
		"data":        {Events: []journal.Event{{Kind: "A"}, {Kind: "A", Data: text(journal.MaxEventBytes + 1)}}},
		"data and id": {Events: []journal.Event{{Kind: "A", ID: "1", Data: largest}}},
		"kind":        {Events: []journal.Event{{Kind: name + "n"}}},
		"stream":      {Stream: name + "n", Events: facts("a", 1)},
		"space":       {Rows: []journal.Row{row, {Space: name + "n", Key: "k"}}},
		"key":         {Rows: []journal.Row{row, {Space: "x", Key: name + "n"}}},
		"sort":        {Rows: []journal.Row{row, {Space: "x", Key: "k", Sort: name + "n"}}},
		"row":         {Rows: []journal.Row{row, {Space: "x", Key: "l", Data: text(journal.MaxEventBytes + 1)}}},
	} {
		if part.Stream == "" {
			part.Stream = "s"
		}
		err := s.Append(t.Context(), journal.Append{Stream: "t", Events: facts("b", 1)}, part)
		if !errors.Is(err, journal.ErrTooLarge) {
			t.Errorf("Append with too much %s: %v, want ErrTooLarge", what, err)
		}
	}
	wantIDs(t, s, "s")
	wantIDs(t, s, "t")
	wantRows(t, s, "x", "", "", 1, journal.Forward)
}

// malformed: what breaks a promise of the contract is refused, and writes
// nothing.
func malformed(t *testing.T, s journal.Store) {
	ok := journal.Append{Stream: "t", Events: facts("b", 1)}
	for what, batch := range map[string][]journal.Append{
		"no stream":            {ok, {Events: facts("a", 1)}},
		"no kind":              {ok, {Stream: "s", Events: []journal.Event{{ID: "a"}}}},
		"no key":               {ok, {Stream: "s", Rows: []journal.Row{{Space: "x"}}}},
		"stream twice":         {ok, ok},
		"negative expectation": {ok, {Stream: "s", Expect: -2}},
		"NUL in a stream":      {ok, {Stream: "s\x00", Events: facts("a", 1)}},
		"NUL in an id":         {ok, {Stream: "s", Events: []journal.Event{{Kind: "A", ID: "\x00"}}}},
		"NUL in data":          {ok, {Stream: "s", Events: []journal.Event{{Kind: "A", Data: jsontext.Value("\"\x00\"")}}}},
		"NUL in a sort":        {ok, {Stream: "s", Rows: []journal.Row{{Space: "x", Key: "k", Sort: "\x00"}}}},
		"kind is not UTF-8":    {ok, {Stream: "s", Events: []journal.Event{{Kind: "\xff"}}}},
		"data are not UTF-8":   {ok, {Stream: "s", Events: []journal.Event{{Kind: "A", Data: jsontext.Value("\"\xff\"")}}}},
		"row is not UTF-8":     {ok, {Stream: "s", Rows: []journal.Row{{Space: "x", Key: "k", Data: jsontext.Value("\"\xff\"")}}}},
	} {
		if err := s.Append(t.Context(), batch...); err == nil {
			t.Errorf("Append, %s: no error", what)
		}
	}
	wantIDs(t, s, "s")
	wantIDs(t, s, "t")
	wantRows(t, s, "x", "", "", 1, journal.Forward)
}

// doneBefore: a context that is done before the write is queued writes nothing.
func doneBefore(t *testing.T, s journal.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Append(ctx, journal.Append{Stream: "s", Events: facts("a", 1)}); !errors.Is(err, context.Canceled) {
		t.Errorf("Append with a cancelled context: %v, want context.Canceled", err)
	}
	wantIDs(t, s, "s")
}
