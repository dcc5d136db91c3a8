package server

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/server/datadir"
)

// authenticate takes a bearer token for the identity that it was made for
// (C-31.1). Anything else, and tokens that cannot be read, are refused (C-31.9).
func authenticate(ring *datadir.Keyring, log *slog.Logger) func(*http.Request) (identity.Principal, error) {
	var unreadable atomic.Bool // it is logged once, not once a request
	return func(r *http.Request) (identity.Principal, error) {
		given := r.Header.Values("Authorization")
		if len(given) != 1 {
			return identity.Principal{}, datadir.ErrNoToken
		}
		scheme, secret, _ := strings.Cut(given[0], " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return identity.Principal{}, datadir.ErrNoToken
		}
		token, err := ring.Find(datadir.KindToken, strings.TrimSpace(secret))
		damaged := err != nil && !errors.Is(err, datadir.ErrNoToken)
		if unreadable.Swap(damaged) != damaged && damaged {
			log.Error("the tokens cannot be read, so everybody is refused", "error", err)
		}
		return identity.Principal{Identity: token.Identity}, err
	}
}
