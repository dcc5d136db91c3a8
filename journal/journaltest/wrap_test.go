package journaltest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
)

var errDisk = errors.New("the disk is on fire")

func event(kind string) []journal.Event { return []journal.Event{{Kind: kind}} }

func head(t *testing.T, s journal.Store) journal.Seq {
	t.Helper()
	next, _, err := s.HeadOf(t.Context(), "s")
	if err != nil {
		t.Fatalf("HeadOf: %v", err)
	}
	return next
}

// A wrapped store without faults keeps the contract.
func TestWrapContract(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journal.Store { return journaltest.Wrap(memory.New()) })
}

func TestWrapFaults(t *testing.T) {
	ok := errors.New("no error")
	for _, test := range []struct {
		name   string
		turn   func(*journaltest.Store)
		errors []error // of four appends
		events []journal.Seq
	}{
		{"none", func(*journaltest.Store) {}, []error{ok, ok, ok, ok}, []journal.Seq{1, 2, 3, 4}},
		{"before", func(s *journaltest.Store) { s.FailBefore(2, errDisk) }, []error{ok, errDisk, ok, ok}, []journal.Seq{1, 1, 2, 3}},
		{"after", func(s *journaltest.Store) { s.FailAfter(2, errDisk) }, []error{ok, errDisk, ok, ok}, []journal.Seq{1, 2, 3, 4}},
		{
			"poison before", func(s *journaltest.Store) { s.PoisonBefore(2) },
			[]error{ok, journal.ErrPoisoned, journal.ErrPoisoned, journal.ErrPoisoned},
			[]journal.Seq{1, 1, 1, 1},
		},
		{
			"poison after", func(s *journaltest.Store) { s.PoisonAfter(2) },
			[]error{ok, journal.ErrPoisoned, journal.ErrPoisoned, journal.ErrPoisoned},
			[]journal.Seq{1, 2, 2, 2},
		},
		{
			"hook before", func(s *journaltest.Store) {
				s.Before(func(n int, batch []journal.Append) error {
					if batch[0].Events[0].Kind == "B" && n == 2 {
						return errDisk
					}
					return nil
				})
			},
			[]error{ok, errDisk, ok, ok},
			[]journal.Seq{1, 1, 2, 3},
		},
		{
			"hook after", func(s *journaltest.Store) {
				s.After(func(n int, _ []journal.Append) error {
					if n == 3 {
						return errDisk
					}
					return nil
				})
			},
			[]error{ok, ok, errDisk, ok},
			[]journal.Seq{1, 2, 3, 4},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := journaltest.Wrap(memory.New())
			test.turn(s)
			for i, kind := range []string{"A", "B", "C", "D"} {
				err := s.Append(t.Context(), journal.Append{Stream: "s", Expect: journal.AtEnd, Events: event(kind)})
				if want := test.errors[i]; !errors.Is(err, want) && (want != ok || err != nil) {
					t.Errorf("append %d: %v, want %v", i+1, err, want)
				}
				if got := head(t, s); got != test.events[i] {
					t.Errorf("head after append %d: %d, want %d", i+1, got, test.events[i])
				}
			}
		})
	}
}

func TestWrapHookMayPanic(t *testing.T) {
	s := journaltest.Wrap(memory.New())
	s.At(1, func() { panic("killed") })
	func() {
		defer func() {
			if got := recover(); got != "killed" {
				t.Errorf("recovered %v, want the panic of the hook", got)
			}
		}()
		s.Append(t.Context(), journal.Append{Stream: "s", Events: event("A")})
	}()
	if got := head(t, s); got != 0 {
		t.Errorf("head after the panic: %d, want 0", got)
	}
	if err := s.Append(t.Context(), journal.Append{Stream: "s", Events: event("A")}); err != nil {
		t.Errorf("the append after the panic: %v", err)
	}
}

func TestWrapOnRead(t *testing.T) {
	s := journaltest.Wrap(memory.New())
	s.OnRead(func(stream string) error { return errDisk })
	if _, err := s.ReadRange(t.Context(), "s", 0, 1, journal.Forward); !errors.Is(err, errDisk) {
		t.Errorf("ReadRange: %v, want the error of the hook", err)
	}
	if _, _, err := s.HeadOf(t.Context(), "s"); !errors.Is(err, errDisk) {
		t.Errorf("HeadOf: %v, want the error of the hook", err)
	}
}

func TestWrapCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := journaltest.Wrap(memory.New())
		ctx, cancel := context.WithCancel(t.Context())
		s.Subscribe(ctx, "s")
		s.Subscribe(t.Context(), "s")
		s.FailBefore(2, errDisk)
		for range 2 {
			s.Append(ctx, journal.Append{Stream: "s", Expect: journal.AtEnd, Events: append(event("A"), event("B")...)})
		}
		s.ReadRange(ctx, "s", 0, 10, journal.Forward)
		s.ReadRange(ctx, "s", 5, 10, journal.Forward)
		s.HeadOf(ctx, "s")
		s.List(ctx, "space", "", "", 1, journal.Forward)
		want := journaltest.Counts{
			Appends: 2, Written: 1, EventsWritten: 2, Reads: 2, EventsRead: 2, Heads: 1, Lists: 1, Subscribes: 2, Subscriptions: 2,
		}
		if diff := cmp.Diff(want, s.Counts()); diff != "" {
			t.Errorf("Counts (-want +got):\n%s", diff)
		}
		cancel()
		synctest.Wait()
		if got := s.Counts().Since(want); got != (journaltest.Counts{Subscriptions: 1}) {
			t.Errorf("Counts since, one subscription released: %+v", got)
		}
	})
}

func TestWrapMute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := journaltest.Wrap(memory.New())
		s.Mute()
		ctx, cancel := context.WithCancel(t.Context())
		wake, err := s.Subscribe(ctx, "s")
		if err != nil {
			t.Fatalf("Subscribe: %v", err)
		}
		s.Append(ctx, journal.Append{Stream: "s", Events: event("A")})
		select {
		case <-wake:
			t.Error("a muted subscription was notified")
		default:
		}
		cancel()
		if _, open := <-wake; open {
			t.Error("a muted subscription was not released")
		}
	})
}

func TestWrapRecord(t *testing.T) {
	s := journaltest.Wrap(memory.New())
	s.Record()
	data := []byte(`1`)
	events := []journal.Event{{Kind: "A", Data: data}}
	s.Append(t.Context(), journal.Append{Stream: "s", Events: events})
	s.Append(t.Context(), journal.Append{Stream: "s", Events: events}) // a conflict
	s.Append(t.Context(), journal.Append{Stream: "s", Expect: 1, Rows: []journal.Row{{Space: "x", Key: "k"}}})
	data[0], events[0].Kind = '2', "B"
	want := [][]journal.Append{
		{{Stream: "s", Events: []journal.Event{{Kind: "A", Data: []byte(`1`)}}}},
		{{Stream: "s", Expect: 1, Rows: []journal.Row{{Space: "x", Key: "k"}}}},
	}
	if diff := cmp.Diff(want, s.Recorded()); diff != "" {
		t.Errorf("Recorded (-want +got):\n%s", diff)
	}
}
