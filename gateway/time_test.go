package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
)

// stream opens a stream on a tape, in a bubble.
func (w *world) stream(ctx context.Context, id string) (*tape, <-chan time.Time) {
	tape, done := &tape{}, make(chan time.Time, 1)
	r := request("GET", "/v1/conversations/"+id+"/events", "ann@acme", "").WithContext(ctx)
	go func() {
		w.handler.ServeHTTP(tape, r)
		done <- time.Now()
	}()
	return tape, done
}

// C-30.12, check 28: a comment every 15 s of silence, and each write is flushed.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.start()
		ctx, cancel := context.WithCancel(t.Context())
		tape, done := w.stream(ctx, id)
		synctest.Wait()
		time.Sleep(14 * time.Second)
		w.say(id, "one")
		synctest.Wait()
		want := []string{"status", "message", "message"}
		if got := tape.events(); !slices.Equal(got, want) {
			t.Errorf("after 14 s: %v; want %v", got, want)
		}
		time.Sleep(keepAlive - time.Millisecond)
		synctest.Wait()
		if got := tape.events(); !slices.Equal(got, want) {
			t.Errorf("before the silence is 15 s long: %v; want %v", got, want)
		}
		time.Sleep(10*keepAlive + time.Millisecond)
		synctest.Wait()
		want = append(want, slices.Repeat([]string{":"}, 11)...)
		if got := tape.events(); !slices.Equal(got, want) {
			t.Errorf("after 11 silences: %v; want %v", got, want)
		}
		cancel()
		<-done
	})
}

// C-31.8, SSE-57, check 40: an open stream is asked again for whom its token stands, and
// ends when that is nobody, or somebody else; what is said then is not told.
func TestReauth(t *testing.T) {
	for name, test := range map[string]struct {
		later func(*http.Request) (identity.Principal, error)
		want  []string
	}{
		"revoked": {
			func(*http.Request) (identity.Principal, error) { return identity.Principal{}, errors.New("revoked") },
			[]string{"status", ":", "error"},
		},
		"somebody else's": {
			func(*http.Request) (identity.Principal, error) {
				return identity.Principal{Identity: identity.Identity{Tenant: identity.Some("acme"), Actor: "bob"}}, nil
			},
			[]string{"status", ":", "error"},
		},
		"still the same": {byToken, []string{"status", ":", ":", ":", "message", "message"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var changed atomic.Bool
				w := newWorld(t, func(_ *kernel.Config, c *Config) {
					c.Authenticate = func(r *http.Request) (identity.Principal, error) {
						if changed.Load() {
							return test.later(r)
						}
						return byToken(r)
					}
				})
				id := w.start()
				ctx, cancel := context.WithCancel(t.Context())
				tape, done := w.stream(ctx, id)
				synctest.Wait()
				changed.Store(true)
				time.Sleep(reauth + keepAlive + conversation.PollInterval)
				synctest.Wait()
				w.say(id, "one")
				synctest.Wait()
				if got := tape.events(); !slices.Equal(got, test.want) {
					t.Errorf("events %v; want %v", got, test.want)
				}
				if text := tape.text(); slices.Contains(test.want, "error") && !strings.HasSuffix(text, "data: {\"error\":\"unauthorized\"}\n\n") {
					t.Errorf("the stream ends with %q; want unauthorized", text)
				}
				cancel()
				<-done
			})
		})
	}
}

// C-30.7, SSE-47, check 41: a stream, whether or not anybody is still there, lives between 80 and 100 % of 15 min and says goodbye.
func TestLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.start()
		begun := time.Now()
		ends := map[time.Duration]bool{}
		for range 10 {
			tape, done := w.stream(t.Context(), id)
			defer func() {
				if got := tape.events(); got[len(got)-1] != "reconnect" {
					t.Errorf("the last event is %s; want reconnect", got[len(got)-1])
				}
			}()
			defer func() {
				lived := (<-done).Sub(begun)
				if ends[lived] = true; lived < lifetime*8/10 || lived > lifetime {
					t.Errorf("a stream lived %v", lived)
				}
			}()
		}
		time.Sleep(lifetime)
		synctest.Wait()
		if subscribed := w.store.Counts().Subscriptions; w.open() != 0 || subscribed != 0 { // though the requests live on
			t.Errorf("%d streams are open after 15 min, %d subscriptions live", w.open(), subscribed)
		}
	})
}

// C-18.3: with every notification lost, a stream is a poll interval late.
func TestStreamWithoutNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.start()
		w.store.Mute()
		ctx, cancel := context.WithCancel(t.Context())
		tape, done := w.stream(ctx, id)
		synctest.Wait()
		if _, err := w.client.SendTurn(t.Context(), ann, id, conversation.Message{Text: "one"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(conversation.PollInterval)
		synctest.Wait()
		if got := tape.events(); len(got) != 3 {
			t.Errorf("a poll interval later: %v; want both entries", got)
		}
		cancel()
		<-done
	})
}

// piped is a server in a bubble.
func (w *world) piped(t *testing.T, change ...func(*http.Server)) (*http.Server, *pipeListener) {
	listener := newPipeListener()
	server := &http.Server{Handler: w.handler}
	for _, change := range change {
		change(server)
	}
	go server.Serve(listener)
	t.Cleanup(func() {
		server.Close()
		time.Sleep(time.Second) // virtual; a connection that net/http cuts lingers
	})
	return server, listener
}

func openStream(conn net.Conn, id string) {
	fmt.Fprintf(conn, "GET /v1/conversations/%s/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ann@acme\r\n\r\n", id)
}

