package gateway

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/lease"
)

// Config is what a gateway is made of. Client is required, and so is one of
// Authenticate and Insecure.
type Config struct {
	Client *conversation.Client

	// Authenticate says who sends a request, from facts of the connection and its
	// headers alone: the request that it is given has no body and no query
	// (C-31.1). An error, or an identity that could own nothing, is a 401.
	Authenticate func(*http.Request) (identity.Principal, error)

	// Insecure lets a gateway work without Authenticate, every caller being
	// nobody. It logs a warning, and is refused under Strict (C-31.2).
	Insecure bool

	// Strict refuses what is for trials only. Nil means: as the runtime requires
	// principals (C-31.3).
	Strict *bool

	// AllowNoRuntimeAuthz lets a gateway stand before a runtime whose policy does
	// not fail closed (C-31.4).
	AllowNoRuntimeAuthz bool

	// Edge says under which names the gateway answers, and to which web pages.
	// Nil is the zero Edge: any name, no web page. An insecure gateway answers
	// under loopback names alone (C-32.5).
	Edge *Edge

	MaxStreams          int // open at a time; DefaultMaxStreams if 0 (C-32.7)
	MaxStreamsPerCaller int // of one identity; DefaultMaxStreamsPerCaller if 0 (C-32.7)
	PostsPerMinute      int // of one identity; DefaultPostsPerMinute if 0 (C-32.9)

	// Leases says how each part of the agent's body stands, such as
	// lease.Registry.Status. Nil: it has none.
	Leases func() []lease.Status

	// HTML makes HTML of a whole answer, for the clients that ask for it with
	// render=html, such as the page of package web. It must let nothing through
	// that could run or load anything (C-30.13); "" means that the answer is shown as
	// text. Nil makes none.
	HTML func(text string) string

	// OnError is told what an answer hides behind its errorId (C-29.10). If it is
	// nil the error is logged.
	OnError func(errorID string, err error)

	Log *slog.Logger // slog.Default if nil
}

// Gateway is the handler of the HTTP API.
type Gateway struct {
	config  Config
	client  *conversation.Client
	edge    Edge
	streams streams
	posts   posts
}

var _ http.Handler = (*Gateway)(nil)

// New makes a gateway, and refuses a configuration that would leave a door
// open (C-31.2, C-31.4).
func New(config Config) (*Gateway, error) {
	if config.Client == nil {
		return nil, errors.New("a gateway needs a conversation client")
	}
	runtime := config.Client.Runtime()
	strict := runtime.RequiresPrincipal()
	if config.Strict != nil {
		strict = *config.Strict
	}
	switch {
	case config.Authenticate == nil && !config.Insecure:
		return nil, errors.New("a gateway needs Authenticate, or the word that it is insecure")
	case config.Insecure && strict:
		return nil, errors.New("a strict gateway cannot be insecure")
	case !runtime.Policy().FailClosed() && !config.AllowNoRuntimeAuthz:
		return nil, errors.New("the runtime behind this gateway has no policy that fails closed; AllowNoRuntimeAuthz accepts that")
	}
	if config.MaxStreams < 0 || config.MaxStreamsPerCaller < 0 || config.PostsPerMinute < 0 {
		return nil, errors.New("a limit of a gateway is above 0, or 0 for its default")
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if config.Insecure {
		config.Log.Warn("the gateway is insecure: anybody who can reach it is served")
	}
	g := &Gateway{
		config: config, client: config.Client,
		streams: newStreams(cmp.Or(config.MaxStreams, DefaultMaxStreams), cmp.Or(config.MaxStreamsPerCaller, DefaultMaxStreamsPerCaller)),
		posts:   newPosts(cmp.Or(config.PostsPerMinute, DefaultPostsPerMinute)),
	}
	if config.Edge != nil {
		g.edge = *config.Edge
	}
	g.edge.loopback = g.edge.loopback || config.Insecure
	return g, nil
}

// exchange is one request with what is known of it, and its answer.
type exchange struct {
	w       http.ResponseWriter
	r       *http.Request
	caller  *identity.Principal // nil: nobody
	id      string              // of the conversation, as the path names it
	body    []byte              // of a request that changes something
	started bool                // the answer's head is written
}

// ServeHTTP answers a request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{w: w, r: r}
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff") // C-32.4
	header.Set("Cache-Control", "no-store")
	defer g.recovered(x)
	if err := g.serve(x); err != nil {
		g.fail(x, err)
	}
}

// serve takes a request through the door and on to its route.
func (g *Gateway) serve(x *exchange) error {
	var next route
	err := aside(func() (err error) {
		next, err = g.enter(x)
		return err
	})
	if err != nil {
		return err
	}
	return next(g, x)
}

// enter takes a request through the door, in the order that tells a stranger
// the least, and finds its route.
func (g *Gateway) enter(x *exchange) (route, error) {
	if refused := g.edge.admit(x.w, x.r); refused != nil {
		return nil, refused
	}
	methods, id, ok := match(x.r.URL.Path)
	if !ok {
		return nil, conversation.ErrNotFound // C-29.11
	}
	if isPreflight(x.r) {
		return func(_ *Gateway, x *exchange) error { return preflight(x.w, methods.allow()) }, nil
	}
	next, ok := methods.of(x.r.Method)
	if !ok {
		x.w.Header().Set("Allow", methods.allow())
		return nil, errMethod
	}
	x.id = id
	return next, g.judge(x)
}

// judge lets a request through for whom it comes from, and what it brings.
func (g *Gateway) judge(x *exchange) error {
	if err := g.authenticate(x); err != nil {
		return err
	}
	var wait time.Duration
	if x.r.Method == http.MethodPost || x.r.Method == http.MethodDelete {
		wait = g.posts.count(x.key()) // it counts first, and answers behind the authorization (C-31.7)
		var err error
		if x.body, err = readBody(x.w, x.r); err != nil {
			return err
		}
	}
	if err := g.admit(x); err != nil {
		return err
	}
	if wait > 0 {
		return TooMany("posts", wait)
	}
	return nil
}

// key is that by which limits count the caller (C-32.14).
func (x *exchange) key() string {
	if x.caller == nil {
		return ""
	}
	return x.caller.Identity.Key()
}

// authenticate finds out who is calling. What it hands out has neither body nor
// query, so that no principal can come from there (C-31.1).
func (g *Gateway) authenticate(x *exchange) error {
	if g.config.Authenticate == nil {
		return nil
	}
	r := *x.r
	r.Body, r.GetBody, r.ContentLength = http.NoBody, nil, 0
	r.URL = &url.URL{Path: x.r.URL.Path, RawPath: x.r.URL.RawPath}
	r.RequestURI = r.URL.EscapedPath()
	r.Form, r.PostForm, r.MultipartForm = nil, nil, nil
	principal, err := g.config.Authenticate(&r)
	if err != nil || principal.Validate() != nil {
		return errUnauthorized // C-31.9: an error is a refusal
	}
	x.caller = &principal
	return nil
}

// admit authorizes the caller. Whatever limit can answer 429 belongs behind it:
// a stranger who probes a busy conversation gets the 404 (C-31.7).
func (g *Gateway) admit(x *exchange) error {
	if x.id == "" {
		return nil
	}
	return g.client.AuthorizeRead(x.r.Context(), x.caller, x.id)
}
