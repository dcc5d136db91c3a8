package datadir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/parley-run/parley/identity"
)

// CreateToken makes a token for the identity and returns its secret, which is
// kept nowhere. It stands until it is revoked.
func (d Dir) CreateToken(ctx context.Context, owner identity.Identity) (Token, identity.Secret, error) {
	return d.create(ctx, KindToken, owner, time.Time{})
}

// CreateTokenFor is CreateToken with an end: the token stands for that long.
func (d Dir) CreateTokenFor(ctx context.Context, owner identity.Identity, life time.Duration) (Token, identity.Secret, error) {
	if life < time.Second {
		return Token{}, identity.Secret{}, errors.New("a token stands for a second at least")
	}
	return d.create(ctx, KindToken, owner, ending(life))
}

// ending is so long from now, in whole seconds.
func ending(life time.Duration) time.Time { return time.Now().UTC().Truncate(time.Second).Add(life) }

// create adds a record for the identity.
func (d Dir) create(ctx context.Context, kind Kind, owner identity.Identity, expires time.Time) (Token, identity.Secret, error) {
	if err := checkOwner(owner); err != nil {
		return Token{}, identity.Secret{}, err
	}
	secret := newSecret()
	token := newToken(kind, owner, secret)
	token.Expires = expires
	err := d.changeTokens(ctx, func(tokens []Token) ([]Token, error) { return append(tokens, token), nil })
	if err != nil {
		return Token{}, identity.Secret{}, err
	}
	return token, secret, nil
}

// RevokeToken ends a token, a link or a session, and the sessions that the token
// has opened. A running server refuses them from the next request on, and ends
// their streams at the next check (C-31.8).
//
// Errors: [ErrNoToken].
func (d Dir) RevokeToken(ctx context.Context, id string) error {
	return d.changeTokens(ctx, func(tokens []Token) ([]Token, error) {
		all := len(tokens)
		tokens = slices.DeleteFunc(tokens, func(t Token) bool { return t.ID == id || t.Parent != "" && t.Parent == id })
		if len(tokens) == all {
			return nil, fmt.Errorf("%w: %q", ErrNoToken, id)
		}
		return tokens, nil
	})
}

// ownToken is the file with the secret of the directory's own user.
const ownToken = "me.token"

// OwnTokenFile is the path of the token of the directory's own user.
func (d Dir) OwnTokenFile() string { return d.file(ownToken) }

// ReadToken reads the secret in a file.
func ReadToken(path string) (identity.Secret, error) {
	const remedy = "make one with: parley token create --data DIR --actor NAME > FILE"
	file, err := os.Open(path)
	if err != nil {
		return identity.Secret{}, fmt.Errorf("token file %s: %w; %s", path, cause(err), remedy)
	}
	defer file.Close()
	data, err := readAll(file)
	if err != nil {
		return identity.Secret{}, fmt.Errorf("token file %s: %w", path, cause(err))
	}
	secret := strings.TrimSpace(string(data))
	if !secretForm.MatchString(secret) {
		return identity.Secret{}, fmt.Errorf("token file %s: it holds no token; %s", path, remedy)
	}
	return identity.NewSecret(secret), nil
}

// prepareOwnToken makes the token of the directory's own user. The secret is
// written first: a crash after it leaves a file that holds no token yet, and
// the next start makes it one.
func (d Dir) prepareOwnToken(owner identity.Identity) error {
	secret, err := ReadToken(d.OwnTokenFile())
	if errors.Is(err, os.ErrNotExist) {
		secret = newSecret()
		err = d.write(ownToken, []byte(secret.Reveal()+"\n"))
	}
	if err != nil {
		return err
	}
	token := newToken(KindToken, owner, secret)
	return d.changeTokens(context.Background(), func(tokens []Token) ([]Token, error) {
		if slices.ContainsFunc(tokens, func(t Token) bool { return t.SHA256 == token.SHA256 }) {
			return tokens, nil
		}
		return append(tokens, token), nil
	})
}
