package datadir

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/parley-run/parley/identity"
)

// Keyring tells whose token a secret is, and follows the tokens file as it
// changes. Make one with [Dir.Keyring]; it may be used by any number of
// goroutines.
type Keyring struct {
	dir Dir

	mu     sync.Mutex
	file   os.FileInfo // as it was read last; nil where there was none
	owners map[string]identity.Identity
}

// Keyring returns a keyring for the directory's tokens.
func (d Dir) Keyring() *Keyring { return &Keyring{dir: d} }

// Principal returns the principal for whom the secret stands. It has no
// credential: the token opens the server's door, and nothing behind it.
//
// Errors: [ErrNoToken]; others mean that the tokens cannot be read, which
// admits nobody (C-31.9).
func (k *Keyring) Principal(secret string) (identity.Principal, error) {
	if !tokenForm.MatchString(secret) { // whatever its length, it is looked at no further
		return identity.Principal{}, ErrNoToken
	}
	owners, err := k.current()
	if err != nil {
		return identity.Principal{}, err
	}
	// The look-up compares hashes of 32 random bytes: its time tells nothing that
	// helps to find them.
	owner, ok := owners[hashOf(secret)]
	if !ok {
		return identity.Principal{}, ErrNoToken
	}
	return identity.Principal{Identity: owner}, nil
}

// current reads the tokens again if their file is another one than last time;
// it is only ever replaced.
func (k *Keyring) current() (map[string]identity.Identity, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	file, err := os.Stat(k.dir.file("tokens"))
	if errors.Is(err, os.ErrNotExist) {
		k.file, k.owners = nil, nil
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	if k.file == nil || !os.SameFile(k.file, file) || !k.file.ModTime().Equal(file.ModTime()) || k.file.Size() != file.Size() {
		// What is read now is this file or a newer one, which the next look then
		// finds to be another.
		k.file = file
		if k.owners, err = k.read(); err != nil {
			k.file = nil // look again next time
			return nil, err
		}
	}
	return k.owners, nil
}

func (k *Keyring) read() (map[string]identity.Identity, error) {
	tokens, err := k.dir.Tokens()
	if err != nil {
		return nil, err
	}
	owners := make(map[string]identity.Identity, len(tokens))
	for _, token := range tokens {
		owners[token.SHA256] = token.Identity
	}
	return owners, nil
}
