package journaltest

import (
	"encoding/json/jsontext"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/journal"
)

// testAppend: sequences from 0 without gaps, exact bytes back, and a wrong
// expectation writes nothing (C-3.1, C-3.2).
func testAppend(t *testing.T, s journal.Store) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 678_900_000, time.FixedZone("", 3600))
	first := journal.Event{Seq: 77, Kind: "STARTED", ID: "a", Time: at, Data: jsontext.Value(` {"b" :1.0, "a":"é\u00e9"} `)}
	second := journal.Event{Kind: "ENDED"}
	if err := s.Append(t.Context(), journal.Append{Stream: "s", Events: []journal.Event{first, second}}); err != nil {
		t.Fatalf("Append at 0: %v", err)
	}
	err := s.Append(t.Context(), journal.Append{Stream: "s", Expect: 1, Events: []journal.Event{second}})
	if !errors.Is(err, journal.ErrConflict) {
		t.Errorf("Append at 1 of a stream that ends at 2: %v, want ErrConflict", err)
	}
	first.Seq, first.Time = 0, time.Date(2030, 1, 2, 2, 4, 5, 678_000_000, time.UTC)
	second.Seq, second.Time = 1, time.Time{}
	got, err := s.ReadRange(t.Context(), "s", 0, 10, journal.Forward)
	if err != nil {
		t.Fatalf("ReadRange: %v", err)
	}
	if diff := cmp.Diff([]journal.Event{first, second}, got); diff != "" {
		t.Errorf("ReadRange (-want +got):\n%s", diff)
	}
}
