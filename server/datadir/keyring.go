package datadir

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Keyring tells whose token a secret is, and follows the tokens file as it
// changes. Make one with [Dir.Keyring]; it may be used by any number of
// goroutines.
type Keyring struct {
	dir Dir

	mu     sync.Mutex
	file   os.FileInfo // as it was read last; nil where there was none
	tokens known
}

// known are tokens by the hashes of their secrets, and by their ids.
type known struct{ byHash, byID map[string]Token }

// Keyring returns a keyring for the directory's tokens.
func (d Dir) Keyring() *Keyring { return &Keyring{dir: d} }

// Find returns the token, link or session of a secret. It opens the server's
// door, and nothing behind it.
//
// Errors: [ErrNoToken]; others mean that the tokens cannot be read, which
// admits nobody (C-31.9).
func (k *Keyring) Find(kind Kind, secret string) (Token, error) {
	if !secretForm.MatchString(secret) { // whatever its length, it is looked at no further
		return Token{}, ErrNoToken
	}
	tokens, err := k.current()
	if err != nil {
		return Token{}, err
	}
	// The look-up compares hashes of 32 random bytes: its time tells nothing that
	// helps to find them.
	token, ok := tokens.byHash[hashOf(secret)]
	now := time.Now()
	if !ok || token.Kind != kind || token.Over(now) {
		return Token{}, ErrNoToken
	}
	if token.Parent != "" {
		if parent := tokens.byID[token.Parent]; parent.ID == "" || parent.Kind != KindToken || parent.Over(now) {
			return Token{}, ErrNoToken
		}
	}
	return token, nil
}

// current reads the tokens again if their file is another one than last time;
// it is only ever replaced.
func (k *Keyring) current() (known, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	file, err := os.Stat(k.dir.file("tokens"))
	if errors.Is(err, os.ErrNotExist) {
		k.file, k.tokens = nil, known{}
		return known{}, nil
	}
	if err != nil {
		return known{}, fmt.Errorf("tokens: %w", err)
	}
	if k.file == nil || !os.SameFile(k.file, file) || !k.file.ModTime().Equal(file.ModTime()) || k.file.Size() != file.Size() {
		// What is read now is this file or a newer one, which the next look then
		// finds to be another.
		k.file = file
		if k.tokens, err = k.read(); err != nil {
			k.file = nil // look again next time
			return known{}, err
		}
	}
	return k.tokens, nil
}

func (k *Keyring) read() (known, error) {
	tokens, err := k.dir.Tokens()
	if err != nil {
		return known{}, err
	}
	all := known{byHash: make(map[string]Token, len(tokens)), byID: map[string]Token{}}
	for _, token := range tokens {
		all.byHash[token.SHA256] = token
		if token.Kind == KindToken {
			all.byID[token.ID] = token
		}
	}
	return all, nil
}
