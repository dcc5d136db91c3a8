package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/parley-run/parley/server/datadir"
)

const (
	// issuerPatience is how long a request waits for an issuer that is being asked.
	issuerPatience = 3 * time.Second
	// An issuer that is not found is looked for again after a pause, which grows.
	issuerPause    = time.Second
	issuerMaxPause = time.Minute
	// maxJWTBytes is the largest JWT that is looked at.
	maxJWTBytes = 16 << 10
)

// jwtForm is the compact form: head, claims and signature, none of them empty.
var jwtForm = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)

// looksLikeJWT reports whether a bearer token is to be asked the issuer about.
func looksLikeJWT(secret string) bool {
	return len(secret) <= maxJWTBytes && jwtForm.MatchString(secret)
}

// asymmetric are the algorithms by which an issuer may sign. With any other one
// who can verify could sign too, or anybody.
var asymmetric = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512,
	oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

// issuer verifies the JWTs of an OpenID Connect issuer. It is looked for when
// the first JWT comes, in the background and until it is found, so that a server
// starts without it; meanwhile its JWTs are refused.
type issuer struct {
	settings OIDC
	log      *slog.Logger

	search func()             // begins to look for the issuer; once, whoever calls it
	stop   context.CancelFunc // ends what is being asked
	work   sync.WaitGroup     // of what goes on in the background

	found    chan struct{} // closed when verifier is there
	verifier *oidc.IDTokenVerifier
	missed   chan struct{} // closed when it was not found at first

	away atomic.Bool // as the log knows it

	mu   sync.Mutex
	told map[error]bool // the refusals that the log knows
}

// newIssuer makes the issuer of the settings, nil where there is none. Nobody is
// asked yet. It asks by transport, and must be closed.
func newIssuer(settings *OIDC, transport http.RoundTripper, log *slog.Logger) *issuer {
	if settings == nil {
		return nil
	}
	i := &issuer{
		settings: *settings, log: log,
		found: make(chan struct{}), missed: make(chan struct{}), told: map[error]bool{},
	}
	ctx, stop := context.WithCancel(context.Background())
	i.stop = stop
	ask := questions(ctx, transport, settings.local)
	i.search = sync.OnceFunc(func() { i.work.Go(func() { i.look(ctx, ask) }) })
	return i
}

// close ends what is being asked, and waits for it.
func (i *issuer) close() {
	if i != nil {
		i.stop()
		i.work.Wait()
	}
}

// look looks for the issuer until it is found or ctx is done.
func (i *issuer) look(ctx context.Context, ask roundTrip) {
	for pause := issuerPause; ; pause = min(2*pause, issuerMaxPause) {
		verifier, err := i.discover(ctx, ask)
		if ctx.Err() != nil {
			return
		}
		i.report(err)
		if err == nil {
			i.verifier = verifier
			close(i.found)
			return
		}
		if pause == issuerPause {
			close(i.missed)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// discover asks the issuer where its keys are. They are fetched when a JWT is
// to be verified, and again when one is signed with a key that is not known.
func (i *issuer) discover(ctx context.Context, ask roundTrip) (*oidc.IDTokenVerifier, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, clientOver(ask)), i.settings.Issuer)
	if err != nil {
		return nil, err
	}
	var where struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&where); err != nil || where.Keys == "" {
		return nil, fmt.Errorf("issuer %s says nothing of its keys", i.settings.Issuer)
	}
	keys := &keyQuestions{questions: ask, work: &i.work, report: i.report}
	set := oidc.NewRemoteKeySet(oidc.ClientContext(ctx, clientOver(keys)), where.Keys)
	return oidc.NewVerifier(i.settings.Issuer, set, &oidc.Config{
		SupportedSigningAlgs: asymmetric,
		SkipClientIDCheck:    true, // judge checks audience and time, to say what is wrong and with less patience
		SkipExpiryCheck:      true,
	}), nil
}

// report tells the log when the issuer goes and when it is there again.
func (i *issuer) report(err error) {
	switch {
	case err != nil && !i.away.Swap(true):
		i.log.Warn("the OIDC issuer gives no answer that is of use; JWTs are refused until it does", "issuer", i.settings.Issuer, "error", err)
	case err == nil && i.away.Swap(false):
		i.log.Info("the OIDC issuer answers again", "issuer", i.settings.Issuer)
	}
}

// verify returns for whom a JWT stands, and until when.
//
// Errors: [datadir.ErrNoToken].
func (i *issuer) verify(ctx context.Context, raw string) (datadir.Token, error) {
	ctx, cancel := context.WithTimeout(ctx, issuerPatience)
	defer cancel()
	if !i.await(ctx) {
		return datadir.Token{}, datadir.ErrNoToken
	}
	token, err := i.verifier.Verify(ctx, raw)
	if err != nil {
		return datadir.Token{}, datadir.ErrNoToken // err may quote the JWT
	}
	who, err := i.judge(token)
	if err != nil {
		i.explain(err)
		return datadir.Token{}, datadir.ErrNoToken
	}
	return who, nil
}

// await waits until the issuer is found, and reports whether it is. Who comes
// while it is known to be away does not wait.
func (i *issuer) await(ctx context.Context) bool {
	i.search()
	select {
	case <-i.found:
		return true
	case <-i.missed:
	case <-ctx.Done():
	}
	select {
	case <-i.found:
		return true
	default:
		return false
	}
}

// judge reads a JWT that the issuer has signed.
func (i *issuer) judge(token *oidc.IDToken) (datadir.Token, error) {
	var payload json.RawMessage
	if err := token.Claims(&payload); err != nil {
		return datadir.Token{}, errClaims
	}
	if !slices.Contains(token.Audience, i.settings.Audience) {
		return datadir.Token{}, errAudience
	}
	who, until, err := i.settings.owner(payload, time.Now())
	return datadir.Token{Identity: who, Expires: until}, err
}

// explain tells the log, once for each reason, why people are refused whom the
// issuer knows: that is the configuration, most likely. An end is no reason.
func (i *issuer) explain(reason error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !errors.Is(reason, errTime) && !i.told[reason] {
		i.told[reason] = true
		i.log.Warn("a JWT of the OIDC issuer was refused; others that are refused for this are not told", "reason", reason)
	}
}
