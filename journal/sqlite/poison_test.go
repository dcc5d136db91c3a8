package sqlite

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/journal"
)

// wantPoisoned checks what a poisoned store still does: no append, whatever it
// is, and every read. The stream "s" had one event before.
func wantPoisoned(t *testing.T, store *Store) {
	t.Helper()
	for _, part := range []journal.Append{fact("s", 1), fact("other", 0), fact("s", journal.AtEnd), {Stream: "s", Expect: 1}} {
		if err := store.Append(t.Context(), part); !errors.Is(err, journal.ErrPoisoned) {
			t.Errorf("Append(%+v) after a failed write: %v, want ErrPoisoned", part, err)
		}
	}
	events, err := store.ReadRange(t.Context(), "s", 0, 10, journal.Forward)
	if err != nil || len(events) != 1 {
		t.Errorf("ReadRange after a failed write: %d events, %v, want the 1 that was acknowledged", len(events), err)
	}
	wantHead(t, store, "s", 1)
	if _, err := store.List(t.Context(), "x", "", "", 1, journal.Forward); err != nil {
		t.Errorf("List after a failed write: %v", err)
	}
}

// A commit that fails fails its whole group, conflicts included, with the cause
// in the error; nothing of it is notified; and once the file is opened again the
// journal goes on from what was acknowledged.
func TestPoison(t *testing.T) {
	path := journalPath(t)
	errDisk := errors.New("disk on fire")
	synctest.Test(t, func(t *testing.T) {
		store := openAt(t, path, Config{})
		defer store.Close()
		if err := store.Append(t.Context(), fact("s", 0)); err != nil {
			t.Fatal(err)
		}
		wake, err := store.Subscribe(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		g := hold(store)
		held := store.writer.beforeCommit
		store.writer.beforeCommit = func() error {
			if err := held(); err != nil || g.commits == 1 {
				return err
			}
			return errDisk
		}
		for i, err := range pile(t, store, g, []journal.Append{fact("s", 1)}, []journal.Append{fact("s", 1)}, []journal.Append{fact("t", 0)}) {
			if !errors.Is(err, journal.ErrPoisoned) || !errors.Is(err, errDisk) {
				t.Errorf("append %d of a group whose commit failed: %v, want ErrPoisoned and its cause", i, err)
			}
		}
		wantPoisoned(t, store)
		select {
		case <-wake:
			t.Error("a subscription was notified of what was not committed")
		default:
		}
		// It does not sit on the file either.
		other := openAt(t, path, Config{})
		defer other.Close()
		if err := other.Append(t.Context(), fact("other", 0)); err != nil {
			t.Errorf("Append of another store beside the poisoned one: %v", err)
		}
	})
	store := openAt(t, path, Config{})
	wantHead(t, store, "first", 1)
	wantHead(t, store, "t", 0)
	if err := store.Append(t.Context(), fact("s", 1)); err != nil {
		t.Errorf("Append after opening again: %v", err)
	}
}
