package server

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/parley-run/parley/gateway"
	"github.com/parley-run/parley/web"
)

// Limits of the HTTP server (C-32.11). There is no write timeout: it would cut
// streams, which have deadlines of their own.
const (
	headerTimeout  = 10 * time.Second
	readTimeout    = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 32 << 10
	maxConnections = 1024

	// Over HTTP/2 a connection carries many streams; the limits of streams count
	// each of them. A peer that answers no ping is gone.
	maxConcurrent = 128
	pingAfter     = 15 * time.Second
	pingTimeout   = 15 * time.Second

	// sendBuffer caps what the system takes for a client that does not read, so
	// that deltas are merged here and not kept stale there (SSE finding 7).
	sendBuffer = 64 << 10
)

// newHTTPServer is the HTTP server with its limits. HTTP/2 goes with TLS, and
// without it only where h2c says so.
func newHTTPServer(handler http.Handler, d door, log *slog.Logger) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(d.h2c)
	var secure *tls.Config
	if d.certificate != nil {
		secure = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: d.certificate.current}
	}
	return &http.Server{
		TLSConfig: secure,
		Protocols: &protocols,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxConcurrent, SendPingTimeout: pingAfter, PingTimeout: pingTimeout,
		},
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),

		DisableGeneralOptionsHandler: true, // "OPTIONS *" comes to the door like everything else (C-31.10)
	}
}

// routes joins the API under /v1 and what lies beside it. Probes and metrics lie
// outside the rules of the API: they need no listed Host, and probes no token
// (C-32.5). A path that nobody knows is the API's to refuse, behind its door
// (C-29.11). No path is cleaned, and nobody is redirected.
func routes(api, session, page, metrics http.Handler, ready func() bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		isProbe := r.URL.Path == "/healthz" || r.URL.Path == "/readyz"
		switch {
		case r.URL.Path == "/session":
			session.ServeHTTP(w, r)
		case web.Has(r.URL.Path):
			page.ServeHTTP(w, r)
		case r.URL.Path == "/metrics":
			metrics.ServeHTTP(w, r)
		case isProbe && r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, r, http.StatusMethodNotAllowed, "method not allowed")
		case isProbe:
			probe(w, r.URL.Path == "/healthz" || ready())
		default:
			api.ServeHTTP(w, r)
		}
	})
}

// page puts the page behind the edge. Who follows a link from elsewhere may see
// it, since it holds nothing: what it asks for is asked by the page itself.
func page(edge *gateway.Edge) http.Handler {
	guarded := edge.Guard([]string{http.MethodGet, http.MethodHead}, web.Handler())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
			r.Header.Del("Sec-Fetch-Site")
		}
		guarded.ServeHTTP(w, r)
	})
}

// probe answers a probe: 200, or 503 while the server takes no work.
func probe(w http.ResponseWriter, ok bool) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	answer := "ok\n"
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
		answer = "unavailable\n"
	}
	_, _ = io.WriteString(w, answer) // whoever asked is gone, or has the status
}

// refuse answers with an error of the API's form (C-29.15).
func refuse(w http.ResponseWriter, r *http.Request, status int, code string) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store") // caches may keep a 405 unless they are told not to
	(&gateway.Refusal{Status: status, Code: code}).Answer(w, r)
}

// limitedListener accepts no more than so many connections at once; those above
// wait in the backlog of the system (C-32.11).
type limitedListener struct {
	net.Listener
	slots chan struct{}
	done  chan struct{}
	once  sync.Once
}

func limitConnections(inner net.Listener, most int) net.Listener {
	return &limitedListener{Listener: inner, slots: make(chan struct{}, most), done: make(chan struct{})}
}

// Accept waits for a slot, then for a connection.
func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tune(tcp)
	}
	return &limitedConn{Conn: conn, release: func() { <-l.slots }}, nil
}

// Close ends a wait for a slot too.
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// limitedConn gives its slot back when it is closed, once.
type limitedConn struct {
	net.Conn
	once    sync.Once
	release func()
}

// Close closes the connection.
func (c *limitedConn) Close() error {
	defer c.once.Do(c.release)
	return c.Conn.Close()
}
