package datadir

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/parley-run/parley/identity"
)

const (
	// MaxLinkLife is how long a link may wait for the one whom it is for.
	MaxLinkLife = 24 * time.Hour
	// SessionLife is how long a session lasts at most.
	SessionLife = 30 * 24 * time.Hour
	// MaxSessions is how many sessions an identity has at a time; one more ends the
	// oldest (C-32.12).
	MaxSessions = 32
)

// CreateLink makes a link for the identity, which opens one session within its
// life, and returns its code, which is kept nowhere.
func (d Dir) CreateLink(ctx context.Context, owner identity.Identity, life time.Duration) (Token, identity.Secret, error) {
	if life < time.Second || life > MaxLinkLife {
		return Token{}, identity.Secret{}, fmt.Errorf("a link stands for a time from 1s to %v", MaxLinkLife)
	}
	return d.create(ctx, KindLink, owner, ending(life))
}

// RedeemLink opens the session of a link. The link goes and the session comes in
// one write, so that a crash loses neither and leaves no link that opens a second
// one. The session keeps the id of the link: revoking it works before and after.
//
// Errors: [ErrNoToken], for a code that is wrong, used or expired alike.
func (d Dir) RedeemLink(ctx context.Context, code string) (Token, identity.Secret, error) {
	if !secretForm.MatchString(code) {
		return Token{}, identity.Secret{}, ErrNoToken
	}
	hash, secret := hashOf(code), newSecret()
	var session Token
	err := d.changeTokens(ctx, func(tokens []Token) ([]Token, error) {
		i := slices.IndexFunc(tokens, func(t Token) bool { return t.Kind == KindLink && t.SHA256 == hash })
		if i < 0 {
			return nil, ErrNoToken
		}
		session = newToken(KindSession, tokens[i].Identity, secret)
		session.ID, session.Expires = tokens[i].ID, ending(SessionLife)
		return addSession(slices.Delete(tokens, i, i+1), session), nil
	})
	if err != nil {
		return Token{}, identity.Secret{}, err
	}
	return session, secret, nil
}

// OpenSession opens a session of the identity, which ends at the time given, if
// it is not zero, and with the token that opens it, if that is one of the
// directory's: opener is its id.
//
// Errors: [ErrNoToken] if the opener is gone or over, or the time is past.
func (d Dir) OpenSession(ctx context.Context, owner identity.Identity, opener string, until time.Time) (Token, identity.Secret, error) {
	if err := checkOwner(owner); err != nil {
		return Token{}, identity.Secret{}, err
	}
	secret := newSecret()
	session := newToken(KindSession, owner, secret)
	session.Parent, session.Expires = opener, ending(SessionLife)
	if !until.IsZero() && until.Before(session.Expires) {
		session.Expires = until.UTC()
	}
	err := d.changeTokens(ctx, func(tokens []Token) ([]Token, error) {
		stands := func(t Token) bool { return t.Kind == KindToken && t.ID == opener && t.Identity == owner }
		if opener != "" && !slices.ContainsFunc(tokens, stands) || session.Over(time.Now()) {
			return nil, ErrNoToken
		}
		return addSession(tokens, session), nil
	})
	if err != nil {
		return Token{}, identity.Secret{}, err
	}
	return session, secret, nil
}

// addSession adds a session, in place of the identity's oldest where it has as
// many as it may have.
func addSession(tokens []Token, session Token) []Token {
	mine := func(t Token) bool { return t.Kind == KindSession && t.Identity == session.Identity }
	count := 0
	for _, t := range tokens {
		if mine(t) {
			count++
		}
	}
	for ; count >= MaxSessions; count-- { // the oldest stand first
		i := slices.IndexFunc(tokens, mine)
		tokens = slices.Delete(tokens, i, i+1)
	}
	return append(tokens, session)
}
