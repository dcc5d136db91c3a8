package journaltest

import (
	"errors"
	"sync"
	"testing"

	"github.com/parley-run/parley/journal"
)

var endCases = []contractCase{
	{"closed", closed},
	{"close under load", closeUnderLoad},
}

// closed: every call after Close says so, and subscriptions end.
func closed(t *testing.T, s journal.Store) {
	wake := subscribe(t, t.Context(), s, "s")
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	wantReleased(t, wake)
	if err := s.Append(t.Context(), journal.Append{Stream: "s", Events: facts("a", 1)}); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Append after Close: %v, want ErrClosed", err)
	}
	for name, call := range reads(s) {
		if n, err := call(t.Context()); !errors.Is(err, journal.ErrClosed) || n != 0 {
			t.Errorf("%s after Close: %d results, %v, want none and ErrClosed", name, n, err)
		}
	}
	if err := s.Close(); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Close after Close: %v, want ErrClosed", err)
	}
}

// closeUnderLoad: Close returns while others use the store, and each of their
// calls either does its work or says that the store is closed.
func closeUnderLoad(t *testing.T, s journal.Store) {
	var wg, started sync.WaitGroup
	started.Add(8)
	for range 4 {
		wg.Go(func() {
			untilClosed(t, &started, func() error {
				return s.Append(t.Context(), journal.Append{Stream: "s", Expect: journal.AtEnd, Events: facts("a", 1)})
			})
		})
		wg.Go(func() {
			untilClosed(t, &started, func() error {
				_, err := s.ReadRange(t.Context(), "s", 0, 10, journal.Forward)
				return err
			})
		})
	}
	started.Wait()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	wg.Wait()
}

// untilClosed repeats a call until the store is closed; after the first time it
// has started.
func untilClosed(t *testing.T, started *sync.WaitGroup, call func() error) {
	err := call()
	started.Done()
	for err == nil {
		err = call()
	}
	if !errors.Is(err, journal.ErrClosed) {
		t.Errorf("a call while the store closes: %v, want ErrClosed", err)
	}
}
