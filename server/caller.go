package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/server/datadir"
	"github.com/parley-run/parley/server/issuer"
)

// callers tells who sends a request: the holder of a token, of a JWT of the
// issuer, or of the cookie of a session (C-31.1). Nothing else counts, and
// whatever goes wrong is a refusal (C-31.9).
type callers struct {
	ring   *datadir.Keyring
	issuer *issuer.Issuer             // nil where there is none
	claims *claims                    // nil, or what JWTs say that somebody's rights follow from
	cookie func(*http.Request) string // the name of a session's cookie
	log    *slog.Logger

	unreadable atomic.Bool // it is logged once, not once a request
}

// principal is the gateway's Authenticate.
func (c *callers) principal(r *http.Request) (identity.Principal, error) {
	who, err := c.find(r)
	return identity.Principal{Identity: who.Identity}, err
}

// find returns what is known of the caller: the record of a token or a session,
// or what a JWT says, which has no id. A header stands over a cookie, also when
// it is wrong. Of what is given twice neither counts.
//
// Errors: [datadir.ErrNoToken]; others mean that nobody is known.
func (c *callers) find(r *http.Request) (datadir.Token, error) {
	if given := r.Header.Values("Authorization"); len(given) > 0 {
		if len(given) != 1 {
			return datadir.Token{}, datadir.ErrNoToken
		}
		scheme, secret, _ := strings.Cut(given[0], " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return datadir.Token{}, datadir.ErrNoToken
		}
		return c.bearer(r.Context(), strings.TrimSpace(secret))
	}
	cookies := r.CookiesNamed(c.cookie(r))
	if len(cookies) != 1 {
		return datadir.Token{}, datadir.ErrNoToken
	}
	return c.look(datadir.KindSession, cookies[0].Value)
}

// bearer is who sends a token or a JWT.
func (c *callers) bearer(ctx context.Context, secret string) (datadir.Token, error) {
	if c.issuer != nil && issuer.IsJWT(secret) {
		bearer, err := c.issuer.Verify(ctx, secret)
		if err != nil {
			return datadir.Token{}, datadir.ErrNoToken
		}
		c.claims.keep(bearer)
		return datadir.Token{Identity: bearer.Identity, Expires: bearer.Until}, nil
	}
	return c.look(datadir.KindToken, secret)
}

// look looks a secret up, and tells the log once when that cannot be done.
func (c *callers) look(kind datadir.Kind, secret string) (datadir.Token, error) {
	token, err := c.ring.Find(kind, secret)
	damaged := err != nil && !errors.Is(err, datadir.ErrNoToken)
	if c.unreadable.Swap(damaged) != damaged && damaged {
		c.log.Error("the tokens cannot be read, so everybody is refused", "error", err)
	}
	return token, err
}
