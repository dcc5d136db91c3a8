package datadir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/server/datadir"
)

var me = identity.Identity{Actor: "me"}

func open(t *testing.T) datadir.Dir {
	t.Helper()
	dir, err := datadir.Open(filepath.Join(t.TempDir(), "deep", "data"))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func lock(t *testing.T, dir datadir.Dir) *datadir.Lock {
	t.Helper()
	lock, err := dir.Lock()
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func write(t *testing.T, dir datadir.Dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir.Path(), name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir datadir.Dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir.Path(), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The default place is the user's own; without a home it is one clear error.
func TestDefault(t *testing.T) {
	tests := map[string]struct{ xdg, home, want string }{
		"XDG":          {"/data", "/home/ann", "/data/parley"},
		"home":         {"", "/home/ann", "/home/ann/.local/share/parley"},
		"relative XDG": {"data", "/home/ann", "/home/ann/.local/share/parley"},
		"neither":      {"", "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_DATA_HOME", tt.xdg)
			t.Setenv("HOME", tt.home)
			got, err := datadir.Default()
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("Default() = %q, %v, want %q", got, err, tt.want)
			}
			if err != nil && !strings.Contains(err.Error(), "--data") {
				t.Errorf("Default() = %v, which does not say what to do", err)
			}
		})
	}
}

// A place that cannot be a directory, for root too: something is in its way.
func TestOpenInTheWay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "below")} {
		_, err := datadir.Open(path)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "--data") {
			t.Errorf("Open(%q) = %v, want an error with the path and the flag", path, err)
		}
	}
}

func TestExisting(t *testing.T) {
	dir := open(t)
	if _, err := datadir.Existing(dir.Path()); err == nil {
		t.Errorf("Existing on a directory without a database gives no error")
	}
	write(t, dir, "parley.db", "")
	if got, err := datadir.Existing(dir.Path()); got != dir || err != nil {
		t.Errorf("Existing(%q) = %v, %v, want %v", dir.Path(), got, err, dir)
	}
}

// Nobody but the user may read what lies there.
func TestModes(t *testing.T) {
	dir := open(t)
	l := lock(t, dir)
	if _, err := l.Prepare(me); err != nil {
		t.Fatal(err)
	}
	if err := l.SetAddress("http://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	want := map[string]os.FileMode{
		".": 0o700 | os.ModeDir, "lock": 0o600, "address": 0o600,
		"key": 0o600, "tokens": 0o600, "tokens.lock": 0o600, "me.token": 0o600,
	}
	for name, mode := range want {
		info, err := os.Stat(filepath.Join(dir.Path(), name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != mode {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), mode)
		}
	}
	files, err := os.ReadDir(dir.Path())
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(want)-1 {
		t.Errorf("the directory holds %v, want the files of %v and no more", files, want)
	}
}
