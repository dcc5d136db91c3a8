package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/sqlite"
)

func open(t testing.TB, path string) journal.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestContract(t *testing.T) {
	journaltest.Run(t, func(t *testing.T) journal.Store {
		return open(t, filepath.Join(t.TempDir(), "journal.db"))
	})
}

func TestDurable(t *testing.T) {
	journaltest.RunDurable(t, func(t *testing.T, place string) journal.Store {
		return open(t, filepath.Join(place, "journal.db"))
	})
}
