package sqlite

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-run/parley/journal"
)

// The hook is told of each commit with what shares it, and of none that failed;
// a hook that panics costs no append.
func TestOnCommit(t *testing.T) {
	path := journalPath(t)
	synctest.Test(t, func(t *testing.T) {
		var told []Commit
		store := openAt(t, path, Config{OnCommit: func(c Commit) {
			told = append(told, c)
			panic("hook")
		}})
		defer store.Close()
		g := hold(store)
		type group = []journal.Append
		pile(t, store, g, group{fact("s", 0)}, group{fact("s", 0)}, group{fact("s", 1), fact("t", 0)})
		store.writer.beforeCommit = func() error { return errors.New("disk on fire") }
		for range 2 {
			if err := store.Append(t.Context(), fact("s", 2)); !errors.Is(err, journal.ErrPoisoned) {
				t.Errorf("Append to a failing disk = %v, want ErrPoisoned", err)
			}
		}
		want := []Commit{{Appends: 1, Events: 1}, {Appends: 2, Events: 3, Conflicts: 1}}
		if diff := cmp.Diff(want, told, cmpopts.IgnoreFields(Commit{}, "Took")); diff != "" {
			t.Errorf("told of (-want +got):\n%s", diff)
		}
	})
}

// What a commit took is measured around its transaction.
func TestCommitTook(t *testing.T) {
	path := journalPath(t)
	synctest.Test(t, func(t *testing.T) {
		var took time.Duration
		store := openAt(t, path, Config{OnCommit: func(c Commit) { took = c.Took }})
		store.writer.beforeCommit = func() error {
			<-time.After(time.Second) // virtual
			return nil
		}
		if err := store.Append(t.Context(), fact("s", 0)); err != nil {
			t.Fatal(err)
		}
		store.Close() // behind it the hook has returned
		if took != time.Second {
			t.Errorf("the commit took %v, want 1s", took)
		}
	})
}
