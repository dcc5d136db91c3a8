package mcp

import (
	"context"
	"mime"
	"net"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// dialTime is how long a connection to a server may take to be made.
const dialTime = 10 * time.Second

// open gets ready for a server that is met by HTTP.
func open(config Config) *link {
	wires := &wires{dialer: net.Dialer{Timeout: dialTime}, open: map[net.Conn]bool{}}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = wires.dial
	client := &http.Client{
		Transport: door{config: config, inner: transport},
		// The headers are for this server and not for whom it names.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	cut := func() {
		transport.CloseIdleConnections()
		wires.cut()
	}
	return &link{transport: &sdk.StreamableClientTransport{Endpoint: config.URL, HTTPClient: client, MaxEventSize: maxFrame}, cut: cut}
}

// door puts the headers on each request, and bounds each answer that is no stream
// of events. Those are bounded one by one.
type door struct {
	config Config
	inner  http.RoundTripper
}

// RoundTrip makes one request.
func (d door) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	for name, value := range d.config.Header {
		request.Header.Set(name, value.Reveal())
	}
	answer, err := d.inner.RoundTrip(request)
	if err == nil && !isStream(answer) {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxFrame)
	}
	return answer, err
}

// isStream reports whether the SDK reads an answer event by event. Every other one
// it reads whole, a refusal too, whatever that calls itself.
func isStream(answer *http.Response) bool {
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream" && answer.StatusCode >= 200 && answer.StatusCode < 300
}

// wires are the connections to one server, so that all of them can be cut.
type wires struct {
	dialer net.Dialer

	mu   sync.Mutex
	open map[net.Conn]bool
	over bool
}

// wire is one of them.
type wire struct {
	net.Conn
	of *wires
}

func (w *wires) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := w.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	w.open[conn] = true
	return wire{conn, w}, nil
}

// Close closes the connection.
func (c wire) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// cut closes them all, and those that are being made.
func (w *wires) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for conn := range w.open {
		_ = conn.Close()
	}
	clear(w.open)
}
