package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// vanishing is a connection whose client can go without a word: nothing comes from it
// any more, and what it is sent is taken by the buffers on the way, or by nobody.
type vanishing struct {
	net.Conn
	gone    atomic.Bool
	buffers bool
	closed  chan struct{}
}

func (v *vanishing) Read(p []byte) (int, error) {
	for {
		n, err := v.Conn.Read(p)
		switch {
		case err != nil || !v.gone.Load():
			return n, err
		case !v.buffers:
			<-v.closed
		}
	}
}

func (v *vanishing) Write(p []byte) (int, error) {
	if v.gone.Load() {
		return len(p), nil
	}
	return v.Conn.Write(p)
}

// SSE-10, SSE-11, check 37: over HTTP/2 a client that vanishes while its stream is
// idle frees its place within 45 s, since it answers no ping; one that is there keeps
// it.
func TestSSE11VanishedHTTP2Client(t *testing.T) {
	for _, buffers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) { vanish(t, buffers) })
	}
}

func vanish(t *testing.T, buffers bool) {
	listener := pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	ended := make(chan time.Time, 1)
	idle := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "event: status\n\n")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		ended <- time.Now()
	})
	s := newHTTPServer(idle, door{h2c: true}, newWorld(t).config.Log)
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	mine, theirs := net.Pipe()
	conn := &vanishing{Conn: mine, buffers: buffers, closed: make(chan struct{})}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols, DialContext: func(context.Context, string, string) (net.Conn, error) {
		listener.conns <- theirs
		return conn, nil
	}}
	response, err := (&http.Client{Transport: transport}).Get("http://x/")
	if err != nil || response.ProtoMajor != 2 {
		t.Fatalf("%+v, %v", response, err)
	}
	time.Sleep(10 * time.Minute)
	select {
	case at := <-ended:
		t.Fatalf("a client that is there lost its stream %v ago", time.Since(at))
	default:
	}
	conn.gone.Store(true)
	begun := time.Now()
	if took := (<-ended).Sub(begun); took > 45*time.Second {
		t.Errorf("the place of a client that has vanished is free after %v", took)
	}
	response.Body.Close()
	close(conn.closed)
	mine.Close()
	transport.CloseIdleConnections()
	s.Close()
	<-served
}
