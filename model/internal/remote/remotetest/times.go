package remotetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/model"
)

// times lets a service be slow.
func (d Dialect) times(t *testing.T) {
	every := func(wait time.Duration, event string) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			send(w, d.Begin)
			for {
				select {
				case <-req.Context().Done():
					return
				case <-time.After(wait):
					send(w, event)
				}
			}
		}
	}
	silent := func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }
	for _, tt := range []struct {
		name    string
		limits  model.Limits
		handler http.HandlerFunc
		took    time.Duration
	}{
		{"no answer", model.Limits{}, silent, model.DefaultIdle},
		{"no delta", model.Limits{}, func(w http.ResponseWriter, req *http.Request) {
			send(w, d.Begin)
			silent(w, req)
		}, model.DefaultIdle},
		{"no end", model.Limits{}, every(50*time.Second, d.Text(`"a"`)), model.DefaultTotal},
		{"thoughts without end", model.Limits{}, every(50*time.Second, d.Think), model.DefaultTotal},
		{"limits of its own", model.Limits{Idle: 3 * time.Second, Total: 5 * time.Second}, every(2*time.Second, d.Think), 5 * time.Second},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			start := time.Now()
			_, _, err := d.serve(t, Config{Limits: tt.limits}, tt.handler).ask(t)
			check(t, err, model.ErrTimeout, noRetry)
			if took := time.Since(start); took != tt.took {
				t.Errorf("it took %v, want %v", took, tt.took)
			}
		})
	}
	bubble(t, "a deadline of the caller", func(t *testing.T) {
		s := d.serve(t, Config{}, silent)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := model.Collect(s.model.Stream(ctx, request()), nil)
		check(t, err, context.DeadlineExceeded, noRetry)
	})
	bubble(t, "an answer that comes piece by piece", func(t *testing.T) {
		var at []time.Duration
		start := time.Now()
		s := d.serve(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
			send(w, d.Begin)
			for range 3 {
				<-time.After(time.Second)
				send(w, d.Text(`"a"`))
			}
			send(w, d.End(model.FinishStop))
		})
		_, err := model.Collect(s.model.Stream(t.Context(), request()), func(string) { at = append(at, time.Since(start)) })
		if got := fmt.Sprint(at); err != nil || got != "[1s 2s 3s]" {
			t.Errorf("deltas at %s, %v, want each as it is sent", got, err)
		}
	})
}

// unreachable asks where nobody answers.
func (d Dialect) unreachable(t *testing.T) {
	bubble(t, "connection refused", func(t *testing.T) {
		refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
		m, err := d.Open(Config{BaseURL: "http://example.com/base", HTTPClient: &http.Client{Transport: &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, refused },
		}}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = model.Collect(m.Stream(t.Context(), request()), nil)
		check(t, err, model.ErrUnavailable, 0)
		if text := err.Error(); !strings.Contains(text, "connection refused") || strings.Contains(text, "/base") {
			t.Errorf("error = %q, want the reason in it and not the whole address", err)
		}
	})
}

// environment shows that nothing of the environment gets into a request.
func (d Dialect) environment(t *testing.T) {
	for name, value := range d.Env {
		t.Setenv(name, value)
	}
	for name, secret := range map[string]identity.Secret{"with a key": identity.NewSecret(key), "without a key": {}} {
		bubble(t, name, func(t *testing.T) {
			var header http.Header
			s := d.serveAs(t, Config{APIKey: secret}, func(w http.ResponseWriter, req *http.Request) {
				header = req.Header.Clone()
				send(w, d.Begin, d.End(model.FinishStop))
			})
			if _, _, err := s.ask(t); err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprint(header)
			for name, value := range d.Env {
				if strings.Contains(text, value) {
					t.Errorf("%s is in the request's headers: %s", name, text)
				}
			}
			if sent := !secret.IsZero(); strings.Contains(text, key) != sent || strings.Contains(text, "placeholder") {
				t.Errorf("the headers are %s, want the key in them: %v", text, sent)
			}
			for name := range header {
				switch name {
				case "Accept", "Accept-Encoding", "Anthropic-Version", "Authorization", "Content-Length", "Content-Type", "User-Agent", "X-Api-Key":
				default:
					t.Errorf("header %s is sent, which nobody asked for", name)
				}
			}
		})
	}
}
