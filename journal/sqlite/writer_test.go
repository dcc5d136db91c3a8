package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/journal"
)

// gate holds the writer just before a commit.
type gate struct {
	commits int
	open    chan struct{} // the writer waits for one value each time
}

func hold(s *Store) *gate {
	g := &gate{open: make(chan struct{})}
	s.writer.beforeCommit = func() error {
		g.commits++
		<-g.open
		return nil
	}
	return g
}

// pile runs appends while the writer is held in a first commit, so that all of
// them fall into one group, in the order given. It returns their errors.
func pile(t *testing.T, s *Store, g *gate, appends ...[]journal.Append) []error {
	t.Helper()
	errs := make([]error, len(appends))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Append(t.Context(), fact("first", journal.AtEnd)); err != nil {
			t.Errorf("the append that holds the writer: %v", err)
		}
	})
	synctest.Wait()
	for i, batch := range appends {
		wg.Go(func() { errs[i] = s.Append(t.Context(), batch...) })
		synctest.Wait() // queued
	}
	close(g.open)
	wg.Wait()
	return errs
}

// Appends that wait at the same time share one commit; each sees those before
// it, and a conflict fails its own append and no other.
func TestGroup(t *testing.T) {
	path := journalPath(t)
	synctest.Test(t, func(t *testing.T) {
		store := openAt(t, path, Config{})
		defer store.Close()
		if err := store.Append(t.Context(), fact("old", 0)); err != nil {
			t.Fatal(err)
		}
		row := journal.Row{Space: "x", Key: "k"}
		g := hold(store)
		type group = []journal.Append
		errs := pile(t, store, g,
			group{fact("s", 0)},
			group{fact("s", 0)}, // conflict: the one before has taken it
			group{fact("s", 1), fact("t", 0)},
			group{fact("t", 1), fact("s", 1)}, // conflict in its second stream
			group{fact("t", 1)},               // so this fits
			group{{Stream: "s", Expect: 2, Rows: []journal.Row{row}}},
			group{{Stream: "s", Expect: 3, Rows: []journal.Row{{Space: "x", Key: "l"}}}}, // conflict
			group{fact("s", journal.AtEnd)},
			group{fact("s", 3)},
			group{fact("old", 0)}, // conflict with what is in the file
			group{fact("old", 1)},
		)
		for i, want := range []error{nil, journal.ErrConflict, nil, journal.ErrConflict, nil, nil, journal.ErrConflict, nil, nil, journal.ErrConflict, nil} {
			if !errors.Is(errs[i], want) {
				t.Errorf("append %d of the group: %v, want %v", i, errs[i], want)
			}
		}
		if g.commits != 2 {
			t.Errorf("%d commits, want 2: the one that was held and the group", g.commits)
		}
		for stream, want := range map[string]journal.Seq{"first": 1, "s": 4, "t": 2, "old": 2} {
			wantHead(t, store, stream, want)
		}
		rows, err := store.List(t.Context(), "x", "", "", 10, journal.Forward)
		if err != nil || len(rows) != 1 {
			t.Errorf("List: %v, %v, want the one row whose condition held", rows, err)
		}
	})
}

// A group is bounded by count and by bytes; what does not fit follows in the
// next one, in order.
func TestGroupBounds(t *testing.T) {
	for _, test := range []struct {
		name          string
		appends, size int
		commits       int // besides the one that is held
	}{
		{"count", 2*maxGroup + 1, 0, 3},
		{"bytes", 9, maxGroupBytes / 4, 3},
		{"one too large for any group", 2, maxGroupBytes + 1, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := journalPath(t)
			synctest.Test(t, func(t *testing.T) {
				store := openAt(t, path, Config{})
				defer store.Close()
				g := hold(store)
				var appends [][]journal.Append
				for i := range test.appends {
					part := fact("s", journal.Seq(i))
					if test.size > 0 {
						part.Events[0].Data = []byte(strings.Repeat("1", test.size))
					}
					appends = append(appends, []journal.Append{part})
				}
				for i, err := range pile(t, store, g, appends...) {
					if err != nil {
						t.Fatalf("append %d: %v", i, err)
					}
				}
				if got := g.commits - 1; got != test.commits {
					t.Errorf("%d commits, want %d", got, test.commits)
				}
			})
		})
	}
}

