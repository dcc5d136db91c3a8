package sqlite

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/journal"
)

// doneAfter is a context that is done after it was asked n times.
type doneAfter struct {
	context.Context
	n int
}

func (c *doneAfter) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

// A read whose context ends while it runs stops between two events, and its
// connection is as good as before.
func TestReadIsCancelled(t *testing.T) {
	store := openAt(t, journalPath(t), Config{Readers: 1})
	part := journal.Append{Stream: "s"}
	for range 100 {
		part.Events = append(part.Events, journal.Event{Kind: "FACT"})
		part.Rows = append(part.Rows, journal.Row{Space: "x", Key: string(rune('a' + len(part.Rows)))})
	}
	if err := store.Append(t.Context(), part); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		events, err := store.ReadRange(&doneAfter{t.Context(), 50}, "s", 0, 100, journal.Forward)
		if !errors.Is(err, context.Canceled) || events != nil {
			t.Errorf("ReadRange: %d events, %v, want none and context.Canceled", len(events), err)
		}
		rows, err := store.List(&doneAfter{t.Context(), 50}, "x", "", "", 100, journal.Backward)
		if !errors.Is(err, context.Canceled) || rows != nil {
			t.Errorf("List: %d rows, %v, want none and context.Canceled", len(rows), err)
		}
		if events, err = store.ReadRange(t.Context(), "s", 0, 100, journal.Forward); err != nil || len(events) != 100 {
			t.Errorf("ReadRange after it: %d events, %v, want 100", len(events), err)
		}
	}
}

// Reads are bounded by the connections; who waits for one gives up with its
// context, or when the store is closed.
func TestReadersAreBounded(t *testing.T) {
	path := journalPath(t)
	synctest.Test(t, func(t *testing.T) {
		store := openAt(t, path, Config{Readers: 2})
		var taken []*reader
		for range 2 {
			r, err := store.readers.take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			taken = append(taken, r)
		}
		errs := make(chan error, 1)
		head := func(ctx context.Context) {
			_, _, err := store.HeadOf(ctx, "s")
			errs <- err
		}
		want := func(what string, want error) {
			t.Helper()
			if err := <-errs; !errors.Is(err, want) {
				t.Errorf("a read that waits while %s: %v, want %v", what, err, want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		go head(ctx)
		synctest.Wait()
		cancel()
		want("its context ends", context.Canceled)

		go head(t.Context())
		synctest.Wait()
		store.readers.give(taken[0])
		want("a connection comes back", nil)

		_, err := store.readers.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		go head(t.Context())
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- store.Close() }()
		want("the store closes", journal.ErrClosed)
		for _, r := range taken {
			store.readers.give(r)
		}
		if err := <-closed; err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}
