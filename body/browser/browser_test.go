package browser

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/bodytest"
	"github.com/parley-run/parley/internal/browsertest"
)

// needChromium skips a test that needs Chromium where there is none. In CI what
// is missing fails.
func needChromium(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts Chromium")
	}
	browsertest.Need(t)
}

// site is a small website, on a port that the proxy lets through.
func site(t *testing.T, pages map[string]string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, page)
	}))
	t.Cleanup(server.Close)
	return server
}

// open makes an adapter that reaches a site.
func open(t *testing.T, server *httptest.Server, change func(*Config)) *Browser {
	t.Helper()
	config := Config{Directory: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	if server != nil {
		config.Allow = []string{server.Listener.Addr().String()}
	}
	if change != nil {
		change(&config)
	}
	b, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return b
}

// processes counts what runs with a profile, past the adapter.
func processes(profile string) (n int) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		text, _ := os.ReadFile(line)
		if bytes.Contains(text, []byte(profile+"\x00")) || bytes.Contains(text, []byte(profile+" ")) {
			n++
		}
	}
	return n
}

var operations atomic.Int64

// effect makes an effect that may begin.
func effect(of body.Incarnation, action string, input any) body.Effect {
	text, err := json.Marshal(input)
	if input == nil {
		text = nil
	}
	if err != nil {
		panic(err)
	}
	n := int(operations.Add(1))
	return body.Effect{
		Incarnation: of, Operation: fmt.Sprintf("%s.%d", of, n), Number: n, Action: action, Input: jsontext.Value(text),
		Begin: func(context.Context) error { return nil },
		Note:  func(context.Context, jsontext.Value) error { return nil },
	}
}

// do carries out an effect that has to succeed.
func do[T any](t *testing.T, b *Browser, of body.Incarnation, action string, input any) (result T) {
	t.Helper()
	text, err := b.Perform(t.Context(), effect(of, action, input))
	if err != nil {
		t.Fatalf("Perform(%s) = %v", action, err)
	}
	if err := json.Unmarshal(text, &result, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("Perform(%s) = %s: %v", action, text, err)
	}
	return result
}

// L-31.3: a real Chromium is held against the contract of every body.
func TestContract(t *testing.T) {
	needChromium(t)
	const say = `<title></title><script>
		const here = localStorage.mark + document.cookie + window.mark + getSelection();
		%s document.title = here</script>`
	server := site(t, map[string]string{
		"/":     "<title>hello</title>",
		"/mark": fmt.Sprintf(say, "localStorage.mark = '"+bodytest.Mark+"'; document.cookie = 'mark="+bodytest.Mark+"; max-age=9999'; "),
		"/look": fmt.Sprintf(say, ""),
	})
	step := func(action string, input any) bodytest.Step {
		return bodytest.Step{Action: action, Input: effect("", action, input).Input}
	}
	bodytest.Run(t, func(t *testing.T) bodytest.Subject {
		b := open(t, server, nil)
		return bodytest.Subject{
			Adapter: b,
			Act:     step(Open, OpenInput{server.URL}),
			Leave:   step(Open, OpenInput{server.URL + "/mark"}),
			Look:    step(Open, OpenInput{server.URL + "/look"}),
			Hang:    step(Evaluate, EvaluateInput{"for (;;) {}"}),
			Unknown: step("fly", nil),
			Bad:     step(Open, OpenInput{"file:///etc/passwd"}),
			Alive:   func(of body.Incarnation) bool { return processes(b.profile(of)) > 0 },
			Reopen: func(t *testing.T) body.Adapter {
				return open(t, server, func(c *Config) { c.Directory = b.config.Directory })
			},
			Idle: func(ctx context.Context, of body.Incarnation) error {
				b.mu.Lock()
				l := b.lives[of]
				b.mu.Unlock()
				b.closeIdle(l)
				b.background.Wait()
				return ctx.Err()
			},
		}
	})
}

// What cannot be meant, or may not be opened, is refused before anything starts.
func TestRefusals(t *testing.T) {
	b := open(t, nil, func(c *Config) { c.Executable = "/bin/false" })
	for _, test := range []struct{ action, input, want string }{
		{"fly", ``, `there is no action "fly"`},
		{Open, ``, "the input is not as described"},
		{Open, `{"url":"http://a.example","more":1}`, `the input is not as described, at "/more"`},
		{Open, `{"url":"file:///etc/passwd"}`, "only addresses that begin with http:// or https:// can be opened"},
		{Open, `{"url":"chrome://settings"}`, "only addresses"},
		{Open, `{"url":"view-source:http://a.example"}`, "only addresses"},
		{Open, `{"url":"javascript:alert(1)"}`, "only addresses"},
		{Open, `{"url":"data:text/html,hi"}`, "only addresses"},
		{Open, `{"url":"blob:http://a.example/1"}`, "only addresses"},
		{Open, `{"url":"http://user:secret@a.example/"}`, "takes no user and no password"},
		{Open, `{"url":"http:///x"}`, "needs a host"},
		{Open, `{"url":"http://a.example/` + strings.Repeat("a", MaxAddressBytes) + `"}`, "the address has more than"},
		{Read, `{"url":1}`, "the input is not as described"},
		{Type, `{"ref":1,"text":"` + strings.Repeat("a", MaxTextBytes+1) + `"}`, "the text has more than"},
		{Press, `{"key":"Meta"}`, `there is no key "Meta"`},
		{Wait, `{}`, "a wait needs a text or a number of seconds"},
		{Wait, `{"seconds":31}`, "a wait has 0 to 30 seconds"},
	} {
		e := effect("x.1", test.action, nil)
		e.Input = jsontext.Value(test.input)
		e.Begin = func(context.Context) error { t.Errorf("%s %s: asked to begin", test.action, test.input); return nil }
		_, err := b.Perform(t.Context(), e)
		if !errors.Is(err, body.ErrRefused) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Perform(%s, %.60s) = %v, want a refusal with %q", test.action, test.input, err, test.want)
		}
	}
}
