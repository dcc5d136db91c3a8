package datadir

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json/v2"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gofrs/flock"

	"github.com/parley-run/parley/identity"
)

const (
	// tokenWait is how long a change of the tokens waits for another one.
	tokenWait = 5 * time.Second
	// idBytes is the length of a token's id, which is no secret.
	idBytes = 5
)

// ServicePrefix begins the actors of the server's own services, such as
// parley:service.
const ServicePrefix = "parley:"

// ErrNoToken says that no token of that id, or with that secret, is known.
var ErrNoToken = errors.New("no such token")

// tokenForm is what the secret of a token looks like: a prefix that scanners
// of leaked secrets can find, and 32 random bytes.
var tokenForm = regexp.MustCompile(`^parley_[A-Za-z0-9_-]{43}$`)

// Token is what is kept of a token: whose it is, and a hash by which its
// secret is known again.
type Token struct {
	ID       string            `json:"id"`
	Identity identity.Identity `json:"identity"`
	Created  time.Time         `json:"created"`
	SHA256   string            `json:"sha256"` // of the secret, in lowercase hexadecimal
}

// CreateToken makes a token for the identity and returns its secret, which is
// kept nowhere.
func (d Dir) CreateToken(ctx context.Context, owner identity.Identity) (Token, identity.Secret, error) {
	if err := checkOwner(owner); err != nil {
		return Token{}, identity.Secret{}, err
	}
	secret := newSecret()
	token := newToken(owner, secret)
	err := d.changeTokens(ctx, func(tokens []Token) ([]Token, error) { return append(tokens, token), nil })
	return token, secret, err
}

// checkOwner refuses whom no token may stand for: identities that cannot act,
// and those of the server's own services (C-34.2).
func checkOwner(owner identity.Identity) error {
	if err := owner.Validate(); err != nil {
		return err
	}
	tenant, _ := owner.Tenant.Value()
	behalf, _ := owner.OnBehalfOf.Value()
	if !utf8.ValidString(owner.Actor) || !utf8.ValidString(tenant) || !utf8.ValidString(behalf) { // it would be stored as another name
		return errors.New("a name is not valid UTF-8")
	}
	if strings.HasPrefix(owner.Actor, ServicePrefix) {
		return fmt.Errorf("actors that begin with %q are the server's own", ServicePrefix)
	}
	return nil
}

func newSecret() identity.Secret {
	var raw [32]byte
	rand.Read(raw[:])
	return identity.NewSecret("parley_" + base64.RawURLEncoding.EncodeToString(raw[:]))
}

func newToken(owner identity.Identity, secret identity.Secret) Token {
	var id [idBytes]byte
	rand.Read(id[:])
	return Token{
		ID: hex.EncodeToString(id[:]), Identity: owner,
		Created: time.Now().UTC().Truncate(time.Second), SHA256: hashOf(secret.Reveal()),
	}
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// RevokeToken ends a token. A running server refuses it from the next request
// on, and ends the streams that it opened at their next check (C-31.8).
//
// Errors: [ErrNoToken].
func (d Dir) RevokeToken(ctx context.Context, id string) error {
	return d.changeTokens(ctx, func(tokens []Token) ([]Token, error) {
		left := slices.DeleteFunc(slices.Clone(tokens), func(t Token) bool { return t.ID == id })
		if len(left) == len(tokens) {
			return nil, fmt.Errorf("%w: %q", ErrNoToken, id)
		}
		return left, nil
	})
}

// Tokens lists the tokens, the oldest first.
func (d Dir) Tokens() ([]Token, error) {
	data, err := d.read("tokens")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	return d.parseTokens(data)
}

// parseTokens reads one token a line.
func (d Dir) parseTokens(data []byte) ([]Token, error) {
	var tokens []Token
	for i, line := range bytes.Split(data, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var token Token
		err := json.Unmarshal(line, &token, json.RejectUnknownMembers(true))
		if err != nil || token.ID == "" || len(token.SHA256) != sha256.Size*2 || checkOwner(token.Identity) != nil {
			return nil, fmt.Errorf("tokens file %s, line %d: no token; delete the line, or restore the file from a backup", d.file("tokens"), i+1)
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}

// changeTokens replaces the tokens under their own lock, so that two changes at
// once both count.
func (d Dir) changeTokens(ctx context.Context, change func([]Token) ([]Token, error)) error {
	ctx, cancel := context.WithTimeout(ctx, tokenWait)
	defer cancel()
	lock := flock.New(d.file("tokens.lock"), flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDWR))
	if _, err := lock.TryLockContext(ctx, lockPause); err != nil {
		return fmt.Errorf("lock tokens in %s: %w", d.path, err)
	}
	defer lock.Close()
	tokens, err := d.Tokens()
	if err != nil {
		return err
	}
	if tokens, err = change(tokens); err != nil {
		return err
	}
	var data []byte
	for _, token := range tokens {
		line, err := json.Marshal(token)
		if err != nil {
			return fmt.Errorf("encode token %s: %w", token.ID, err)
		}
		data = append(append(data, line...), '\n')
	}
	if err := d.write("tokens", data); err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	return nil
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
	if !tokenForm.MatchString(secret) {
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
	token := newToken(owner, secret)
	return d.changeTokens(context.Background(), func(tokens []Token) ([]Token, error) {
		if slices.ContainsFunc(tokens, func(t Token) bool { return t.SHA256 == token.SHA256 }) {
			return tokens, nil
		}
		return append(tokens, token), nil
	})
}
