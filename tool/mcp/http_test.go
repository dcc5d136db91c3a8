package mcp

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

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/tool"
	"github.com/parley-run/parley/tool/tooltest"
)

// served answers for a peer by streamable HTTP.
func served(peer *sdk.Server, options *sdk.StreamableHTTPOptions) http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return peer }, options)
}

// A server that is met by streamable HTTP is a set of tools, with sessions and
// without, in streams and in plain JSON. Each request has the headers.
func TestHTTP(t *testing.T) {
	for name, options := range map[string]*sdk.StreamableHTTPOptions{
		"sessions": nil, "stateless": {Stateless: true}, "JSON": {JSONResponse: true},
	} {
		t.Run(name, func(t *testing.T) {
			inner := served(newPeer("good"), options)
			var without atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer sekrit" {
					without.Add(1)
				}
				inner.ServeHTTP(w, r)
			}))
			defer server.Close()
			w := watch(t, Config{Name: "peer", URL: server.URL + "/mcp", Header: map[string]identity.Secret{"Authorization": identity.NewSecret("Bearer sekrit")}})
			w.Start()
			w.until("the tools are there", offers("echo"))
			tooltest.Run(t, w.Server)
			if name != "stateless" {
				if _, err := w.call("grow"); err != nil {
					t.Error(err)
				}
				w.until("the new tool is there", offers("grown"))
			}
			w.Close()
			if n := without.Load(); n > 0 {
				t.Errorf("%d requests were without the header", n)
			}
		})
	}
}

// A server that is away at the start keeps nobody waiting; its tools are there
// when it is, gone when it is lost, and back.
func TestHTTPAway(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	var log locked
	w := watch(t, Config{Name: "peer", URL: "http://" + address + "/?key=sekrit", Log: slog.New(slog.NewTextHandler(&log, nil))})
	w.Start()
	if got := w.Offers(); len(got) != 0 {
		t.Errorf("Offers of a server that is away = %v", got)
	}
	for range 2 {
		if listener, err = net.Listen("tcp", address); err != nil {
			t.Skip("the port was taken by another: ", err)
		}
		server := &http.Server{Handler: served(newPeer("good"), nil)}
		go server.Serve(listener)
		w.until("the tools are there", offers("echo"))
		server.Close()
		if _, err := w.call("echo"); !errors.Is(err, tool.ErrAbsent) && !errors.Is(err, kernel.ErrOutcomeUnknown) {
			t.Errorf("Call of a server that is away = %v, want ErrAbsent", err)
		}
		w.until("the tools are gone", nothing)
	}
	w.Close()
	text := log.String()
	if !strings.Contains(text, "an MCP server is away") || strings.Contains(text, "sekrit") {
		t.Errorf("the log does not say that it was away, or says its secret:\n%s", text)
	}
}

// T59: a server that cuts the line in the middle of a call leaves its outcome
// unknown.
func TestHTTPCut(t *testing.T) {
	inner := served(newPeer("good"), &sdk.StreamableHTTPOptions{Stateless: true})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "tools/call") {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		inner.ServeHTTP(w, r)
	}))
	defer server.Close()
	w := watch(t, Config{Name: "peer", URL: server.URL})
	w.Start()
	w.until("the tools are there", offers("echo"))
	if got, err := w.call("echo"); !errors.Is(err, kernel.ErrOutcomeUnknown) {
		t.Errorf("Call = %+v, %v, want ErrOutcomeUnknown", got, err)
	}
}

// Headers are for the server that was named. One that points elsewhere is away,
// and who it points to is told nothing.
func TestHTTPRedirect(t *testing.T) {
	var met atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { met.Add(1) }))
	defer other.Close()
	asked := make(chan struct{}, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		select {
		case asked <- struct{}{}:
		default:
		}
	}))
	defer server.Close()
	w := watch(t, Config{Name: "peer", URL: server.URL, Header: map[string]identity.Secret{"X-Key": identity.NewSecret("sekrit")}})
	w.Start()
	<-asked
	<-asked // once more: the first answer was taken in
	w.Close()
	if n := met.Load(); n > 0 {
		t.Errorf("another server was met %d times", n)
	}
}

// An answer without an end is cut, and costs no more than its bound: a refusal
// that calls itself a stream of events, which is read whole, as well.
func TestHTTPEndless(t *testing.T) {
	for name, head := range map[string]struct {
		kind   string
		status int
	}{
		"an answer":             {"application/json", http.StatusOK},
		"a refusal as a stream": {"text/event-stream", http.StatusBadRequest},
		"a kind much like it":   {"text/event-streams", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			sent := make(chan int, 16)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", head.kind)
				w.WriteHeader(head.status)
				n, chunk := 0, []byte(strings.Repeat(" ", 1<<16))
				for n < 16*maxFrame {
					m, err := w.Write(chunk)
					n += m
					if err != nil {
						break
					}
				}
				sent <- n
			}))
			defer server.Close()
			w := watch(t, Config{Name: "peer", URL: server.URL})
			w.Start()
			if n := <-sent; n > 4*maxFrame {
				t.Errorf("%d bytes were taken of an answer without an end, want about %d", n, maxFrame)
			}
			w.Close()
		})
	}
}
