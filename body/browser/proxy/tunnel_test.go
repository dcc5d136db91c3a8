package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// listen starts a server of bare connections, each served by its own call.
func listen(t *testing.T, each func(*net.TCPConn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				each(c.(*net.TCPConn))
			}()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-ended
	})
	return listener.Addr().String()
}

// echo says everything again, and ends when its peer has.
func echo(c *net.TCPConn) { io.Copy(c, c) }

var public = names{"public.example": "1.1.1.1"}

// exchange sends a line and wants it back.
func exchange(t *testing.T, c net.Conn, r *bufio.Reader, line string) {
	t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := r.ReadString('\n'); err != nil || got != line+"\n" {
		t.Fatalf("through the tunnel came %q, %v, want %q", got, err, line)
	}
}

// A tunnel carries both ways, also what came before it stood, and hands on that
// one end has finished.
func TestTunnel(t *testing.T) {
	p, world := start(t, Config{Resolver: public}, listen(t, echo))
	c, r := dialProxy(t, p)
	answer := say(t, c, r, http.MethodConnect, "CONNECT public.example:443 HTTP/1.1\r\nHost: public.example:443\r\n\r\nearly\n")
	if answer.StatusCode != 200 {
		t.Fatalf("CONNECT = %d, want 200", answer.StatusCode)
	}
	if got, err := r.ReadString('\n'); err != nil || got != "early\n" {
		t.Errorf("first came %q, %v, want what was sent with the request", got, err)
	}
	exchange(t, c, r, "hello")
	if _, err := io.WriteString(c, "last"); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "last" {
		t.Errorf("after the end came %q, %v, want the rest of the echo", got, err)
	}
	for open := 1; open > 0; runtime.Gosched() { // nothing of it stays open
		p.open.mu.Lock()
		open = len(p.open.open)
		p.open.mu.Unlock()
	}
	if dialled, _ := world.seen(); len(dialled) != 1 || dialled[0] != "1.1.1.1:443" {
		t.Errorf("dialled %v, want the one address", dialled)
	}
}

// A tunnel ends though one of its ends never does.
func TestHalfClosedTunnelEnds(t *testing.T) {
	silent := make(chan struct{})
	p, _ := start(t, Config{Resolver: public, halfOpen: time.Millisecond}, listen(t, func(c *net.TCPConn) {
		io.Copy(io.Discard, c)
		<-silent // says nothing, closes nothing
	}))
	defer close(silent)
	c, r, _ := connect(t, p, "public.example:443")
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || len(got) != 0 {
		t.Errorf("the tunnel ended with %q, %v", got, err)
	}
}

// When the server ends, the client hears of it.
func TestServerEndsTunnel(t *testing.T) {
	p, _ := start(t, Config{Resolver: public, halfOpen: time.Millisecond}, listen(t, func(c *net.TCPConn) { io.WriteString(c, "bye") }))
	_, r, _ := connect(t, p, "public.example:443")
	if got, err := io.ReadAll(r); err != nil || string(got) != "bye" {
		t.Errorf("the tunnel ended with %q, %v, want bye", got, err)
	}
}

// upgrade is a server that speaks another protocol after the head, and echoes.
func upgrade(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Sec-Websocket-Key") != "key" {
		http.Error(w, "no upgrade", http.StatusBadRequest)
		return
	}
	c, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	io.Copy(c, buffered)
}

const upgrading = "GET http://public.example/ HTTP/1.1\r\nHost: public.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: key\r\n\r\n"

// A WebSocket goes through a request of http as well, and ends likewise.
func TestUpgrade(t *testing.T) {
	p, _ := start(t, Config{Resolver: public}, serve(t, upgrade))
	c, r := dialProxy(t, p)
	if answer := say(t, c, r, http.MethodGet, upgrading); answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the answer to an upgrade is %d, want 101", answer.StatusCode)
	}
	exchange(t, c, r, "hello")
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || len(got) != 0 {
		t.Errorf("the WebSocket ended with %q, %v", got, err)
	}
}

