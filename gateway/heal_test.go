package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
)

// follower is what a client's Follow tells.
type follower struct {
	t      *testing.T
	events chan client.Event
}

// follow follows a conversation of ann's until the test ends. No error ends it
// before.
func follow(t *testing.T, c *client.Client, id string) follower {
	ctx, cancel := context.WithCancel(t.Context())
	f := follower{t, make(chan client.Event)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event, err := range c.Follow(ctx, id, nil) {
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			select {
			case f.events <- event:
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return f
}

// hears wants the next event to be of a kind.
func (f follower) hears(kind client.Kind) client.Event {
	f.t.Helper()
	select {
	case event := <-f.events:
		if event.Kind != kind {
			f.t.Fatalf("the next event is %+v; want %s", event, kind)
		}
		return event
	case <-time.After(2 * time.Minute):
		f.t.Fatalf("no event for two minutes; want %s", kind)
		return client.Event{}
	}
}

// reads wants a message and its answer, both missed or neither.
func (f follower) reads(text string, missed bool) {
	f.t.Helper()
	for range 2 {
		if event := f.hears(client.Message); event.Record.Text != text || event.Missed != missed {
			f.t.Errorf("missed %t: %+v; want %q, %t", event.Missed, event.Record, text, missed)
		}
	}
}

// on makes a client whose connections go to the listener that is set then.
func on(t *testing.T, listener *atomic.Pointer[pipeListener], wrap func(http.RoundTripper) http.RoundTripper) *client.Client {
	t.Helper()
	transport := &http.Transport{
		Protocols:   new(http.Protocols),
		DialContext: func(context.Context, string, string) (net.Conn, error) { return listener.Load().dial(), nil },
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New("http://x", "ann@acme", &http.Client{Transport: wrap(transport)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func unencryptedHTTP2(s *http.Server) {
	s.Protocols = new(http.Protocols)
	s.Protocols.SetUnencryptedHTTP2(true)
}

// A server that goes away over HTTP/2 lets its stream go on, is left for another,
// and is cut: the client misses nothing, and knows what was said meanwhile.
func TestClientOverGoAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.start()
		old, listener := w.piped(t, unencryptedHTTP2)
		_, next := w.piped(t, unencryptedHTTP2)
		var at atomic.Pointer[pipeListener]
		at.Store(listener)
		c := on(t, &at, func(transport http.RoundTripper) http.RoundTripper { return transport })
		f := follow(t, c, id)
		w.say(id, "one")
		if f.hears(client.Status).Resumed {
			t.Error("the first stream goes on from another")
		}
		f.reads("one", false)

		at.Store(next)
		gone := make(chan error, 1)
		go func() { gone <- old.Shutdown(t.Context()) }() // GOAWAY
		synctest.Wait()
		if _, err := c.Send(t.Context(), id, conversation.Message{Text: "two"}); err != nil {
			t.Errorf("Send while the old server goes: %v", err)
		}
		f.reads("two", false)
		old.Close()
		<-gone
		if lost := f.hears(client.Lost); lost.Err == nil || lost.Wait < 2*time.Second || lost.Wait > 6*time.Second { // C-30.1: its retry
			t.Errorf("lost: %+v", lost)
		}
		w.say(id, "three")
		if !f.hears(client.Status).Resumed {
			t.Error("the second stream goes on from none")
		}
		f.reads("three", true)
		w.say(id, "four")
		f.reads("four", false)
	})
}

// bearer adds a token that is good for this minute.
type bearer struct{ http.RoundTripper }

const minute = "2006-01-02T15:04"

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+time.Now().Format(minute))
	return b.RoundTripper.RoundTrip(r)
}

// C-31.8: whose tokens expire is asked for the next one, by a Transport such as
// that of oauth2, and follows on.
func TestClientWithTokensThatExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ *kernel.Config, c *Config) {
			c.Authenticate = func(r *http.Request) (identity.Principal, error) {
				if r.Header.Get("Authorization") != "Bearer "+time.Now().Format(minute) {
					return identity.Principal{}, errors.New("it has expired")
				}
				return *ann, nil
			}
		})
		id := w.start()
		_, listener := w.piped(t, unencryptedHTTP2)
		var at atomic.Pointer[pipeListener]
		at.Store(listener)
		f := follow(t, on(t, &at, func(transport http.RoundTripper) http.RoundTripper { return bearer{transport} }), id)
		for _, text := range []string{"one", "two", "three"} {
			f.hears(client.Status)
			w.say(id, text)
			f.reads(text, false)
			if lost := f.hears(client.Lost); !errors.Is(lost.Err, client.ErrUnauthorized) {
				t.Errorf("the stream ends with %v; want that its token has expired", lost.Err)
			}
		}
	})
}

// Over TLS, with a client of one's own; a certificate that nobody vouches for is no
// trouble that passes.
func TestClientOverTLS(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewUnstartedServer(w.handler)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of the second client
	server.StartTLS()
	t.Cleanup(server.Close)
	id := w.start()
	c := dial(t, server, "ann@acme")
	f := follow(t, c, id)
	f.hears(client.Status)
	if _, err := c.Send(t.Context(), id, conversation.Message{Text: "one"}); err != nil {
		t.Fatal(err)
	}
	f.reads("one", false)
	stranger, err := client.New(server.URL, "ann@acme", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = stranger.Send(t.Context(), id, conversation.Message{Text: "one"})
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok {
		t.Errorf("Send to a server of unknown certificate: %v", err)
	}
}
