package datadir

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"

	"github.com/parley-run/parley/identity"
)

// KeyBytes is the length of a signing key (C-11.4).
const KeyBytes = 32

// maxKeys is how many keys a key file may hold; a rotation needs two.
const maxKeys = 16

// Keys returns the signing keys: the first signs, the others only verify
// (C-41.1). The error names the file and the line, never what stands there.
//
// Errors: one that wraps [os.ErrNotExist] where the directory has no keys yet.
func (d Dir) Keys() ([][]byte, error) {
	data, err := d.read("key")
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	var keys [][]byte
	for i, line := range bytes.Split(data, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		key, err := base64.RawURLEncoding.Strict().DecodeString(string(line))
		switch {
		case err != nil:
			return nil, d.keyError(i+1, "no base64url text without padding")
		case len(key) != KeyBytes:
			return nil, d.keyError(i+1, fmt.Sprintf("%d bytes", len(key)))
		case len(keys) == maxKeys:
			return nil, d.keyError(i+1, fmt.Sprintf("more than %d keys", maxKeys))
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, d.keyError(1, "no key")
	}
	return keys, nil
}

func (d Dir) keyError(line int, what string) error {
	return fmt.Errorf("key file %s, line %d: %s where a key of %d bytes in base64url is expected; restore it from a backup",
		d.file("key"), line, what, KeyBytes)
}

// Prepare makes the keys of a new directory and a token for the identity, and
// reports whether it did. A directory that has keys is left as it is. One that
// has a journal and no keys is refused: a new key would make every message that
// waits in it a forgery. So the keys are made before the journal.
func (l *Lock) Prepare(owner identity.Identity) (first bool, err error) {
	if _, err := os.Stat(l.dir.file("key")); err == nil {
		return false, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("key file: %w", cause(err))
	}
	if info, err := os.Stat(l.dir.Database()); err == nil && info.Size() > 0 {
		return false, fmt.Errorf("key file %s is missing beside a journal: restore it from a backup, or move %s away to begin anew",
			l.dir.file("key"), l.dir.Database())
	}
	// The keys come last: a crash before them makes the next start the first.
	if err := l.dir.prepareOwnToken(owner); err != nil {
		return false, err
	}
	key := make([]byte, KeyBytes)
	rand.Read(key)
	if err := l.dir.write("key", []byte(base64.RawURLEncoding.EncodeToString(key)+"\n")); err != nil {
		return false, fmt.Errorf("write key file: %w", err)
	}
	return true, nil
}
