// Package issuer takes the JWTs of an OpenID Connect issuer for those whom they
// name (C-31.1).
//
// Call [Config.Check] for what a file says, then [New], then [Issuer.Verify] for
// what [IsJWT] says is one.
//
// It promises: nobody is asked before the first JWT comes; an issuer that is away
// holds up no start, no stop, and no request for longer than 3 s, and lets nobody
// in; nothing of a JWT is in an error or a log; whoever can reach the server can
// have the issuer asked once in 10 s at most.
package issuer

import (
	"cmp"
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

	"github.com/parley-run/parley/identity"
)

const (
	// patience is how long a request waits for an issuer that is being asked.
	patience = 3 * time.Second
	// An issuer that is not found is looked for again after a pause, which grows.
	firstPause = time.Second
	maxPause   = time.Minute
	// maxJWTBytes is the largest JWT that is looked at.
	maxJWTBytes = 16 << 10
)

// jwtForm is the compact form: head, claims and signature, none of them empty.
var jwtForm = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)

// IsJWT reports whether a bearer token has the form of a JWT that is looked at.
func IsJWT(secret string) bool {
	return len(secret) <= maxJWTBytes && jwtForm.MatchString(secret)
}

// asymmetric are the algorithms by which an issuer may sign. With any other one
// who can verify could sign too, or anybody.
var asymmetric = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512,
	oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

// Issuer verifies the JWTs of an OpenID Connect issuer. It is looked for when
// the first JWT comes, in the background and until it is found, so that a server
// starts without it; meanwhile its JWTs are refused.
type Issuer struct {
	config   Config
	operator identity.Identity
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

// New makes the issuer of a configuration that was checked. Nobody is asked yet.
// The operator is the one whom no issuer may name. A nil transport is one of its
// own; a nil log is slog.Default. An issuer must be closed.
func New(config Config, operator identity.Identity, transport http.RoundTripper, log *slog.Logger) *Issuer {
	if transport == nil {
		transport = direct()
	}
	i := &Issuer{
		config: config, operator: operator, log: cmp.Or(log, slog.Default()),
		found: make(chan struct{}), missed: make(chan struct{}), told: map[error]bool{},
	}
	ctx, stop := context.WithCancel(context.Background())
	i.stop = stop
	ask := questions(ctx, transport, config.local)
	i.search = sync.OnceFunc(func() { i.work.Go(func() { i.look(ctx, ask) }) })
	return i
}

// Close ends what is being asked, and waits for it.
func (i *Issuer) Close() {
	i.stop()
	i.work.Wait()
}

// look looks for the issuer until it is found or ctx is done.
func (i *Issuer) look(ctx context.Context, ask roundTrip) {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
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
		if pause == firstPause {
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
func (i *Issuer) discover(ctx context.Context, ask roundTrip) (*oidc.IDTokenVerifier, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, clientOver(ask)), i.config.Issuer)
	if err != nil {
		return nil, err
	}
	var where struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&where); err != nil || where.Keys == "" {
		return nil, fmt.Errorf("issuer %s says nothing of its keys", i.config.Issuer)
	}
	keys := &keyQuestions{questions: ask, work: &i.work, report: i.report}
	set := oidc.NewRemoteKeySet(oidc.ClientContext(ctx, clientOver(keys)), where.Keys)
	return oidc.NewVerifier(i.config.Issuer, set, &oidc.Config{
		SupportedSigningAlgs: asymmetric,
		SkipClientIDCheck:    true, // judge checks audience and time, to say what is wrong and with less patience
		SkipExpiryCheck:      true,
	}), nil
}

// report tells the log when the issuer goes and when it is there again.
func (i *Issuer) report(err error) {
	switch {
	case err != nil && !i.away.Swap(true):
		i.log.Warn("the OIDC issuer gives no answer that is of use; JWTs are refused until it does", "issuer", i.config.Issuer, "error", err)
	case err == nil && i.away.Swap(false):
		i.log.Info("the OIDC issuer answers again", "issuer", i.config.Issuer)
	}
}

// ErrRefused says that a JWT stands for nobody.
var ErrRefused = errors.New("no JWT that is taken")

// Verify returns what a JWT says.
//
// Errors: [ErrRefused], whatever is wrong.
func (i *Issuer) Verify(ctx context.Context, raw string) (Bearer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if !IsJWT(raw) || !i.await(ctx) {
		return Bearer{}, ErrRefused
	}
	token, err := i.verifier.Verify(ctx, raw)
	if err != nil {
		return Bearer{}, ErrRefused // err may quote the JWT
	}
	bearer, err := i.judge(token)
	if err != nil {
		i.explain(err)
		return Bearer{}, ErrRefused
	}
	return bearer, nil
}

// await waits until the issuer is found, and reports whether it is. Who comes
// while it is known to be away does not wait.
func (i *Issuer) await(ctx context.Context) bool {
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
func (i *Issuer) judge(token *oidc.IDToken) (Bearer, error) {
	var payload json.RawMessage
	if err := token.Claims(&payload); err != nil {
		return Bearer{}, errClaims
	}
	if !slices.Contains(token.Audience, i.config.Audience) {
		return Bearer{}, errAudience
	}
	return i.read(payload, time.Now())
}

// explain tells the log, once for each reason, why people are refused whom the
// issuer knows: that is the configuration, most likely. An end is no reason.
func (i *Issuer) explain(reason error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !errors.Is(reason, errTime) && !i.told[reason] {
		i.told[reason] = true
		i.log.Warn("a JWT of the OIDC issuer was refused; others that are refused for this are not told", "reason", reason)
	}
}
