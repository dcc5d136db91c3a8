package gateway

import (
	"bytes"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// C-29.10, C-29.15: an error of the store is a 500 with an id and without its
// text, which goes to OnError alone; one that will pass is a 503.
func TestInternalErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRoomWorld(t, "otherwise\n  reply")
		id := w.room()
		w.say(id, "hello")
		synctest.Wait() // the body waits: the runtime reads nothing by itself
		secret := errors.New("dial tcp db.internal: password QWERTZ")
		w.store.OnRead(func(string) error { return secret })
		for _, route := range perID {
			before := len(w.reports())
			got := w.ask(request(route.method, "/v1/conversations/"+id+route.suffix, "ann@acme", route.body))
			var p Refusal
			json.Unmarshal(got.Body.Bytes(), &p)
			if got.Code != 500 || p.Code != "internal" || len(p.ErrorID) != 26 || p.Reason != "" || strings.Contains(got.Body.String(), "QWERTZ") {
				t.Errorf("%s %s: %d %s; want 500 with an id", route.method, route.suffix, got.Code, got.Body)
			}
			if all := w.reports(); len(all) != before+1 || !errors.Is(all[p.ErrorID], secret) {
				t.Errorf("%s %s: reported %v; want the error under %s", route.method, route.suffix, all, p.ErrorID)
			}
		}
		for _, failure := range []error{journal.ErrClosed, journal.ErrPoisoned, kernel.ErrClosed} {
			w.store.OnRead(func(string) error { return fmt.Errorf("read: %w", failure) })
			before := len(w.reports())
			got := w.ask(request("GET", "/v1/conversations/"+id, "ann@acme", ""))
			if got.Code != 503 || got.Body.String() != `{"error":"unavailable"}` || got.Header().Get("Retry-After") == "" || len(w.reports()) != before {
				t.Errorf("%v: %d %s", failure, got.Code, got.Body)
			}
		}
		w.store.OnRead(nil)
		w.rt.Close()
		if got := w.ask(request("POST", "/v1/conversations/"+id+"/turns", "ann@acme", `{"text":"a"}`)); got.Code != 503 {
			t.Errorf("a turn after the runtime closed: %d; want 503", got.Code)
		}
	})
}

// K1: once the store has failed for the runtime, everything that fails is a 503.
func TestFailedRuntime(t *testing.T) {
	w := newWorld(t)
	id := w.start()
	w.say(id, "hello")
	w.store.PoisonBefore(1)
	turn := request("POST", "/v1/conversations/"+id+"/turns", "ann@acme", `{"text":"a"}`)
	if got := w.ask(turn); got.Code != 503 {
		t.Errorf("a turn that the store refuses: %d; want 503", got.Code)
	}
	w.store.OnRead(func(string) error { return errors.New("broken as well") })
	if got := w.ask(request("GET", "/v1/conversations/"+id, "ann@acme", "")); got.Code != 503 || len(w.reports()) > 0 {
		t.Errorf("a read after that: %d, reported %v; want 503", got.Code, w.reports())
	}
}

// C-31.2 to C-31.4: what New refuses.
func TestNew(t *testing.T) {
	build := func(requires bool, policy kernel.Policy, config Config) error {
		w := newWorld(t, func(k *kernel.Config, _ *Config) { k.RequirePrincipal, k.Policy = requires, ownerScoped(t) })
		if !policy.FailClosed() {
			w = newWorld(t, func(k *kernel.Config, c *Config) { k.Policy, c.AllowNoRuntimeAuthz = policy, true })
		}
		config.Client, config.Log = w.client, slog.New(slog.DiscardHandler)
		g, err := New(config)
		if (g == nil) != (err != nil) {
			t.Errorf("New = %v, %v", g, err)
		}
		return err
	}
	good, open := ownerScoped(t), kernel.Unguarded()
	for name, test := range map[string]struct {
		requires bool
		policy   kernel.Policy
		config   Config
		want     bool
	}{
		"authenticated":                      {false, good, Config{Authenticate: byToken}, true},
		"neither":                            {false, good, Config{}, false},
		"insecure":                           {false, good, Config{Insecure: true}, true},
		"insecure, the runtime is strict":    {true, good, Config{Insecure: true}, false},
		"insecure and strict":                {false, good, Config{Insecure: true, Strict: new(true)}, false},
		"insecure, not strict by word":       {true, good, Config{Insecure: true, Strict: new(false)}, true},
		"both, strict":                       {true, good, Config{Authenticate: byToken, Insecure: true}, false},
		"strict":                             {true, good, Config{Authenticate: byToken}, true},
		"a runtime that is open":             {false, open, Config{Authenticate: byToken}, false},
		"no streams":                         {false, good, Config{Authenticate: byToken, MaxStreams: -1}, false},
		"no streams of a caller":             {false, good, Config{Authenticate: byToken, MaxStreamsPerCaller: -1}, false},
		"no posts":                           {false, good, Config{Authenticate: byToken, PostsPerMinute: -1}, false},
		"a runtime that is open, by consent": {false, open, Config{Authenticate: byToken, AllowNoRuntimeAuthz: true}, true},
	} {
		if err := build(test.requires, test.policy, test.config); (err == nil) != test.want {
			t.Errorf("%s: New: %v; want accepted = %v", name, err, test.want)
		}
	}
	if _, err := New(Config{Authenticate: byToken}); err == nil {
		t.Error("New without a client: no error")
	}
	w := newWorld(t, func(_ *kernel.Config, c *Config) { c.Authenticate, c.Insecure = nil, true })
	if !strings.Contains(w.log(), "level=WARN") {
		t.Errorf("an insecure gateway logs %q; want a warning", w.log())
	}
	// C-23.6: its callers are nobody, and nobody else's conversations are theirs.
	const local = "http://127.0.0.1"
	if got := w.ask(request("POST", local+"/v1/conversations", "", "")); got.Code != 201 {
		t.Errorf("start by nobody: %d %s", got.Code, got.Body)
	}
	if got := w.ask(request("GET", local+"/v1/conversations/"+w.start(), "", "")); got.Code != 404 {
		t.Errorf("nobody reads ann's conversation: %d", got.Code)
	}
}

