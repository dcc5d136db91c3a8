package server

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/gateway"
)

// pipes is a listener whose connections the test makes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// C-32.11: above the limit a connection waits until another one is closed.
func TestLimitConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := pipes{conns: make(chan net.Conn, 3), closed: make(chan struct{})}
		listener := limitConnections(inner, 2)
		accepted := make(chan net.Conn, 3)
		var ended error
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					ended = err
					return
				}
				accepted <- conn
			}
		}()
		for range 3 {
			client, server := net.Pipe()
			defer client.Close()
			inner.conns <- server
		}
		synctest.Wait()
		if len(accepted) != 2 {
			t.Fatalf("%d connections were accepted, want 2", len(accepted))
		}
		first := <-accepted
		first.Close()
		first.Close() // gives no second slot
		synctest.Wait()
		if len(accepted) != 2 {
			t.Fatalf("%d connections are accepted after one was closed, want 2", len(accepted))
		}
		listener.Close() // while Accept waits for a slot
		synctest.Wait()
		if !errors.Is(ended, net.ErrClosed) {
			t.Errorf("Accept after Close = %v, want net.ErrClosed", ended)
		}
	})
}

// C-32.11, checks 37 and 45: the limits are set, and nothing would cut a stream.
func TestHTTPServerLimits(t *testing.T) {
	s := newHTTPServer(http.NotFoundHandler(), door{}, slog.New(slog.DiscardHandler))
	if s.ReadHeaderTimeout == 0 || s.ReadTimeout == 0 || s.IdleTimeout == 0 || s.MaxHeaderBytes > 32<<10 || s.MaxHeaderBytes == 0 || s.WriteTimeout != 0 {
		t.Errorf("limits are header %v, read %v, idle %v, header bytes %d, write %v", s.ReadHeaderTimeout, s.ReadTimeout, s.IdleTimeout, s.MaxHeaderBytes, s.WriteTimeout)
	}
	if two := s.HTTP2; two.MaxConcurrentStreams == 0 || two.SendPingTimeout == 0 || two.PingTimeout == 0 || two.SendPingTimeout+two.PingTimeout > 45*time.Second {
		t.Errorf("limits of HTTP/2 are %+v", two)
	}
}

// C-32.4, C-32.5, C-29.11: probes need neither token nor Host; what is not there
// is 404 with the API's body.
func TestRoutes(t *testing.T) {
	var ready atomic.Bool
	ready.Store(true)
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "api "+r.URL.Path) })
	session := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "session") })
	edge, err := gateway.NewEdge(gateway.EdgeConfig{AllowedHosts: []string{"localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "metrics") })
	handler := routes(api, session, page(edge), metrics, ready.Load)
	check := func(method, path string, status int, body string) {
		t.Helper()
		w := httptest.NewRecorder()
		r := httptest.NewRequest(method, path, nil)
		r.Host = "evil.example"
		handler.ServeHTTP(w, r)
		if w.Code != status || w.Body.String() != body {
			t.Errorf("%s %s = %d %q, want %d %q", method, path, w.Code, w.Body, status, body)
		}
		if body != "session" && body != "metrics" && !strings.HasPrefix(body, "api ") && w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s has no nosniff", method, path)
		}
	}
	check("GET", "/healthz", 200, "ok\n")
	check("GET", "/readyz", 200, "ok\n")
	check("GET", "/metrics", 200, "metrics")
	check("GET", "/v1/conversations", 200, "api /v1/conversations")
	check("GET", "/", 403, `{"error":"forbidden","reason":"host-not-allowed"}`)
	check("GET", "/session", 200, "session")
	check("GET", "/session/", 200, "api /session/")
	check("GET", "/index.html", 200, "api /index.html")
	check("GET", "/v2/conversations", 200, "api /v2/conversations")
	check("GET", "/v1/../healthz", 200, "api /v1/../healthz")
	check("GET", "//healthz", 200, "api //healthz")
	check("POST", "/readyz", 405, `{"error":"method not allowed"}`)
	ready.Store(false)
	check("GET", "/healthz", 200, "ok\n")
	check("GET", "/readyz", 503, "unavailable\n")
}

// C-32.1: who follows a link from another site sees the page, and the page of
// another site can load nothing of it.
func TestPageIsFollowed(t *testing.T) {
	edge, err := gateway.NewEdge(gateway.EdgeConfig{AllowedHosts: []string{"localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		method, mode, dest string
		want               int
	}{
		{"GET", "navigate", "document", 200},
		{"HEAD", "navigate", "document", 200},
		{"POST", "navigate", "document", 405},
		{"GET", "navigate", "iframe", 403},
		{"GET", "no-cors", "script", 403},
		{"GET", "cors", "empty", 403},
	} {
		r := httptest.NewRequest(test.method, "http://localhost/", nil)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", test.mode)
		r.Header.Set("Sec-Fetch-Dest", test.dest)
		w := httptest.NewRecorder()
		if page(edge).ServeHTTP(w, r); w.Code != test.want {
			t.Errorf("%+v: %d", test, w.Code)
		}
	}
}
