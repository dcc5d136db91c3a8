// Package proxy keeps an agent's Chromium out of the network it runs in: a
// forward proxy that resolves every name itself, judges every address, and
// connects to exactly the address that it judged.
//
// Call [Start], and start Chromium with the flags of [Proxy.Flags]. The proxy
// reaches the public internet at the ports 80 and 443, and nothing else, unless
// the operator allows it: no private, local or reserved address, no name of the
// local network, and nothing on the list of refusals, where the origins of the
// server itself belong. It sees each navigation, redirect, subresource and
// WebSocket, for Chromium asks it for each.
//
// What it promises:
//
//   - A name is looked up once for a connection. If one of its addresses is
//     refused, the name is; else only those addresses are dialled (no rebinding).
//   - A refusal beats an allowance. What cannot be read is refused.
//   - A refusal is a 403 that says why, with [Header]; [Config].Refused is told
//     before, for Chromium shows a page no more of it than an error.
//   - It keeps nothing: no cache, no cookie, no connection for a second request.
//
// What it does not guard: addresses that are no request to the network (file:,
// data:, chrome:), which the adapter refuses; what is said within a tunnel, where
// the name in the TLS handshake may be another than the one asked for; public
// services that look into a private network on somebody's behalf; and a Chromium
// that was started without the flags. A name on the list of refusals covers that
// name: for other names of the same server, put its addresses on the list too.
//
// The proxy listens on loopback and asks for no password. Another process of the
// machine gains nothing by it, for the proxy reaches less than the process can by
// itself; only one that is kept from the network, and shares this loopback, would.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"sync"
	"time"
)

// The bounds of a proxy.
const (
	maxConnections = 512              // at a time, to both sides; what comes above is closed
	maxHeaderBytes = 256 << 10        // of a request, and of an answer
	headerTimeout  = 10 * time.Second // until the head of a request is there
	idleTimeout    = time.Minute      // between two requests of a connection
	dialTimeout    = 10 * time.Second // for the lookup of a name and all its addresses
	halfOpen       = time.Minute      // for the rest of a tunnel of which one end has finished
)

// Config says what a proxy lets through. The zero Config lets the public internet
// through.
type Config struct {
	// Allow is what is let through although it is private: names, IP addresses,
	// both also with a port, and CIDR prefixes. An entry with a port opens that
	// port, the others hold for Ports. A name covers whatever it resolves to, and
	// no name beneath it; names of the local network (localhost, one without a dot,
	// those under .local and the like) are only ever allowed by name.
	Allow []string

	// Refuse is what is never let through, whatever Allow says, in the same forms.
	// An address covers the names that resolve to it. The address 0.0.0.0 or [::]
	// stands for every address of this machine at the time of Start.
	Refuse []string

	Ports    []int        // that may be reached; 80 and 443 if empty
	Resolver Resolver     // net.DefaultResolver if nil
	Log      *slog.Logger // slog.Default if nil; hosts are not logged

	// Refused, if not nil, is told of each refusal before it is answered: what was
	// asked for, host:port where it could be read, and one of the Reasons. It comes
	// from a page and is printable ASCII of at most 300 bytes. It is called from
	// any number of goroutines, and must not call Close.
	Refused func(target, reason string)

	dial     func(context.Context, netip.AddrPort) (net.Conn, error) // of a net.Dialer if nil
	halfOpen time.Duration                                           // the constant if 0
}

// Resolver finds the addresses of a name, as *net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Proxy is a running proxy. It must be closed.
type Proxy struct {
	config    Config
	rules     rules
	log       *slog.Logger
	address   netip.AddrPort
	server    *http.Server
	forwarder *httputil.ReverseProxy

	ctx     context.Context // ends with the proxy
	cancel  context.CancelFunc
	serving sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	handlers sync.WaitGroup // grows under mu, not once closed

	open connections // to both sides
}

// Check refuses a Config that [Start] would refuse.
func (c Config) Check() error {
	_, err := newRules(c)
	return err
}

// Start starts a proxy on a free port of 127.0.0.1. An error names the entry of
// the Config that cannot be read.
func Start(config Config) (*Proxy, error) {
	if config.Resolver == nil {
		config.Resolver = net.DefaultResolver
	}
	if config.dial == nil {
		config.dial = func(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address.String())
		}
	}
	config.halfOpen = cmp.Or(config.halfOpen, halfOpen)
	rules, err := newRules(config)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the browser's requests: %w", err)
	}
	p := &Proxy{config: config, rules: rules, log: cmp.Or(config.Log, slog.Default()), open: connections{halfOpen: config.halfOpen}}
	p.address = listener.Addr().(*net.TCPAddr).AddrPort()
	p.rules.refuse = append(p.rules.refuse, only(p.address)) // not through itself
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.forwarder = p.newForwarder()
	p.server = &http.Server{
		Handler:                      http.HandlerFunc(p.serve),
		BaseContext:                  func(net.Listener) context.Context { return p.ctx },
		ReadHeaderTimeout:            headerTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeaderBytes,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
	p.serving.Go(func() {
		if err := p.server.Serve(limited{listener, &p.open}); !errors.Is(err, http.ErrServerClosed) {
			p.log.Error("the browser's proxy no longer listens", "error", err)
		}
	})
	return p, nil
}

// Addr is where the proxy listens, a host:port.
func (p *Proxy) Addr() string { return p.address.String() }

// Flags are the flags with which Chromium sends everything through the proxy,
// without the dashes: loopback too, no UDP of WebRTC, and no lookup of a name by
// itself. Chromium says nothing of a flag that it does not know: TestChromium
// shows that the one at hand obeys them.
func (p *Proxy) Flags() map[string]string {
	return map[string]string{
		"proxy-server":                    "http://" + p.Addr(),
		"proxy-bypass-list":               "<-loopback>",
		"host-resolver-rules":             "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		"webrtc-ip-handling-policy":       "disable_non_proxied_udp",
		"force-webrtc-ip-handling-policy": "disable_non_proxied_udp", // its older name
	}
}

// Close stops listening, ends every request and every tunnel, and waits until
// nothing acts for any of them. It may be called again.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	err := p.server.Close()
	p.open.close()
	p.handlers.Wait()
	p.serving.Wait()
	return err
}

// begin counts a handler that Close waits for, or says that it is too late.
func (p *Proxy) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.handlers.Add(1)
	}
	return !p.closed
}
