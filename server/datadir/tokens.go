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
	// maxTokens is how many records the tokens file may hold (C-32.12).
	maxTokens = 10_000
)

// ServicePrefix begins the actors of the server's own services, such as
// parley:service.
const ServicePrefix = "parley:"

// ErrNoToken says that no token of that id, or with that secret, is known, or
// that it is over.
var ErrNoToken = errors.New("no such token")

// secretForm is what the secrets look like: a prefix that scanners of leaked
// secrets can find, and 32 random bytes.
var secretForm = regexp.MustCompile(`^parley_[A-Za-z0-9_-]{43}$`)

// Kind says what a secret is good for. A secret of one kind is never taken for
// one of another.
type Kind string

// The kinds of secrets.
const (
	KindToken   Kind = ""        // of a program, which sends it with each request
	KindLink    Kind = "link"    // for one person, once: it opens a session
	KindSession Kind = "session" // of a browser, in a cookie
)

// String names the kind.
func (k Kind) String() string {
	if k == KindToken {
		return "token"
	}
	return string(k)
}

// Token is what is kept of a token, a link or a session: whose it is, until
// when, and a hash by which its secret is known again.
type Token struct {
	Kind     Kind              `json:"kind,omitzero"`
	ID       string            `json:"id"`
	Identity identity.Identity `json:"identity"`
	Created  time.Time         `json:"created"`
	Expires  time.Time         `json:"expires,omitzero"` // zero: never
	Parent   string            `json:"parent,omitzero"`  // of a session: the token that opened it, and without which it ends
	SHA256   string            `json:"sha256"`           // of the secret, in lowercase hexadecimal
}

// Over reports whether the token has expired.
func (t Token) Over(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// check refuses a record that no version of the program has written.
func (t Token) check() error {
	mustEnd := t.Kind == KindLink || t.Kind == KindSession
	switch {
	case t.Kind != KindToken && !mustEnd, mustEnd && t.Expires.IsZero(), t.Parent != "" && t.Kind != KindSession:
		return errors.New("no kind of token")
	case t.ID == "", len(t.SHA256) != sha256.Size*2:
		return errors.New("no token")
	}
	return checkOwner(t.Identity)
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

func newToken(kind Kind, owner identity.Identity, secret identity.Secret) Token {
	var id [idBytes]byte
	rand.Read(id[:])
	return Token{
		Kind: kind, ID: hex.EncodeToString(id[:]), Identity: owner,
		Created: time.Now().UTC().Truncate(time.Second), SHA256: hashOf(secret.Reveal()),
	}
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Tokens lists tokens, links and sessions, the oldest first. Those that are over
// are among them until the next change.
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
		if err != nil || token.check() != nil {
			return nil, fmt.Errorf("tokens file %s, line %d: no token; delete the line, or restore the file from a backup", d.file("tokens"), i+1)
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}

// changeTokens replaces the tokens under their own lock, in one write, so that
// two changes at once both count. What is over leaves with each change.
func (d Dir) changeTokens(ctx context.Context, change func([]Token) ([]Token, error)) error {
	ctx, cancel := context.WithTimeout(ctx, tokenWait)
	defer cancel()
	lock := flock.New(d.file("tokens.lock"), flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDWR))
	if _, err := lock.TryLockContext(ctx, lockPause); err != nil {
		return fmt.Errorf("lock tokens in %s: %w", d.path, err)
	}
	defer lock.Close()
	before, err := d.Tokens()
	if err != nil {
		return err
	}
	before = standing(before, time.Now())
	tokens, err := change(slices.Clone(before))
	if err != nil {
		return err
	}
	if len(tokens) > maxTokens && len(tokens) > len(before) {
		return fmt.Errorf("%s is full: it holds %d tokens, links and sessions; revoke what nobody needs", d.file("tokens"), len(before))
	}
	data, err := formatTokens(tokens)
	if err != nil {
		return err
	}
	if len(data) > maxFileBytes { // it could not be read again, and would admit nobody
		return fmt.Errorf("%s is full: it would be larger than %d bytes; revoke what nobody needs", d.file("tokens"), maxFileBytes)
	}
	if err := d.write("tokens", data); err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	return nil
}

// formatTokens writes one token a line.
func formatTokens(tokens []Token) ([]byte, error) {
	var data []byte
	for _, token := range tokens {
		line, err := json.Marshal(token)
		if err != nil {
			return nil, fmt.Errorf("encode token %s: %w", token.ID, err)
		}
		data = append(append(data, line...), '\n')
	}
	return data, nil
}

// standing are the tokens that are not over, without the sessions whose token is
// gone or over.
func standing(tokens []Token, now time.Time) []Token {
	parents := map[string]bool{"": true}
	for _, t := range tokens {
		parents[t.ID] = parents[t.ID] || t.Kind == KindToken && !t.Over(now)
	}
	return slices.DeleteFunc(slices.Clone(tokens), func(t Token) bool { return t.Over(now) || !parents[t.Parent] })
}
