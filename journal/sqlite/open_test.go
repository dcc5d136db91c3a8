package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-run/parley/journal"
)

// openAt opens a store that is closed at the end of the test.
func openAt(t *testing.T, path string, config Config) *Store {
	t.Helper()
	store, err := Open(t.Context(), path, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func journalPath(t *testing.T) string { return filepath.Join(t.TempDir(), "journal.db") }

func fact(stream string, expect journal.Seq) journal.Append {
	return journal.Append{Stream: stream, Expect: expect, Events: []journal.Event{{Kind: "FACT"}}}
}

// wantHead compares where a stream ends.
func wantHead(t *testing.T, s *Store, stream string, want journal.Seq) {
	t.Helper()
	if got, _, err := s.HeadOf(t.Context(), stream); err != nil || got != want {
		t.Errorf("HeadOf(%q) = %d, %v, want %d", stream, got, err, want)
	}
}

// wantRefused opens a file that has to be refused with one line that names it.
func wantRefused(t *testing.T, path, because string) {
	t.Helper()
	store, err := Open(t.Context(), path, Config{})
	if err == nil {
		store.Close()
		t.Fatalf("Open(%q): no error, want one of %q", path, because)
	}
	text := err.Error()
	if !strings.HasPrefix(text, `open journal "`+path+`": `) || !strings.Contains(text, because) || strings.Contains(text, "\n") {
		t.Errorf("Open: %q, want one line that begins with the path and says %q", text, because)
	}
}

// The file and those beside it are readable by their owner only, whatever the
// umask.
func TestMode(t *testing.T) {
	path := journalPath(t)
	store := openAt(t, path, Config{})
	if err := store.Append(t.Context(), fact("s", 0)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("mode of %s is %o, want 600", filepath.Base(name), got)
		}
	}
}

// Every commit is synced: the connection that writes says so itself.
func TestSynchronous(t *testing.T) {
	store := openAt(t, journalPath(t), Config{})
	level, err := number(store.writer.conn, `pragma synchronous`)
	if err != nil || level != 2 {
		t.Errorf("synchronous is %d, %v, want 2 (FULL)", level, err)
	}
}

// A path may hold what means something in a URI.
func TestPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?mode=memory&c%20#d.db")
	if err := openAt(t, path, Config{}).Append(t.Context(), fact("s", 0)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(path))
	wantHead(t, openAt(t, filepath.Base(path), Config{}), "s", 1)
}

func TestOpenWithoutFolder(t *testing.T) {
	wantRefused(t, filepath.Join(t.TempDir(), "none", "journal.db"), "no such file or directory")
}

func TestOpenFolder(t *testing.T) {
	wantRefused(t, t.TempDir(), "unable to open database file")
}

func TestOpenWithContextDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, journalPath(t), Config{}); err == nil {
		t.Error("Open with a cancelled context: no error")
	}
}

// A journal that a newer build has migrated is refused, and left as it is.
func TestNewerSchema(t *testing.T) {
	path := journalPath(t)
	openAt(t, path, Config{}).Close()
	execute(t, path, `insert into goose_db_version (version_id, is_applied) values (99, true)`)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wantRefused(t, path, "its schema has version 99, and this build of Parley knows versions up to 1: use a newer build")
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the refused file has changed, or %v", err)
	}
}

// A database of another program is refused, and left as it is.
func TestForeignDatabase(t *testing.T) {
	path := journalPath(t)
	execute(t, path, `create table theirs (x); pragma user_version = 7`)
	wantRefused(t, path, "no journal of Parley")
	execute(t, path, `drop table theirs; pragma application_id = 12345`)
	wantRefused(t, path, "no journal of Parley")
}

// An empty file, as a crash right after its creation leaves it, is an empty
// journal.
func TestEmptyFile(t *testing.T) {
	path := journalPath(t)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantHead(t, openAt(t, path, Config{}), "s", 0)
}

// A file that is damaged, or no database at all, is refused.
func TestDamagedFile(t *testing.T) {
	path := journalPath(t)
	store := openAt(t, path, Config{})
	for i := range 200 {
		part := fact("s", journal.Seq(i))
		part.Events[0].Data = []byte(`"` + strings.Repeat("x", 500) + `"`)
		if err := store.Append(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	garbage := func(from, to int) []byte {
		damaged := bytes.Clone(whole)
		for i := from; i < to; i++ {
			damaged[i] = byte(i*7 + 1)
		}
		return damaged
	}
	for name, content := range map[string][]byte{
		"text":              []byte("Dear diary,\ntoday …\n"),
		"long text":         bytes.Repeat([]byte("Dear diary,\ntoday …\n"), 1000),
		"cut in half":       whole[:len(whole)/2],
		"cut in a page":     whole[:len(whole)-100],
		"header":            garbage(0, 100),
		"first page":        garbage(100, 4096),
		"all but the first": garbage(4096, len(whole)),
	} {
		t.Run(name, func(t *testing.T) {
			path := journalPath(t)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			wantRefused(t, path, "the file is damaged, or not a SQLite database")
		})
	}
}

// execute runs SQL on a file behind the back of the store.
func execute(t *testing.T, path, script string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), script); err != nil {
		t.Fatal(err)
	}
}
