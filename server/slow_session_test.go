package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/parley-run/parley/gateway"
)

// slowBody says when it is read, and then does not come.
type slowBody struct{ reading, gone chan struct{} }

func (b slowBody) Read([]byte) (int, error) {
	b.reading <- struct{}{}
	<-b.gone
	return 0, io.ErrUnexpectedEOF
}

func (slowBody) Close() error { return nil }

// C-32.13: requests whose bodies are awaited keep nobody else behind their address
// from logging in, and are no guesses.
func TestSlowBodiesAtSession(t *testing.T) {
	h := newHall(t, nil)
	sessions := newSessions(h.callers, h.dir, func(*http.Request) bool { return false }, nil) // the contract would await the bodies
	body := slowBody{make(chan struct{}), make(chan struct{})}
	var all sync.WaitGroup
	for range 2 * failuresPerMinute {
		all.Go(func() {
			r := visit("POST", "")
			r.Body, r.ContentLength = body, 10
			got := httptest.NewRecorder()
			if sessions.ServeHTTP(got, r); got.Code != 400 {
				t.Errorf("a body that never came: %d %s; want 400", got.Code, got.Body)
			}
		})
		<-body.reading
	}
	for _, when := range []string{"while bodies are awaited", "when they have not come"} {
		got := httptest.NewRecorder()
		if sessions.ServeHTTP(got, visit("POST", h.link(ann))); got.Code != 201 {
			t.Errorf("a login %s: %d %s; want 201", when, got.Code, got.Body)
		}
		if when == "while bodies are awaited" {
			close(body.gone)
			all.Wait()
		}
	}
}

// C-32.6: at /session too a body that is too large is read, so that its sender is
// there for the 413, and the connection ends behind it.
func TestLargeBodyAtSession(t *testing.T) {
	h := newHall(t, nil)
	body := strings.NewReader(strings.Repeat(" ", gateway.MaxBodyBytes+1000))
	r := visit("POST", "")
	r.Body, r.ContentLength = io.NopCloser(body), body.Size()
	if got, _ := h.ask(r); got.Code != 413 || body.Len() != 0 || got.Header().Get("Connection") != "close" {
		t.Errorf("%d, %d bytes are left, %v; want 413, all read, and the end", got.Code, body.Len(), got.Header())
	}
}
