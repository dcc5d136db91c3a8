package gateway

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
)

// over2 is a client that speaks HTTP/2 to a server, both in a bubble.
func over2(t *testing.T, w *world) *http.Client {
	_, listener := w.piped(t, func(s *http.Server) {
		s.Protocols = new(http.Protocols)
		s.Protocols.SetUnencryptedHTTP2(true)
	})
	transport := &http.Transport{
		Protocols:   new(http.Protocols),
		HTTP2:       &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10},
		DialContext: func(context.Context, string, string) (net.Conn, error) { return listener.dial(), nil },
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// SSE-5, SSE-7, check 34 (finding 8): over HTTP/2 an idle stream outlives its write
// deadlines, since none is left armed.
func TestHTTP2IdleStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.start()
		client := over2(t, w)
		response, err := client.Do(request("GET", "http://x/v1/conversations/"+id+"/events", "ann@acme", ""))
		if err != nil || response.ProtoMajor != 2 {
			t.Fatalf("%+v, %v; want an answer over HTTP/2", response, err)
		}
		defer response.Body.Close()
		r := newReader(response.Body)
		r.expect(t, eventStatus)
		time.Sleep(10 * time.Minute)
		w.say(id, "later")
		if _, record := r.message(t); record.Text != "later" {
			t.Errorf("after 10 idle minutes: %+v", record)
		}
	})
}

// SSE-4, check 37: over HTTP/2 a stream whose client does not read ends by its deadline,
// and others on the connection go on.
func TestHTTP2StalledStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id, calm := w.start(), w.start()
		client := over2(t, w)
		open := func(id string) *http.Response {
			response, err := client.Do(request("GET", "http://x/v1/conversations/"+id+"/events", "ann@acme", ""))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { response.Body.Close() })
			return response
		}
		stalled, other := open(id), newReader(open(calm).Body)
		other.expect(t, eventStatus)
		for range 5 { // more than the client's window
			w.say(id, strings.Repeat("x", 30_000))
		}
		time.Sleep(writeWithin + time.Second)
		synctest.Wait()
		if open := w.open(); open != 1 {
			t.Errorf("%d streams are open; want the other one", open)
		}
		w.say(calm, "still here")
		if _, record := other.message(t); record.Text != "still here" {
			t.Errorf("the other stream: %+v", record)
		}
		stalled.Body.Close()
	})
}

// A body that is too large costs its own exchange, not the connection that
// others share.
func TestHTTP2TooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		client := over2(t, w)
		for _, size := range []int{MaxBodyBytes + 1, 10} {
			response, err := client.Do(request("POST", "http://x/v1/conversations", "ann@acme", string(make([]byte, size))))
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if want := map[bool]int{true: 413, false: 400}[size > MaxBodyBytes]; response.StatusCode != want || response.Close {
				t.Errorf("a body of %d bytes: %d, close %v; want %d", size, response.StatusCode, response.Close, want)
			}
		}
	})
}

// SSE-51: fifty tabs, each with a stream of its own, share one connection of
// HTTP/2, where HTTP/1.1 would have room for six; each is a principal of its own,
// or the eighth would be the last (C-32.7).
func TestSSE51FiftyTabs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := limited(t)
		w.gateway.config.Authenticate = func(r *http.Request) (identity.Principal, error) {
			return identity.Principal{Identity: identity.Identity{Actor: r.Header.Get("X-Tab")}}, nil
		}
		client := over2(t, w)
		var conns atomic.Int64
		transport := client.Transport.(*http.Transport)
		dial := transport.DialContext
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conns.Add(1)
			return dial(ctx, network, address)
		}
		tabs := map[string]*reader{}
		for i := range 50 {
			tab := &identity.Principal{Identity: identity.Identity{Actor: fmt.Sprint("tab ", i)}}
			id, err := w.client.Start(t.Context(), tab, "")
			if err != nil {
				t.Fatal(err)
			}
			r := request("GET", "http://x/v1/conversations/"+id+"/events", "", "")
			r.Header.Set("X-Tab", tab.Actor)
			response, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.ProtoMajor != 2 || response.Header.Get("Connection") != "" || response.Header.Get("Transfer-Encoding") != "" { // SSE-48
				t.Errorf("tab %d: HTTP/%d, %v", i, response.ProtoMajor, response.Header)
			}
			tabs[id] = newReader(response.Body)
			tabs[id].expect(t, eventStatus)
			if _, err := w.client.SendTurn(t.Context(), tab, id, conversation.Message{Text: id}); err != nil {
				t.Fatal(err)
			}
		}
		for id, r := range tabs {
			if _, record := r.message(t); record.Text != id {
				t.Errorf("the tab of %s hears %q", id, record.Text)
			}
		}
		if conns.Load() != 1 || w.open() != 50 {
			t.Errorf("%d connections, %d streams", conns.Load(), w.open())
		}
	})
}
