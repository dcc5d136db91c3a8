package datadir_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-run/parley/server/datadir"
)

func keyOf(b byte, size int) string {
	return base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{b}, size))
}

// C-11.4, C-41: the first key signs, the others verify; a wrong one is an error
// that says where and repeats nothing (C-41.3).
func TestKeys(t *testing.T) {
	good, other := keyOf(0xfb, 32), keyOf(2, 32)
	tests := map[string]struct {
		file string
		want []byte // the first byte of each key
		line string // in the error
	}{
		"one":                {good + "\n", []byte{0xfb}, ""},
		"one, no line end":   {good, []byte{0xfb}, ""},
		"two":                {good + "\n" + other + "\n", []byte{0xfb, 2}, ""},
		"lines of windows":   {"\r\n" + good + "\r\n\r\n" + other, []byte{0xfb, 2}, ""},
		"too short":          {keyOf(1, 31) + "\n", nil, "line 1: 31 bytes"},
		"too long":           {good + "\n" + keyOf(1, 33) + "\n", nil, "line 2: 33 bytes"},
		"no base64url":       {strings.ReplaceAll(good, "-", "+"), nil, "line 1: no base64url"},
		"padding":            {good + "=\n", nil, "line 1: no base64url"},
		"empty":              {"", nil, "line 1: no key"},
		"bits of no meaning": {good[:42] + "9", nil, "line 1: no base64url"},
		"far too many":       {strings.Repeat(good+"\n", 17), nil, "line 17: more than 16"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := open(t)
			write(t, dir, "key", tt.file)
			keys, err := dir.Keys()
			var got []byte
			for _, key := range keys {
				got = append(got, key[0])
				if len(key) != 32 {
					t.Errorf("a key of %d bytes", len(key))
				}
			}
			if !bytes.Equal(got, tt.want) {
				t.Errorf("Keys() begin with %v, want %v", got, tt.want)
			}
			if tt.line == "" {
				if err != nil {
					t.Errorf("Keys(): %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.line) || !strings.Contains(err.Error(), filepath.Join(dir.Path(), "key")) {
				t.Fatalf("Keys() = %v, want the path and %q", err, tt.line)
			}
			if line := strings.TrimSpace(tt.file); line != "" && strings.Contains(err.Error(), line[:16]) {
				t.Errorf("Keys() = %v, which repeats the key", err)
			}
		})
	}
	if _, err := open(t).Keys(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Keys() of a new directory = %v, want ErrNotExist", err)
	}
}

// A first start makes keys and a token; a second one changes nothing.
func TestPrepare(t *testing.T) {
	dir := open(t)
	l := lock(t, dir)
	if first, err := l.Prepare(me); !first || err != nil {
		t.Fatalf("Prepare on a new directory = %t, %v", first, err)
	}
	keys, err := dir.Keys()
	if err != nil || len(keys) != 1 {
		t.Fatalf("Keys() = %d keys, %v", len(keys), err)
	}
	checkOwn(t, dir)
	before := read(t, dir, "key") + read(t, dir, "tokens") + read(t, dir, "me.token")
	if first, err := l.Prepare(me); first || err != nil {
		t.Fatalf("Prepare again = %t, %v", first, err)
	}
	if after := read(t, dir, "key") + read(t, dir, "tokens") + read(t, dir, "me.token"); after != before {
		t.Errorf("Prepare again has changed the files")
	}
}

// checkOwn wants the directory's own token to be good, and no other one there.
func checkOwn(t *testing.T, dir datadir.Dir) {
	t.Helper()
	secret, err := datadir.ReadToken(dir.OwnTokenFile())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := dir.Keyring().Find(datadir.KindToken, secret.Reveal()); got.Identity != me || err != nil {
		t.Errorf("Principal of the own token = %+v, %v, want %+v", got.Identity, err, me)
	}
	if tokens, err := dir.Tokens(); len(tokens) != 1 || err != nil {
		t.Errorf("Tokens() = %+v, %v, want one", tokens, err)
	}
}

// A crash at any point of the first start leaves the next one to finish it.
func TestPrepareAfterCrash(t *testing.T) {
	whole := open(t)
	if _, err := lock(t, whole).Prepare(me); err != nil {
		t.Fatal(err)
	}
	for written := range 3 {
		dir := open(t)
		for _, name := range []string{"me.token", "tokens"}[:written] {
			write(t, dir, name, read(t, whole, name))
		}
		if first, err := lock(t, dir).Prepare(me); !first || err != nil {
			t.Fatalf("Prepare after %d writes = %t, %v", written, first, err)
		}
		if _, err := dir.Keys(); err != nil {
			t.Errorf("Keys() after %d writes: %v", written, err)
		}
		checkOwn(t, dir)
	}
}
