// Package datadir is the directory in which one Parley server keeps everything
// that is its own: the database, the signing keys, the tokens and the address
// at which it can be met.
//
// Call [Open], then [Dir.Lock] before anything but tokens is read or written:
// who holds the lock is the one server of the directory. Tokens have a lock of
// their own, so that they can be made and revoked beside a running server.
//
// Every file is written whole, by rename, with mode 0600; the directory has
// mode 0700. No error repeats a key or a token.
package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// ConfigName is the name of the configuration file in a data directory.
const ConfigName = "parley.toml"

// maxFileBytes is the largest file that is read from the directory, the
// database aside. A token takes some 200 bytes.
const maxFileBytes = 16 << 20

// Dir is a data directory. Make one with [Open].
type Dir struct{ path string }

// Default is where the data of the user's own server lies:
// $XDG_DATA_HOME/parley, or ~/.local/share/parley.
func Default() (string, error) {
	if base := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "parley"), nil
	}
	home := os.Getenv("HOME")
	if home == "" {
		return "", errors.New("no data directory: neither HOME nor XDG_DATA_HOME is set; name one with --data DIR")
	}
	return filepath.Join(home, ".local", "share", "parley"), nil
}

// Open returns the data directory at path, which it makes where there is none.
func Open(path string) (Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Dir{}, fmt.Errorf("data directory: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return Dir{}, fmt.Errorf("data directory %s: %w; name another with --data DIR", path, cause(err))
	}
	return Dir{path: path}, nil
}

// Existing returns the data directory at path, and an error where there is
// none or it holds no database yet.
func Existing(path string) (Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Dir{}, fmt.Errorf("data directory: %w", err)
	}
	dir := Dir{path: path}
	if _, err := os.Stat(dir.Database()); err != nil {
		return Dir{}, fmt.Errorf("data directory %s: %w; name another with --data DIR", path, err)
	}
	return dir, nil
}

// Path is the absolute path of the directory.
func (d Dir) Path() string { return d.path }

// Database is the path of the journal.
func (d Dir) Database() string { return d.file("parley.db") }

func (d Dir) file(name string) string { return filepath.Join(d.path, name) }

// read returns the content of a file of the directory, an error that wraps
// [os.ErrNotExist] where there is none.
func (d Dir) read(name string) ([]byte, error) {
	file, err := os.Open(d.file(name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAll(file)
}

// readAll reads a whole file, but no huge one.
func readAll(file *os.File) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("%s is larger than %d bytes", file.Name(), maxFileBytes)
	}
	return data, nil
}

// write replaces a file of the directory: after a crash it holds the old
// content or the new one, and the new one for good once write has returned.
func (d Dir) write(name string, data []byte) error {
	if err := renameio.WriteFile(d.file(name), data, 0o600, renameio.WithStaticPermissions(0o600)); err != nil {
		return err
	}
	folder, err := os.Open(d.path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync() // the rename itself
}

// cause is the part of a path error that its caller does not say itself.
func cause(err error) error {
	if pathErr, ok := errors.AsType[*os.PathError](err); ok && pathErr.Err != nil {
		return pathErr.Err
	}
	return err
}
