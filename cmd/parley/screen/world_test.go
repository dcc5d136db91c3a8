package screen

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-run/parley/client"
)

// transport answers requests.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// T26: a thread that is opened while the server is away for an hour is shown when that
// is back. What the server refuses is told at once.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := time.Now().Add(time.Hour)
		server, err := client.New("http://server.invalid", "token", &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
			if time.Now().Before(back) {
				return nil, errors.New("connection refused")
			}
			body := io.NopCloser(strings.NewReader(`{"error":"not found"}`))
			return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		news := make(chan tea.Msg, 1)
		w := &world{ctx: t.Context(), server: server, tell: func(msg tea.Msg) { news <- msg }}
		w.carryOut(open{visit: 1, id: "first"})
		got, ok := (<-news).(opened)
		if late := time.Since(back); !ok || got.visit != 1 || refusal(got.err) != "there is no such conversation of yours" || late < 0 || late > 5*time.Second {
			t.Errorf("after %v: %+v, want the server's refusal soon after it is back", late, got)
		}
		w.working.Wait()

		ctx, leave := context.WithCancel(t.Context())
		back = time.Now().Add(time.Hour)
		w = &world{ctx: ctx, server: server, tell: func(tea.Msg) {}}
		w.carryOut(list{})
		time.AfterFunc(2*time.Minute, leave)
		w.working.Wait() // who leaves waits for nobody
	})
}