// Close ends what is open: a tunnel, an upgraded request, an answer that does not
// come to its end, a request that waits for a dial, a client that says nothing.
func TestCloseEndsAll(t *testing.T) {
	ended := make(chan string, 4)
	tunnels := listen(t, func(c *net.TCPConn) { io.Copy(c, c); ended <- "tunnel" })
	p, _ := start(t, Config{Resolver: public}, tunnels)
	c, r, _ := connect(t, p, "public.example:443")
	exchange(t, c, r, "hello")

	upgrades, _ := start(t, Config{Resolver: public}, serve(t, upgrade))
	u, ur := dialProxy(t, upgrades)
	say(t, u, ur, http.MethodGet, upgrading)
	exchange(t, u, ur, "hello")

	streams, _ := start(t, Config{Resolver: public}, serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100") // or it would be flushed anyway
		io.WriteString(w, "begin\n")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		ended <- "stream"
	}))
	s, sr := dialProxy(t, streams)
	stream := say(t, s, sr, http.MethodGet, "GET http://public.example/ HTTP/1.1\r\nHost: public.example\r\n\r\n")
	if line, err := bufio.NewReader(stream.Body).ReadString('\n'); line != "begin\n" {
		t.Fatalf("the stream begins with %q, %v: it was held back", line, err)
	}

	waits, _ := start(t, Config{Resolver: waiting{ended}}, "")
	w, _ := dialProxy(t, waits)
	if _, err := io.WriteString(w, "POST http://public.example/ HTTP/1.1\r\nHost: public.example\r\nContent-Length: 9\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-ended; got != "lookup" {
		t.Fatalf("%s ended before anything was closed", got)
	}
	silent, sir := dialProxy(t, p)
	defer silent.Close()

	for _, each := range []*Proxy{p, upgrades, streams, waits, p} {
		if err := each.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	}
	for name, reader := range map[string]io.Reader{"tunnel": r, "upgrade": ur, "silent client": sir} {
		if got, _ := io.ReadAll(reader); len(got) != 0 {
			t.Errorf("after Close the %s still says %q", name, got)
		}
	}
	if both := <-ended + <-ended; both != "tunnelstream" && both != "streamtunnel" {
		t.Errorf("the servers' ends that ended are %s, want the tunnel's and the stream's", both)
	}
	if _, err := net.Dial("tcp", p.Addr()); err == nil {
		t.Error("a closed proxy still listens")
	}
}

// waiting is a resolver that says that it was asked and waits for the end of its
// ctx.
type waiting struct{ asked chan<- string }

func (w waiting) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	w.asked <- "lookup"
	<-ctx.Done()
	return nil, ctx.Err()
}

// Above the bound a connection is closed, and when one has gone there is room.
func TestBound(t *testing.T) {
	p, _ := start(t, Config{Resolver: public}, listen(t, echo))
	var first net.Conn
	for range maxConnections / 2 { // each tunnel has two
		c, r, answer := connect(t, p, "public.example:443")
		if answer.StatusCode != 200 {
			t.Fatalf("CONNECT = %d, want 200", answer.StatusCode)
		}
		exchange(t, c, r, "hello")
		if first == nil {
			first = c
		}
	}
	answered := func() bool {
		c, r := dialProxy(t, p)
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		answer, err := http.ReadResponse(r, nil)
		if err == nil {
			answer.Body.Close()
		}
		return err == nil
	}
	if answered() {
		t.Error("a connection above the bound is answered")
	}
	first.Close()
	for !answered() { // until the proxy has heard of it
	}
}

// Close ends a tunnel whose far end does not take what it is sent.
func TestCloseEndsBlockedTunnel(t *testing.T) {
	p, _ := start(t, Config{Resolver: public}, "")
	near, far := net.Pipe()
	defer far.Close()
	p.config.dial = func(context.Context, netip.AddrPort) (net.Conn, error) { return near, nil }
	c, _, _ := connect(t, p, "public.example:443")
	if _, err := io.WriteString(c, "two"); err != nil {
		t.Fatal(err)
	}
	if _, err := far.Read(make([]byte, 1)); err != nil { // the write has begun, and does not end
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
}

// When Close has returned, nobody is told of a refusal any more.
func TestCloseWaitsForRequests(t *testing.T) {
	p, _ := start(t, Config{}, "")
	telling, told := make(chan struct{}), atomic.Bool{}
	p.config.Refused = func(string, string) {
		close(telling)
		<-p.ctx.Done()
		for range 10_000 { // a Close that did not wait would have returned
			runtime.Gosched()
		}
		told.Store(true)
	}
	c, _ := dialProxy(t, p)
	if _, err := io.WriteString(c, "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-telling
	if err := p.Close(); err != nil || !told.Load() {
		t.Errorf("Close() = %v while a refusal was being told", err)
	}
}

// A connection that was dialled while the proxy was closed is closed too.
func TestNoConnectionAfterClose(t *testing.T) {
	var open connections
	open.close()
	near, far := net.Pipe()
	defer far.Close()
	if _, ok := open.add(near); ok {
		t.Error("a connection was taken in after the close")
	}
	if _, err := near.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a write to it = %v, want that it is closed", err)
	}
}
