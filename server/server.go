package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/gateway"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/sqlite"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/server/datadir"
	"github.com/parley-run/parley/server/issuer"
	"github.com/parley-run/parley/server/metrics"
	"github.com/parley-run/parley/web"
)

// DefaultListen is where a server is met that was told nothing else.
const DefaultListen = "127.0.0.1:7275"

// Owner is the identity that a first start makes a token for.
var Owner = identity.Identity{Actor: "me"}

// Config is what a server is made of. Data is required.
type Config struct {
	Data     string // path of the data directory; made where there is none
	Settings Settings
	Version  string              // of the program, for its metrics; "dev" if empty
	Getenv   func(string) string // os.Getenv if nil; vendors' keys come from there
	Log      *slog.Logger        // slog.Default if nil

	// open opens the journal; sqlite.Open but in tests.
	open func(ctx context.Context, path string, config sqlite.Config) (journal.Store, error)
	// issuers reaches the OIDC issuer; the issuer's own transport but in tests.
	issuers http.RoundTripper
}

// Server is a server that has taken what it needs and answers from Run on.
type Server struct {
	log   *slog.Logger
	first bool
	ready atomic.Bool
	door  door

	metrics  *metrics.Metrics
	listener net.Listener
	dir      datadir.Dir
	lock     *datadir.Lock
	store    journal.Store
	mcp      mcpServers
	hands    *hands
	issuer   *issuer.Issuer // nil where there is none
	runtime  *kernel.Runtime
	gateway  *gateway.Gateway
	http     *http.Server
}

