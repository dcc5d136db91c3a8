package datadir_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/server/datadir"
)

// A token is known again by a hash; its secret lies nowhere.
func TestCreateToken(t *testing.T) {
	dir := open(t)
	owner := identity.Identity{Tenant: identity.Some("acme"), Actor: "ann", OnBehalfOf: identity.Some("bob")}
	token, secret, err := dir.CreateToken(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^parley_[A-Za-z0-9_-]{43}$`).MatchString(secret.Reveal()) {
		t.Errorf("the secret is not of its form")
	}
	if got, err := dir.Keyring().Find(datadir.KindToken, secret.Reveal()); err != nil || got != token {
		t.Errorf("Find(secret) = %+v, %v, want %+v", got, err, token)
	}
	tokens, err := dir.Tokens()
	if err != nil || len(tokens) != 1 || tokens[0] != token {
		t.Errorf("Tokens() = %+v, %v, want %+v", tokens, err, token)
	}
	if strings.Contains(read(t, dir, "tokens"), secret.Reveal()[7:]) {
		t.Errorf("the secret lies in the tokens file")
	}
}

// C-2.5, C-2.10, C-34.2: nobody, and the server's own actors, get no token;
// neither do names that would be stored as others.
func TestCreateTokenForNobody(t *testing.T) {
	dir := open(t)
	for _, owner := range []identity.Identity{
		{},
		{Tenant: identity.Some("acme")},
		{Actor: strings.Repeat("x", 257)},
		{Actor: "\xff"},
		{Tenant: identity.Some("acme\xff"), Actor: "ann"},
		{Actor: "ann", OnBehalfOf: identity.Some("\xc3")},
		{Actor: "parley:service"},
		{Tenant: identity.Some("acme"), Actor: "parley:service"},
	} {
		if _, _, err := dir.CreateToken(t.Context(), owner); err == nil {
			t.Errorf("CreateToken(%+v) made one", owner)
		}
	}
	if _, err := os.Stat(filepath.Join(dir.Path(), "tokens")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refusal has written a tokens file")
	}
}

// Changes at once, in this process or another, all count.
func TestCreateTokensAtOnce(t *testing.T) {
	dir := open(t)
	var all sync.WaitGroup
	const n = 20
	for range n {
		all.Go(func() {
			if _, _, err := dir.CreateToken(t.Context(), me); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	tokens, err := dir.Tokens()
	if err != nil || len(tokens) != n {
		t.Fatalf("Tokens() = %d, %v, want %d", len(tokens), err, n)
	}
	ids := map[string]bool{}
	for _, token := range tokens {
		ids[token.ID] = true
	}
	if len(ids) != n {
		t.Errorf("%d ids for %d tokens", len(ids), n)
	}
}

// C-31.8: a keyring follows what is made and revoked beside it.
func TestKeyringFollows(t *testing.T) {
	dir := open(t)
	ring := dir.Keyring()
	check := func(when string, secret identity.Secret, want bool) {
		t.Helper()
		got, err := ring.Find(datadir.KindToken, secret.Reveal())
		if want && (err != nil || got.Identity != me) {
			t.Errorf("%s: Find = %+v, %v, want %+v", when, got.Identity, err, me)
		}
		if !want && !errors.Is(err, datadir.ErrNoToken) {
			t.Errorf("%s: Find = %+v, %v, want ErrNoToken", when, got.Identity, err)
		}
	}
	check("no file", identity.NewSecret("parley_"+strings.Repeat("x", 43)), false)
	first, a, err := dir.CreateToken(t.Context(), me)
	if err != nil {
		t.Fatal(err)
	}
	check("made", a, true)
	_, b, err := dir.CreateToken(t.Context(), me)
	if err != nil {
		t.Fatal(err)
	}
	check("made second", b, true)
	if err := dir.RevokeToken(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	check("revoked", a, false)
	check("the other", b, true)
	if err := dir.RevokeToken(t.Context(), first.ID); !errors.Is(err, datadir.ErrNoToken) {
		t.Errorf("RevokeToken again = %v, want ErrNoToken", err)
	}
	whole := read(t, dir, "tokens")
	write(t, dir, "tokens", "") // in place, as an editor may
	check("emptied by hand", b, false)
	write(t, dir, "tokens", whole)
	check("filled by hand", b, true)
	if err := os.Remove(filepath.Join(dir.Path(), "tokens")); err != nil {
		t.Fatal(err)
	}
	check("file gone", b, false)
}

// What does not look like a token is none, whatever its length.
func TestFindNoToken(t *testing.T) {
	dir := open(t)
	_, secret, err := dir.CreateToken(t.Context(), me)
	if err != nil {
		t.Fatal(err)
	}
	ring := dir.Keyring()
	good := secret.Reveal()
	for _, text := range []string{"", "parley_", good + "x", good[:49], " " + good, good + "\n", strings.ToUpper(good), strings.Repeat(good, 1<<16)} {
		if _, err := ring.Find(datadir.KindToken, text); !errors.Is(err, datadir.ErrNoToken) {
			t.Errorf("Find(%.60q) = %v, want ErrNoToken", text, err)
		}
	}
}

// C-31.9: tokens that cannot be read admit nobody, and nothing is written over
// them.
func TestDamagedTokens(t *testing.T) {
	dir := open(t)
	_, secret, err := dir.CreateToken(t.Context(), me)
	if err != nil {
		t.Fatal(err)
	}
	ring := dir.Keyring()
	whole := read(t, dir, "tokens")
	for _, line := range []string{
		"x", "{}", `{"id":"1"}`, "null", "[]", strings.Replace(whole, `"id"`, `"idd"`, 1),
		strings.Replace(whole, `"me"`, `""`, 1), strings.Replace(whole, `"me"`, `"parley:service"`, 1),
		strings.Replace(whole, `{`, `{"kind":"key",`, 1), strings.Replace(whole, `{`, `{"kind":"session",`, 1),
		strings.Replace(whole, `{`, `{"kind":"link",`, 1), strings.Replace(whole, `{`, `{"parent":"0123456789",`, 1),
	} {
		damaged := whole + line + "\n"
		write(t, dir, "tokens", damaged)
		if _, err := ring.Find(datadir.KindToken, secret.Reveal()); err == nil || errors.Is(err, datadir.ErrNoToken) {
			t.Errorf("after line %q: Find = %v, want an error of the file", line, err)
		}
		_, _, err := dir.CreateToken(t.Context(), me)
		if err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("after line %q: CreateToken = %v, want an error with line 2", line, err)
		}
		if read(t, dir, "tokens") != damaged {
			t.Errorf("after line %q: the file was changed", line)
		}
	}
	write(t, dir, "tokens", whole)
	if _, err := ring.Find(datadir.KindToken, secret.Reveal()); err != nil {
		t.Errorf("mended: Find: %v", err)
	}
}

func TestReadTokenErrors(t *testing.T) {
	dir := open(t)
	if _, err := datadir.ReadToken(dir.OwnTokenFile()); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "token create") {
		t.Errorf("ReadToken = %v, want ErrNotExist and what to do", err)
	}
	write(t, dir, "me.token", "parley_short\n")
	if _, err := datadir.ReadToken(dir.OwnTokenFile()); err == nil || strings.Contains(err.Error(), "short") {
		t.Errorf("ReadToken = %v, want an error that does not repeat the file", err)
	}
}