// SSE-53, checks 46 and 47: at shutdown streams are told to come back and end, at
// once where clients read and within 10 s where one does not; new ones are told
// the same.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		server, listener := w.piped(t)
		id := w.start()
		var bodies []*reader
		for range 20 {
			conn := listener.dial()
			defer conn.Close()
			openStream(conn, id)
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			r := newReader(response.Body)
			r.expect(t, eventStatus)
			bodies = append(bodies, r)
		}
		begun := time.Now()
		drained := make(chan error, 1)
		go func() { drained <- w.gateway.Drain(t.Context()) }()
		for _, r := range bodies {
			if e := r.expect(t, eventReconnect); e.retry == "" || e.data != "{}" {
				t.Errorf("the last event is %+v", e)
			}
			r.ended(t)
		}
		if err := <-drained; err != nil || time.Since(begun) > time.Second {
			t.Errorf("Drain: %v after %v", err, time.Since(begun))
		}
		tape, done := w.stream(t.Context(), id)
		<-done
		if got := tape.events(); !slices.Equal(got, []string{"reconnect"}) || tape.code != 200 {
			t.Errorf("a stream of a draining gateway: %d %v", tape.code, got)
		}
		if err := w.gateway.Drain(t.Context()); err != nil {
			t.Errorf("a second Drain: %v", err)
		}
		if err := server.Shutdown(t.Context()); err != nil || time.Since(begun) > 10*time.Second {
			t.Errorf("Shutdown: %v after %v", err, time.Since(begun))
		}
	})
}

// SSE-10, check 34: a client that does not read is cut when its write deadline passes;
// while draining not later than 8 s after its beginning. Its place is freed.
func TestStalledClient(t *testing.T) {
	for _, draining := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			_, listener := w.piped(t)
			id := w.start()
			conn := listener.dial()
			defer conn.Close()
			openStream(conn, id) // and nothing is read
			synctest.Wait()
			if w.open() != 1 {
				t.Fatalf("%d streams are open", w.open())
			}
			begun := time.Now()
			if draining {
				if err := w.gateway.Drain(t.Context()); err != nil || time.Since(begun) > drainWithin {
					t.Errorf("Drain: %v after %v", err, time.Since(begun))
				}
				return
			}
			time.Sleep(writeWithin + time.Second)
			synctest.Wait()
			if w.open() != 0 || w.store.Counts().Subscriptions != 0 {
				t.Errorf("%d streams are open, %d subscriptions live", w.open(), w.store.Counts().Subscriptions)
			}
		})
	}
}

// A client that reads, but too slowly for what there is, does not hold up a
// drain either.
func TestDrainOfSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, listener := w.piped(t)
		id := w.start()
		for range 10 {
			w.say(id, strings.Repeat("x", 32000))
		}
		conn := listener.dial()
		defer conn.Close()
		openStream(conn, id)
		var all sync.WaitGroup
		all.Go(func() { io.Copy(io.Discard, slow{conn}) })
		time.Sleep(time.Second)
		begun := time.Now()
		if err := w.gateway.Drain(t.Context()); err != nil || time.Since(begun) > drainWithin {
			t.Errorf("Drain: %v after %v", err, time.Since(begun))
		}
		all.Wait()
	})
}

// C-32.6, check 7: a client that sends its body in full before it reads gets the 413.
func TestTooLargeReadInFull(t *testing.T) {
	for _, size := range []int{MaxBodyBytes + 1, 300 << 10, MaxBodyBytes + drainBytes} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			_, listener := w.piped(t)
			conn := listener.dial() // it buffers nothing
			defer conn.Close()
			fmt.Fprintf(conn, "POST /v1/conversations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ann@acme\r\n"+
				"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n", size)
			if _, err := io.WriteString(conn, strings.Repeat(" ", size)); err != nil {
				t.Fatalf("a body of %d bytes is cut: %v", size, err)
			}
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("a body of %d bytes: %v", size, err)
			}
			body, _ := io.ReadAll(response.Body)
			if response.StatusCode != 413 || string(body) != `{"error":"too large"}` || !response.Close {
				t.Errorf("a body of %d bytes: %d %s, close %v", size, response.StatusCode, body, response.Close)
			}
		})
	}
}

// A body that never comes costs a place for 30 s.
func TestBodyThatNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, listener := w.piped(t)
		conn := listener.dial()
		defer conn.Close()
		begun := time.Now()
		fmt.Fprint(conn, "POST /v1/conversations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ann@acme\r\n"+
			"Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{")
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || response.StatusCode != 400 || time.Since(begun) != bodyWithin {
			t.Errorf("%+v, %v after %v; want a 400 after 30 s", response, err, time.Since(begun))
		}
	})
}

// A slow client that does read gets long texts whole: the deadline is for a
// chunk, not for a frame.
func TestSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, listener := w.piped(t)
		id := w.start()
		w.say(id, strings.Repeat("x", 32000))
		conn := listener.dial()
		defer conn.Close()
		openStream(conn, id)
		response, err := http.ReadResponse(bufio.NewReader(slow{conn}), nil)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		r := newReader(response.Body)
		r.expect(t, eventStatus)
		for range 2 {
			if _, record := r.message(t); len(record.Text) != 32000 {
				t.Errorf("a text of %d bytes", len(record.Text))
			}
		}
		if took := time.Since(begun); took < 2*writeWithin {
			t.Errorf("the client was not slow: %v", took)
		}
	})
}

// slow reads 5 KiB a second.
type slow struct{ io.Reader }

func (s slow) Read(p []byte) (int, error) {
	time.Sleep(200 * time.Millisecond)
	return s.Reader.Read(p[:min(len(p), 1024)])
}
