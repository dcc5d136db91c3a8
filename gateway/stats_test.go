package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
)

// wantEnd wants one stream to have ended, under this cause and no other.
func (w *world) wantEnd(want StreamEnd) {
	w.t.Helper()
	counted := map[StreamEnd]uint64{}
	for end, n := range w.gateway.Stats().Ended {
		if n > 0 {
			counted[end] = n
		}
	}
	if diff := cmp.Diff(map[StreamEnd]uint64{want: 1}, counted); diff != "" {
		w.t.Errorf("ends of streams (-want +got):\n%s", diff)
	}
}

// Each stream is counted once, under what ended it (C-30.7, C-30.8, C-30.14,
// C-31.8, C-32.7, C-32.10).
func TestStreamEnds(t *testing.T) {
	var revoked atomic.Bool
	for want, end := range map[StreamEnd]func(w *world, id string, leave func()){
		EndClosed:   func(w *world, id string, _ func()) { w.end(id) },
		EndLifetime: func(*world, string, func()) { time.Sleep(lifetime) },
		EndDraining: func(w *world, _ string, _ func()) { w.gateway.Drain(context.Background()) },
		EndLeft:     func(_ *world, _ string, leave func()) { leave() },
		EndRefused:  func(*world, string, func()) { revoked.Store(true) },
		EndFailed:   func(w *world, _ string, _ func()) { w.store.OnRead(func(string) error { return errors.New("disk") }) },
	} {
		t.Run(string(want), func(t *testing.T) {
			revoked.Store(false)
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(_ *kernel.Config, c *Config) {
					c.Authenticate = func(r *http.Request) (identity.Principal, error) {
						if revoked.Load() {
							return identity.Principal{}, errors.New("revoked")
						}
						return byToken(r)
					}
				})
				id := w.start()
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				_, done := w.stream(ctx, id)
				synctest.Wait()
				if got := w.gateway.Stats().Open; got != 1 {
					t.Errorf("%d streams are open, want 1", got)
				}
				end(w, id, leave)
				<-done
				w.wantEnd(want)
				if got := w.gateway.Stats().Open; got != 0 {
					t.Errorf("%d streams are open behind the end", got)
				}
			})
		})
	}
}

// A client that takes nothing is counted as such over both protocols: the error
// of the write tells it over HTTP/1.1 alone.
func TestStreamEndsStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, listener := w.piped(t)
		conn := listener.dial()
		defer conn.Close()
		openStream(conn, w.start()) // and nothing is read
		time.Sleep(writeWithin + 2*time.Second)
		synctest.Wait()
		w.wantEnd(EndStalled)
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.start()
		response, err := over2(t, w).Do(request("GET", "http://x/v1/conversations/"+id+"/events", "ann@acme", ""))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		for range 5 { // more than the client's window
			w.say(id, strings.Repeat("x", 30_000))
		}
		time.Sleep(writeWithin + 2*time.Second)
		synctest.Wait()
		w.wantEnd(EndStalled)
	})
}

// Frames are counted by their event, bytes as they are written; the keys of the
// maps are there from the beginning.
func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLiveWorld(t, "otherwise\n  say \"One. \"\n  wait 1s\n  say \"Two.\"\n  wait 1s")
		id := w.start()
		before := w.gateway.Stats()
		tape, done := w.stream(t.Context(), id)
		synctest.Wait()
		w.turn(id, "hello")
		time.Sleep(10*time.Second + keepAlive)
		synctest.Wait()
		w.end(id)
		<-done
		got := w.gateway.Stats()
		frames := map[string]uint64{}
		for _, name := range tape.events() {
			if name == ":" {
				name = "comment"
			}
			frames[name]++
		}
		for name := range before.Frames {
			if got.Frames[name] != frames[name] {
				t.Errorf("%d frames of %q are counted, %d are on the tape", got.Frames[name], name, frames[name])
			}
		}
		if frames["delta"] != 2 || frames["comment"] != 1 || frames["message"] != 2 {
			t.Errorf("the tape has %v", frames)
		}
		if got.Bytes != uint64(len(tape.text())) {
			t.Errorf("%d bytes are counted, %d are on the tape", got.Bytes, len(tape.text()))
		}
		if len(got.Frames) != len(eventNames) || len(before.Frames) != len(eventNames) || len(before.Ended) != len(StreamEnds()) {
			t.Errorf("the stats have keys %v, %v", before, got)
		}
	})
}

// A request is named by its route, whatever stands in its place of an id; what
// takes no route has no name.
func TestPattern(t *testing.T) {
	if got := len(Patterns()); got != 13 {
		t.Errorf("%d patterns: %q", got, Patterns())
	}
	for _, test := range []struct{ method, path, want string }{
		{"GET", "/v1/conversations", "GET /v1/conversations"},
		{"HEAD", "/v1/conversations", "GET /v1/conversations"},
		{"POST", "/v1/conversations/abc/turns", "POST /v1/conversations/{id}/turns"},
		{"POST", "/v1/conversations/{id}/turns", "POST /v1/conversations/{id}/turns"},
		{"GET", "/v1/conversations/\x00%2f/events", "GET /v1/conversations/{id}/events"},
		{"GET", "/v1/conversations/abc/turns", ""},
		{"BREW", "/v1/conversations", ""},
		{"GET", "/v1/conversations/abc/../abc", ""},
		{"GET", "/v1/conversations//history", ""},
		{"GET", "/v1/", ""},
		{"GET", "/", ""},
	} {
		if got := Pattern(test.method, test.path); got != test.want {
			t.Errorf("Pattern(%q, %q) = %q, want %q", test.method, test.path, got, test.want)
		}
	}
}