// New makes a server: it checks the configuration, listens, locks the data
// directory, opens the journal, makes keys and a token on a first start, and
// wakes the conversations that have work waiting. What goes wrong before the
// lock leaves no trace. A server that was made must be run, once.
//
// Errors: [RunningError] if the directory's server runs and answers.
func New(ctx context.Context, config Config) (_ *Server, err error) {
	config = config.withDefaults()
	if config.Data == "" {
		return nil, errors.New("a server needs a data directory")
	}
	m, err := NewModel(config.Settings.Model, config.Getenv)
	if err != nil {
		return nil, err
	}
	peers, err := newMCPServers(config.Settings, config.Getenv, config.Log)
	if err != nil {
		return nil, err
	}
	config.Settings = config.Settings.withWindow(config.Getenv, config.Log)
	hands, err := newHands()
	if err != nil {
		return nil, err
	}
	if err := config.Settings.check(m, append(hands.sets(), peers.sets()...), config.Log); err != nil {
		return nil, err
	}
	d, err := newDoor(config.Settings)
	if err != nil {
		return nil, err
	}
	s := &Server{log: config.Log, mcp: peers, hands: hands, door: d, metrics: metrics.New(cmp.Or(config.Version, "dev"))}
	if config.Settings.OIDC != nil {
		s.issuer = issuer.New(*config.Settings.OIDC, Owner, config.issuers, config.Log)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	if err := s.take(ctx, config); err != nil {
		return nil, err
	}
	if err := s.assemble(ctx, config, m); err != nil {
		return nil, err
	}
	if c := s.door.certificate; c != nil { // before the address, which sends clients here
		if err := c.follow(s.log, s.lock.SetCertificate); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(s.lock.SetPublicAddress(s.door.publicAddress()), s.lock.SetAddress(s.URL())); err != nil {
		return nil, err
	}
	s.ready.Store(true)
	return s, nil
}

func (c Config) withDefaults() Config {
	if c.Settings.Listen == "" {
		c.Settings.Listen = DefaultListen
	}
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.open == nil {
		c.open = func(ctx context.Context, path string, config sqlite.Config) (journal.Store, error) {
			store, err := sqlite.Open(ctx, path, config)
			if err != nil {
				return nil, err
			}
			return atCrashPoint(store), nil
		}
	}
	return c
}

// take gets what only one server can have: the address and the directory. The
// address comes first, because a port in use must leave no new directory.
func (s *Server) take(ctx context.Context, config Config) error {
	var err error
	s.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", config.Settings.Listen)
	if err != nil {
		if running := findRunning(ctx, config.Data); running != nil {
			return running // its port, most likely
		}
		return listenError(config.Settings.Listen, err)
	}
	if s.dir, err = datadir.Open(config.Data); err != nil {
		return err
	}
	s.lock, err = lockDirectory(ctx, s.dir)
	return err
}

// listenError says what to do about an address that cannot be had.
func listenError(address string, err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		err = op.Err
		if call, ok := errors.AsType[*os.SyscallError](err); ok {
			err = call.Err
		}
	}
	return fmt.Errorf("listen on %s: %w; name another address with --listen, such as --listen 127.0.0.1:0 for any free port", address, err)
}

// open opens the journal and returns the keys. A first start makes the keys, and
// then the journal.
func (s *Server) open(ctx context.Context, config Config) (keys conversation.Keys, err error) {
	if s.first, err = s.lock.Prepare(Owner); err != nil {
		return conversation.Keys{}, err
	}
	raw, err := s.dir.Keys()
	if err != nil {
		return conversation.Keys{}, err
	}
	if s.store, err = config.open(ctx, s.dir.Database(), sqlite.Config{OnCommit: s.metrics.Commit}); err != nil {
		return conversation.Keys{}, err
	}
	return conversation.NewKeys(raw[0], raw[1:]...)
}

// assemble puts the parts together and starts what waits.
func (s *Server) assemble(ctx context.Context, config Config, m model.Model) error {
	keys, err := s.open(ctx, config)
	if err != nil {
		return err
	}
	hub := conversation.NewHub(conversation.HubConfig{})
	may, err := newRights(config.Settings)
	if err != nil {
		return err
	}
	shared := may.shared(s.store)
	around := surroundings{
		hub: hub, bargeIn: conversation.InboxBargeIn(s.store), sets: append(s.hands.sets(), s.mcp.sets()...), shared: shared,
		onModelCall: s.metrics.ModelCall, onTurn: s.metrics.Turn, onRejected: s.metrics.Rejected,
	}
	flow, err := newFlow(config.Settings, keys, m, around, s.log)
	if err != nil {
		return err
	}
	if s.runtime, err = newRuntime(s.store, flow, may, s.log); err != nil {
		return err
	}
	client, err := newClient(config.Settings, keys, s.runtime, hub, shared)
	if err != nil {
		return err
	}
	if err := s.hands.open(ctx, s, config.Settings, may, client); err != nil {
		return err
	}
	edge, err := s.door.open(s.listener)
	if err != nil {
		return err
	}
	known := &callers{ring: s.dir.Keyring(), issuer: s.issuer, claims: may.claims, cookie: s.cookieName, log: s.log}
	s.gateway, err = gateway.New(gateway.Config{
		Client: client, Authenticate: known.principal, Edge: edge, HTML: web.Markdown,
		MaxStreams: config.Settings.MaxStreams, MaxStreamsPerCaller: config.Settings.MaxStreamsPerCaller,
		PostsPerMinute: config.Settings.PostsPerMinute, Leases: s.hands.registry.Status,
		// The operator's view of what an answer hides.
		OnError: func(errorID string, err error) { s.log.Error("a request failed", "errorId", errorID, "error", err) },
		Log:     s.log,
	})
	if err != nil {
		return err
	}
	session := newSessions(known, s.dir, s.door.secure, s.log).behind(edge)
	s.metrics.Watch(s.gateway, s.runtime)
	all := routes(s.gateway, session, page(edge), s.door.metricsFor(Owner, known.principal, s.metrics.Handler()), s.ready.Load)
	s.http = newHTTPServer(s.metrics.Around(behindProxies(s.door.proxies, all)), s.door, s.log)
	s.mcp.start(ctx)
	return s.runtime.Recover(ctx)
}

// URL is the address at which the server is met from this machine.
func (s *Server) URL() string {
	scheme := "http://"
	if s.door.certificate != nil {
		scheme = "https://"
	}
	host, port, err := net.SplitHostPort(s.listener.Addr().String())
	if err != nil {
		return scheme + s.listener.Addr().String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // every address of the machine, those of IPv4 included
	}
	return scheme + net.JoinHostPort(host, port)
}

// Local reports whether only programs on this machine can reach the server
// (C-31.5).
func (s *Server) Local() bool {
	address, ok := s.listener.Addr().(*net.TCPAddr)
	return ok && address.IP.IsLoopback()
}

// Secure reports whether the server speaks TLS.
func (s *Server) Secure() bool { return s.door.certificate != nil }

// Directory is the server's data directory.
func (s *Server) Directory() datadir.Dir { return s.dir }

// First reports whether this start made the directory's keys and token.
func (s *Server) First() bool { return s.first }
