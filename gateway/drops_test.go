package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
)

// hesitant is byToken, but that it does not answer a request that says so until
// its client is gone.
func hesitant(asked *atomic.Int64) func(*kernel.Config, *Config) {
	return func(_ *kernel.Config, c *Config) {
		c.Authenticate = func(r *http.Request) (identity.Principal, error) {
			if r.Header.Get("X-Hesitate") != "" {
				asked.Add(1)
				<-r.Context().Done()
			}
			return byToken(r)
		}
	}
}

// C-31.11: a connection that is dropped while Authenticate blocks holds no place
// then, and none after it.
func TestDroppedWhileAuthenticating(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		w := newWorld(t, hesitant(&asked))
		p := w.peers(t, nil)
		id := w.start()
		for _, two := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for range 20 {
				r := request("GET", "http://x/v1/conversations/"+id+"/events", "ann@acme", "").WithContext(ctx)
				r.Header.Set("X-Hesitate", "yes")
				all.Go(func() { p.drop(two, r, 1<<20) })
			}
			synctest.Wait()
			if asked.Swap(0) != 20 || w.open() != 0 {
				t.Errorf("HTTP/2 %t: %d places are taken before anybody is let in", two, w.open())
			}
			cancel()
			all.Wait()
			synctest.Wait()
			if open, subscribed := w.open(), w.store.Counts().Subscriptions; open != 0 || subscribed != 0 {
				t.Errorf("HTTP/2 %t: %d streams and %d subscriptions are left", two, open, subscribed)
			}
		}
	})
}

// drop sends a request, reads so many bytes of the answer, and drops it, at the
// latest when the request's context is done.
func (p *peers) drop(two bool, r *http.Request, most int64) {
	if two {
		if response, err := p.two.RoundTrip(r); err == nil {
			io.CopyN(io.Discard, response.Body, most)
			response.Body.Close()
		}
		return
	}
	conn := p.listener.dial()
	defer context.AfterFunc(r.Context(), func() { conn.Close() })()
	defer conn.Close()
	if r.Write(conn) == nil {
		io.CopyN(io.Discard, conn, most)
	}
}

// dropHead sends the beginning of a request and drops the connection.
func (p *peers) dropHead(r *http.Request) {
	var head bytes.Buffer
	r.Write(&head)
	conn := p.listener.dial()
	io.CopyN(conn, &head, rand.Int64N(int64(head.Len())))
	conn.Close()
}

// C-30.11, C-31.11, C-32.13, SSE-54, SSE-56: connections that are dropped at any
// moment leave nothing: in the head of the request, while the caller is
// authenticated, while they are authorized, in the head of the answer, in
// mid-stream.
func TestManyConnects(t *testing.T) {
	many := 10_000
	if underRace {
		many = 1_000
	}
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		w := newWorld(t, hesitant(&asked))
		p := w.peers(t, nil)
		id := w.start()
		w.say(id, "one", "two")
		w.store.OnRead(func(string) error { runtime.Gosched(); return nil })
		settle := func() int {
			time.Sleep(time.Minute) // whatever lingers
			p.two.CloseIdleConnections()
			synctest.Wait()
			return goroutines()
		}
		before := settle()
		var all sync.WaitGroup
		for worker := range 20 {
			all.Go(func() {
				for range many / 20 {
					p.dropSomewhere(id, worker%2 == 1)
				}
			})
		}
		all.Wait()
		after := settle()
		if open, subscribed := w.open(), w.store.Counts().Subscriptions; open != 0 || subscribed != 0 || len(w.gateway.streams.of) != 0 {
			t.Errorf("%d streams of %d callers and %d subscriptions are left", open, len(w.gateway.streams.of), subscribed)
		}
		if after != before || asked.Load() == 0 {
			t.Errorf("%d goroutines, and %d before; %d were dropped while they were authenticated", after, before, asked.Load())
		}
		if all := w.reports(); len(all) != 0 {
			t.Errorf("reported: %v", all)
		}
	})
}

// dropSomewhere asks for a stream and drops it at a random moment.
func (p *peers) dropSomewhere(id string, two bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := request("GET", "http://x/v1/conversations/"+id+"/events", "ann@acme", "").WithContext(ctx)
	switch rand.IntN(4) {
	case 0:
		p.dropHead(r)
	case 1:
		r.Header.Set("X-Hesitate", "yes")
		time.AfterFunc(rand.N(10*time.Millisecond), cancel)
		p.drop(two, r, 1<<20)
	case 2: // at once, wherever it is
		go cancel()
		p.drop(two, r, 1<<20)
	case 3:
		p.drop(two, r, rand.Int64N(1_000))
	}
}

// SSE-54: streams that open and end, words, entries, closes and the end of the
// gateway at the same time; the race detector looks on.
func TestManyStorms(t *testing.T) {
	rounds := 15
	if underRace {
		rounds = 5
	}
	for range rounds {
		synctest.Test(t, storm)
	}
}

func storm(t *testing.T) {
	w := newLiveWorld(t, "otherwise\n  reply 1ms")
	p := w.peers(t, nil)
	ids := []string{w.start(), w.start()}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				r := request("GET", "http://x/v1/conversations/"+ids[i%2]+"/events", "ann@acme", "").WithContext(ctx)
				p.drop(i < 4, r, rand.Int64N(4_000))
				time.Sleep(rand.N(2 * time.Millisecond))
			}
		})
	}
	for _, id := range ids {
		all.Go(func() {
			for range 10 {
				w.ask(request("POST", "/v1/conversations/"+id+"/turns", "ann@acme", `{"text":"some more words"}`))
				time.Sleep(rand.N(5 * time.Millisecond))
			}
			w.ask(request("POST", "/v1/conversations/"+id+"/close", "ann@acme", ""))
		})
	}
	time.Sleep(rand.N(100 * time.Millisecond))
	for range 2 {
		all.Go(func() {
			if err := w.gateway.Drain(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("Drain: %v", err)
			}
		})
	}
	time.Sleep(rand.N(20 * time.Millisecond))
	cancel()
	all.Wait()
	synctest.Wait()
	if open, subscribed := w.open(), w.store.Counts().Subscriptions; open != 0 || subscribed != 0 {
		t.Errorf("%d streams and %d subscriptions are left", open, subscribed)
	}
}

// C-30.11, C-32.12: a stream that announces a body which never comes is refused at
// once. net/http would wait for it for half a minute before the head of the
// stream, blind to a client that leaves, and the stream would keep its slot.
func TestStreamWithBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, listener := w.piped(t)
		id := w.start()
		for _, announced := range []string{"Content-Length: 10", "Transfer-Encoding: chunked"} {
			conn := listener.dial()
			fmt.Fprintf(conn, "GET /v1/conversations/%s/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ann@acme\r\n%s\r\n\r\n", id, announced)
			conn.SetReadDeadline(time.Now().Add(time.Second))
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || response.StatusCode != 400 || w.open() != 0 {
				t.Errorf("%s: %v, %v, and %d streams are open; want a 400, and none", announced, response, err, w.open())
			}
			conn.Close()
		}
	})
}
