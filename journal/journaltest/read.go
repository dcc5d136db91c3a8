package journaltest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/journal"
)

var readCases = []contractCase{
	{"ranges", ranges},
	{"heads", headCase},
	{"context done", readDone},
}

// ranges: both directions, every edge (C-3.3).
func ranges(t *testing.T, s journal.Store) {
	must(t, s, journal.Append{Stream: "s", Events: facts("", 5)})
	must(t, s, journal.Append{Stream: "r", Events: facts("r", 9)}, journal.Append{Stream: "ss", Events: facts("ss", 9)})
	for _, test := range []struct {
		stream string
		from   journal.Seq
		limit  int
		dir    journal.Direction
		want   string
	}{
		{"s", 0, 10, journal.Forward, "01234"},
		{"s", 0, 5, journal.Forward, "01234"},
		{"s", 0, 4, journal.Forward, "0123"},
		{"s", 0, 1, journal.Forward, "0"},
		{"s", 2, 2, journal.Forward, "23"},
		{"s", 4, 10, journal.Forward, "4"},
		{"s", 5, 10, journal.Forward, ""},
		{"s", math.MaxInt64, 10, journal.Forward, ""},
		{"s", -1, 2, journal.Forward, "01"},
		{"s", math.MinInt64, math.MaxInt, journal.Forward, "01234"},
		{"s", 1, math.MaxInt, journal.Forward, "1234"},
		{"s", 0, 0, journal.Forward, ""},
		{"s", 0, -1, journal.Forward, ""},
		{"s", 4, 10, journal.Backward, "43210"},
		{"s", 4, 5, journal.Backward, "43210"},
		{"s", 4, 2, journal.Backward, "43"},
		{"s", 2, 2, journal.Backward, "21"},
		{"s", 0, 10, journal.Backward, "0"},
		{"s", 5, 2, journal.Backward, "43"},
		{"s", math.MaxInt64, 1, journal.Backward, "4"},
		{"s", math.MaxInt64, math.MaxInt, journal.Backward, "43210"},
		{"s", -1, 10, journal.Backward, ""},
		{"s", math.MinInt64, 10, journal.Backward, ""},
		{"s", 4, 0, journal.Backward, ""},
		{"s", 4, -1, journal.Backward, ""},
		{"none", 0, 10, journal.Forward, ""},
		{"none", 0, 10, journal.Backward, ""},
		{"", 0, 10, journal.Forward, ""},
	} {
		t.Run(fmt.Sprintf("%s from %d limit %d direction %d", test.stream, test.from, test.limit, test.dir), func(t *testing.T) {
			var got string
			for _, event := range read(t, s, test.stream, test.from, test.limit, test.dir) {
				got += event.ID
				if fmt.Sprint(event.Seq) != event.ID {
					t.Errorf("event %q has sequence %d", event.ID, event.Seq)
				}
			}
			if got != test.want {
				t.Errorf("ReadRange(%q, %d, %d, %d) = %q, want %q", test.stream, test.from, test.limit, test.dir, got, test.want)
			}
		})
	}
}

// headCase: the next sequence, and whether the stream exists (C-3.4).
func headCase(t *testing.T, s journal.Store) {
	must(t, s, journal.Append{Stream: "s", Events: facts("a", 3), Rows: []journal.Row{{Space: "none", Key: "none"}}})
	type head struct {
		Next journal.Seq
		OK   bool
	}
	for stream, want := range map[string]head{"s": {3, true}, "none": {}, "": {}} {
		next, ok, err := s.HeadOf(t.Context(), stream)
		if err != nil {
			t.Errorf("HeadOf(%q): %v", stream, err)
		}
		if diff := cmp.Diff(want, head{next, ok}); diff != "" {
			t.Errorf("HeadOf(%q) (-want +got):\n%s", stream, diff)
		}
	}
}

// readDone: a read whose context is done gives its error and nothing else.
func readDone(t *testing.T, s journal.Store) {
	must(t, s, journal.Append{Stream: "s", Events: facts("a", 1), Rows: []journal.Row{{Space: "x", Key: "k"}}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range reads(s) {
		if n, err := call(ctx); !errors.Is(err, context.Canceled) || n != 0 {
			t.Errorf("%s with a cancelled context: %d results, %v, want none and context.Canceled", name, n, err)
		}
	}
}

// reads are the reading calls of a store; each returns how much it found.
func reads(s journal.Store) map[string]func(context.Context) (int, error) {
	return map[string]func(context.Context) (int, error){
		"ReadRange": func(ctx context.Context) (int, error) {
			events, err := s.ReadRange(ctx, "s", 0, 10, journal.Forward)
			return len(events), err
		},
		"HeadOf": func(ctx context.Context) (int, error) {
			next, _, err := s.HeadOf(ctx, "s")
			return int(next), err
		},
		"List": func(ctx context.Context) (int, error) {
			rows, err := s.List(ctx, "x", "", "", 10, journal.Forward)
			return len(rows), err
		},
		"Subscribe": func(ctx context.Context) (int, error) {
			wake, err := s.Subscribe(ctx, "s")
			if wake != nil {
				return 1, err
			}
			return 0, err
		},
	}
}
