package gateway

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
)

// SSE-9: a token that is good for another three seconds opens a stream, which lives
// until it is asked again; who comes back then is told 401, which ends a native
// EventSource. Nobody is asked in a hot loop.
func TestSSE9TokenAboutToExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, until := 0, time.Now().Add(3*time.Second)
		w := newWorld(t, func(_ *kernel.Config, c *Config) {
			c.Authenticate = func(r *http.Request) (identity.Principal, error) {
				if asked++; !time.Now().Before(until) {
					return identity.Principal{}, errors.New("expired")
				}
				return byToken(r)
			}
		})
		id := w.start()
		begun := time.Now()
		tape, done := w.stream(t.Context(), id)
		lived := (<-done).Sub(begun)
		if lived < 3*time.Second || lived > reauth+conversation.PollInterval || asked != 2 {
			t.Errorf("the stream lived %v, and it was asked %d times who it is; want 30 s and twice", lived, asked)
		}
		if names := tape.events(); !slices.Equal(names, []string{"status", ":", "error"}) || !strings.HasSuffix(tape.text(), "data: {\"error\":\"unauthorized\"}\n\n") {
			t.Errorf("the stream was %q", tape.text())
		}
		r := request("GET", "/v1/conversations/"+id+"/events", "ann@acme", "")
		r.Header.Set("Last-Event-ID", "0.0")
		if got := w.ask(r); got.Code != 401 {
			t.Errorf("who comes back is told %d; want 401", got.Code)
		}
	})
}

// C-31.8, C-31.9, SSE-57, check 40: an open stream ends when its conversation is
// closed to its caller, and when nobody can say whether it is; before a comment is
// due, and before anything that was said since is told.
func TestPolicyChange(t *testing.T) {
	secret := errors.New("disk at QWERTZ")
	for want, failure := range map[string]error{"not found": nil, "internal": secret} {
		synctest.Test(t, func(t *testing.T) {
			other := newWorld(t) // where the conversation is nobody's, or nobody knows
			other.store.OnRead(func(string) error { return failure })
			asked := 0
			var w *world
			w = newWorld(t, func(_ *kernel.Config, c *Config) {
				c.Authenticate = func(r *http.Request) (identity.Principal, error) {
					if asked++; asked == 2 {
						w.gateway.client = other.client
					}
					return byToken(r)
				}
			})
			id := w.start()
			begun := time.Now()
			tape, done := w.stream(t.Context(), id)
			if lived := (<-done).Sub(begun); lived > reauth+conversation.PollInterval {
				t.Errorf("%s: the stream lived %v", want, lived)
			}
			if text := tape.text(); !strings.Contains(text, "event: error\ndata: {\"error\":\""+want+"\"") || strings.Contains(text, "QWERTZ") {
				t.Errorf("the stream was %q; want %s", text, want)
			}
		})
	}
}