// C-31.1, C-31.9, T85: no verdict but a whole principal lets anybody in, and it
// cannot be made of the body or the query.
func TestAuthenticate(t *testing.T) {
	var verdict func(*http.Request) (identity.Principal, error)
	w := newWorld(t, func(_ *kernel.Config, c *Config) {
		c.Authenticate = func(r *http.Request) (identity.Principal, error) { return verdict(r) }
	})
	long := identity.Principal{Identity: identity.Identity{Actor: strings.Repeat("a", 257)}}
	for name, test := range map[string]struct {
		verdict func(*http.Request) (identity.Principal, error)
		want    int
	}{
		"nothing":           {func(*http.Request) (identity.Principal, error) { return identity.Principal{}, nil }, 401},
		"an error with ann": {func(*http.Request) (identity.Principal, error) { return *ann, errors.New("QWERTZ") }, 401},
		"a long actor":      {func(*http.Request) (identity.Principal, error) { return long, nil }, 401},
		"a panic":           {func(*http.Request) (identity.Principal, error) { panic("QWERTZ") }, 500},
		"ann":               {func(*http.Request) (identity.Principal, error) { return *ann, nil }, 201},
	} {
		verdict = test.verdict
		got := w.ask(request("POST", "/v1/conversations", "", ""))
		if got.Code != test.want || strings.Contains(got.Body.String(), "QWERTZ") {
			t.Errorf("%s: %d %s; want %d", name, got.Code, got.Body, test.want)
		}
	}
	if text := fmt.Sprint(w.log(), w.reports()); strings.Contains(text, "QWERTZ") {
		t.Errorf("the text of an error of authentication is in the log: %s", text)
	}
	seen := ""
	verdict = func(r *http.Request) (identity.Principal, error) {
		body, _ := io.ReadAll(r.Body)
		seen = fmt.Sprint(string(body), r.URL, r.RequestURI, r.FormValue("token"), r.URL.Path)
		return *ann, nil
	}
	r := httptest.NewRequest("POST", "/v1/conversations?token=QWERTZ", bytes.NewReader([]byte(`{"token":"QWERTZ"}`)))
	r.Header.Set("Content-Type", "application/json")
	if got := w.ask(r); got.Code != 201 || strings.Contains(seen, "QWERTZ") || !strings.Contains(seen, "/v1/conversations") {
		t.Errorf("%d; Authenticate saw %q", got.Code, seen)
	}
}

// C-31.1, SSE-59, check 5: a token in the address opens nothing, on no route, and is
// never logged.
func TestSSE59TokenInAddress(t *testing.T) {
	w := newWorld(t)
	id := w.start()
	for _, route := range perID {
		for _, query := range []string{"token=ann@acme", "access_token=ann@acme", "authorization=Bearer%20ann@acme"} {
			got := w.ask(request(route.method, "/v1/conversations/"+id+route.suffix+"?"+query, "", route.body))
			if got.Code != 401 {
				t.Errorf("%s %s?%s: %d; want 401", route.method, route.suffix, query, got.Code)
			}
		}
	}
	if text := fmt.Sprint(w.log(), w.reports()); strings.Contains(text, "ann@acme") {
		t.Errorf("logged: %s", text)
	}
}

// A hook that panics does not reach the caller.
func TestErrorHookPanics(t *testing.T) {
	w := newWorld(t, func(_ *kernel.Config, c *Config) { c.OnError = func(string, error) { panic("QWERTZ") } })
	w.store.OnRead(func(string) error { return errors.New("broken") })
	got := w.ask(request("GET", "/v1/conversations/"+kernel.NewID(), "ann@acme", ""))
	if got.Code != 500 || strings.Contains(w.log(), "QWERTZ") {
		t.Errorf("%d %s, log %s", got.Code, got.Body, w.log())
	}
}
