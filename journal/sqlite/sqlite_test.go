package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/sqlite"
)

func open(t testing.TB, path string, config sqlite.Config) journal.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, config)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// The contract holds with the newest events in memory, and without them, so
// that every read of the suite goes to the file.
func TestContract(t *testing.T) {
	for name, config := range map[string]sqlite.Config{"memory": {}, "file": {Tails: -1}} {
		t.Run(name, func(t *testing.T) {
			journaltest.Run(t, func(t *testing.T) journal.Store {
				return open(t, filepath.Join(t.TempDir(), "journal.db"), config)
			})
		})
	}
}

func TestDurable(t *testing.T) {
	journaltest.RunDurable(t, func(t *testing.T, place string) journal.Store {
		return open(t, filepath.Join(place, "journal.db"), sqlite.Config{})
	})
}
