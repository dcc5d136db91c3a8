package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/server/datadir"
)

// clientFlags say which server is meant, and who asks.
type clientFlags struct {
	TokenFile string `env:"PARLEY_TOKEN_FILE" placeholder:"FILE" help:"File with a token; me.token in the data directory unless named."`
}

// token reads the token.
func (f clientFlags) token(dir datadir.Dir) (identity.Secret, error) {
	if f.TokenFile != "" {
		return datadir.ReadToken(f.TokenFile)
	}
	return datadir.ReadToken(dir.OwnTokenFile())
}

// absence is told when the server can no longer be reached, and when it can be
// again; and that it has been away for longer than patience. Either may be nil.
type absence struct {
	changed func(away bool)
	tooLong func(error)
}

// connect returns a client of the directory's server.
func (f clientFlags) connect(dir datadir.Dir, absence absence) (*client.Client, error) {
	token, err := f.token(dir)
	if err != nil {
		return nil, err
	}
	// The address below is a placeholder: the one in the directory is looked up
	// for each request, because a server that comes back may have another.
	return client.New("http://parley.invalid", token.Reveal(), &http.Client{Transport: &finder{dir: dir, absence: absence, direct: direct(dir)}})
}

// patience is how long a server may be away, restarting, before a talk with it
// is given up.
const patience = time.Minute

// finder sends each request to where the directory's server is now. A token
// goes to nobody else: the address counts only while its server holds the lock.
type finder struct {
	dir     datadir.Dir
	absence absence
	direct  *http.Transport

	mu   sync.Mutex
	away time.Time // since when no request has reached the server; zero if the last one did
}

// RoundTrip sends a request.
func (f *finder) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := f.send(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case r.Context().Err() != nil: // says nothing
	case err == nil && !f.away.IsZero():
		f.away = time.Time{}
		f.change(false)
	case err == nil:
	case f.away.IsZero():
		f.away = time.Now()
		f.change(true)
	case f.absence.tooLong != nil && time.Since(f.away) > patience:
		f.absence.tooLong(fmt.Errorf("the server has been away for %v: %w", patience, err))
	}
	return answer, err
}

// change tells that the server is away, or is not any more.
func (f *finder) change(away bool) {
	if f.absence.changed != nil {
		f.absence.changed(away)
	}
}

// send finds the server and asks it.
func (f *finder) send(r *http.Request) (*http.Response, error) {
	address, ok, err := f.dir.Address()
	if err == nil && !ok {
		err = fmt.Errorf("no server runs on %s; start one with: parley serve --data %s", f.dir.Path(), f.dir.Path())
	}
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("address of the server: %w", err)
	}
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = target.Scheme, target.Host, target.Host
	return f.direct.RoundTrip(r)
}

// direct asks no proxy: the server is on this machine, and has the certificate
// that it says.
func direct(dir datadir.Dir) *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy, transport.TLSClientConfig = nil, dir.TLS()
	return transport
}

// explain adds what to do about an error of the server's.
func explain(ctx context.Context, err error) error {
	if inner, ok := errors.AsType[*url.Error](err); ok && ctx.Err() == nil {
		err = inner.Err // without the address, which is a placeholder
	}
	if errors.Is(err, client.ErrUnauthorized) {
		return fmt.Errorf("%w; make another token with: parley token create --data DIR --actor NAME", err)
	}
	return err
}
