package gateway

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
)

// C-31.8: a client that reads just fast enough to make one page last for minutes is
// not read to for longer than others, once its token is gone.
func TestRevokedSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var revoked atomic.Bool
		w := newWorld(t, func(_ *kernel.Config, c *Config) {
			c.Authenticate = func(r *http.Request) (identity.Principal, error) {
				if revoked.Load() {
					return identity.Principal{}, errors.New("revoked")
				}
				return byToken(r)
			}
		})
		_, listener := w.piped(t)
		id := w.start()
		for range 6 {
			w.say(id, strings.Repeat("x", 32000))
		}
		conn := listener.dial()
		defer conn.Close()
		openStream(conn, id)
		response, err := http.ReadResponse(bufio.NewReader(slow{conn}), nil)
		if err != nil {
			t.Fatal(err)
		}
		revoked.Store(true)
		begun := time.Now()
		io.Copy(io.Discard, response.Body) // it is cut, or it ends
		if took := time.Since(begun); took < reauth/2 || took > reauth+2*writeWithin {
			t.Errorf("the stream went on for %v; want %v and a chunk", took, reauth)
		}
		w.wantEnd(EndRefused)
	})
}
