package gateway

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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

// SSE-5, SSE-7 (finding 8): over HTTP/2 an idle stream outlives its write
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

// SSE-4: over HTTP/2 a stream whose client does not read ends by its deadline,
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