// An append that is queued ignores its context: it returns when its outcome is
// known, and that is the outcome.
func TestCancelAfterQueueing(t *testing.T) {
	path := journalPath(t)
	synctest.Test(t, func(t *testing.T) {
		store := openAt(t, path, Config{})
		defer store.Close()
		g := hold(store)
		ctx, cancel := context.WithCancel(t.Context())
		outcome := make(chan error, 2)
		for range 2 { // one in the commit, one behind it
			go func() { outcome <- store.Append(ctx, fact("s", journal.AtEnd)) }()
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		select {
		case err := <-outcome:
			t.Errorf("Append returned %v before its outcome was known", err)
		default:
		}
		close(g.open)
		for range 2 {
			if err := <-outcome; err != nil {
				t.Errorf("Append: %v, want success", err)
			}
		}
		wantHead(t, store, "s", 2)
	})
}

// Reads go on while a commit takes its time, and do not see it.
func TestReadsDoNotWait(t *testing.T) {
	path := journalPath(t)
	synctest.Test(t, func(t *testing.T) {
		store := openAt(t, path, Config{})
		defer store.Close()
		if err := store.Append(t.Context(), fact("s", 0)); err != nil {
			t.Fatal(err)
		}
		g := hold(store)
		done := make(chan error, 1)
		go func() { done <- store.Append(t.Context(), fact("s", 1)) }()
		synctest.Wait()
		for range 20 {
			events, err := store.ReadRange(t.Context(), "s", 0, 10, journal.Forward)
			if err != nil || len(events) != 1 {
				t.Errorf("ReadRange during a commit: %d events, %v, want 1", len(events), err)
			}
			wantHead(t, store, "s", 1)
			if _, err := store.List(t.Context(), "x", "", "", 1, journal.Forward); err != nil {
				t.Errorf("List during a commit: %v", err)
			}
		}
		close(g.open)
		if err := <-done; err != nil {
			t.Errorf("Append: %v", err)
		}
		wantHead(t, store, "s", 2)
	})
}

// Close waits for the appends that are queued, and refuses those that come
// later.
func TestCloseDrains(t *testing.T) {
	path := journalPath(t)
	synctest.Test(t, func(t *testing.T) {
		store := openAt(t, path, Config{})
		g := hold(store)
		errs := make(chan error, 3)
		for range 3 {
			go func() { errs <- store.Append(t.Context(), fact("s", journal.AtEnd)) }()
			synctest.Wait()
		}
		closed := make(chan error, 1)
		go func() { closed <- store.Close() }()
		synctest.Wait()
		if err := store.Append(t.Context(), fact("s", journal.AtEnd)); !errors.Is(err, journal.ErrClosed) {
			t.Errorf("Append during Close: %v, want ErrClosed", err)
		}
		close(g.open)
		for range 3 {
			if err := <-errs; err != nil {
				t.Errorf("an append queued before Close: %v", err)
			}
		}
		if err := <-closed; err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	wantHead(t, openAt(t, path, Config{}), "s", 3)
}

// Virtual time neither stands still nor runs because of the store.
func TestSynctest(t *testing.T) {
	path := journalPath(t)
	synctest.Test(t, func(t *testing.T) {
		store := openAt(t, path, Config{})
		defer store.Close()
		start := time.Now()
		wake, err := store.Subscribe(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Hour)
			if err := store.Append(t.Context(), fact("s", 0)); err != nil {
				t.Errorf("Append: %v", err)
			}
		}()
		<-wake
		wantHead(t, store, "s", 1)
		if got := time.Since(start); got != time.Hour {
			t.Errorf("%v have passed, want exactly 1h", got)
		}
	})
}

// However many streams are written, few heads are kept, and each expectation is
// still checked.
func TestHeadsAreBounded(t *testing.T) {
	const most, streams = 8, 50
	store := openAt(t, journalPath(t), Config{Heads: most})
	for seq := range journal.Seq(3) {
		for i := range streams {
			stream := fmt.Sprint(i)
			if err := store.Append(t.Context(), fact(stream, seq)); err != nil {
				t.Fatalf("Append(%q, %d): %v", stream, seq, err)
			}
			if err := store.Append(t.Context(), fact(stream, seq)); !errors.Is(err, journal.ErrConflict) {
				t.Fatalf("Append(%q, %d) again: %v, want ErrConflict", stream, seq, err)
			}
		}
	}
	if err := store.Close(); err != nil { // the writer is gone: its memory may be looked at
		t.Fatal(err)
	}
	if got := len(store.writer.heads.young) + len(store.writer.heads.old); got > most || got == 0 {
		t.Errorf("%d heads in memory, want at most %d", got, most)
	}
}

// Two stores on one file, which is against the advice, still cannot break the
// fence: heads in memory are not believed once somebody else has written.
func TestSecondWriter(t *testing.T) {
	path := journalPath(t)
	stores := []*Store{openAt(t, path, Config{}), openAt(t, path, Config{})}
	for seq := range journal.Seq(20) {
		writer, rival := stores[seq%2], stores[(seq+1)%2]
		if err := writer.Append(t.Context(), fact("s", seq)); err != nil {
			t.Fatalf("Append at %d: %v", seq, err)
		}
		err := rival.Append(t.Context(), journal.Append{Stream: "s", Expect: seq, Rows: []journal.Row{{Space: "x", Key: "k"}}})
		if !errors.Is(err, journal.ErrConflict) {
			t.Fatalf("the other store at %d: %v, want ErrConflict", seq, err)
		}
		for _, store := range stores { // each has asked the file by now
			events, err := store.ReadRange(t.Context(), "s", 0, 100, journal.Forward)
			if err != nil || len(events) != int(seq)+1 || events[seq].Seq != seq {
				t.Fatalf("ReadRange after the append at %d: %v, %v", seq, events, err)
			}
		}
	}
}
