package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/internal/contracttest"
)

// contract is docs/openapi.yaml. It is read before any test, since a bubble of
// virtual time would wait for what its reading leaves running.
var contract = func() *contracttest.Contract {
	c, err := contracttest.Open("../docs/openapi.yaml")
	if err != nil {
		panic(err)
	}
	return c
}()

// What lies outside of /v1 is in docs/openapi.yaml, and everything that stands
// there of it can be met; the walk over /v1 is the gateway's.
func TestContract(t *testing.T) {
	c, err := contracttest.Open("../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	h := newHall(t, nil)
	handler := c.Watch(h.handler, func(err error) { t.Errorf("docs/openapi.yaml: %v", err) })
	ask := func(want int, method, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
		t.Helper()
		got := httptest.NewRecorder()
		handler.ServeHTTP(got, visit(method, body, change...))
		if got.Code != want {
			t.Errorf("%s %.60s: %d %s; want %d", method, body, got.Code, got.Body, want)
		}
		return got
	}
	delegate := identity.Identity{Tenant: identity.Some("acme"), Actor: "ann", OnBehalfOf: identity.Some("eve")}
	_, token, err := h.dir.CreateToken(t.Context(), delegate)
	if err != nil {
		t.Fatal(err)
	}
	code := h.link(ann)
	cookie, _, _ := strings.Cut(ask(201, "POST", code).Header().Get("Set-Cookie"), ";")
	in, by := carrying(cookie), bearing(token.Reveal())
	foreign := func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }
	ask(200, "GET", "", in)
	ask(200, "GET", "", by) // without an end
	for _, method := range []string{"GET", "POST", "DELETE"} {
		ask(401, method, `{"code":"guessed"}`)
		ask(403, method, "", foreign)
		ask(403, method, "", func(r *http.Request) { r.Host = "evil.example" })
	}
	ask(400, "DELETE", "", by)
	ask(204, "DELETE", "", in)
	for _, body := range []string{`{`, `{"code":1}`, `{"code":"a","code":"a"}`, "{\"code\":\"\xff\"}"} {
		ask(400, "POST", body)
	}
	ask(400, "POST", `{"code":"a"}`, by)
	ask(400, "POST", "", func(r *http.Request) { r.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)) })
	ask(413, "POST", strings.Repeat(" ", 1<<17))
	ask(415, "POST", "", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") })
	ask(204, "OPTIONS", "")
	ask(405, "PUT", "")
	ask(403, "PUT", "", foreign)
	for range sessionsPerMinute {
		ask(201, "POST", "{}", by)
	}
	ask(429, "POST", "{}", by)
	for range failuresPerMinute - 1 { // and one above
		ask(401, "POST", `{"code":"guessed"}`)
	}
	ask(429, "POST", `{"code":"guessed"}`)
	if err := os.WriteFile(filepath.Join(h.dir.Path(), "tokens"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"GET", "POST", "DELETE"} {
		ask(503, method, code, from("192.0.2.7:1"), in)
	}
	probes(t, c)
	for _, prefix := range []string{"/session", "/healthz", "/readyz", "/metrics"} {
		for _, unseen := range c.Unseen(prefix) {
			if !strings.HasPrefix(unseen, "header ") || !strings.HasSuffix(unseen, "/AllowCredentials") { // shown by the gateway's walk
				t.Errorf("in the document, and no answer shows it: %s", unseen)
			}
		}
	}
}

// probes asks a whole server, which runs and then does not.
func probes(t *testing.T, c *contracttest.Contract) {
	t.Helper()
	w := newWorld(t)
	running := w.start()
	handler := c.Watch(running.http.Handler, func(err error) { t.Errorf("docs/openapi.yaml: %v", err) })
	ask := func(want int, method, path string) {
		t.Helper()
		got := httptest.NewRecorder()
		handler.ServeHTTP(got, httptest.NewRequest(method, running.URL()+path, nil))
		if got.Code != want {
			t.Errorf("%s %s: %d %s; want %d", method, path, got.Code, got.Body, want)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		ask(200, "GET", path)
		ask(200, "HEAD", path)
		ask(405, "POST", path)
	}
	near := httptest.NewRequest("GET", running.URL()+"/metrics", nil)
	near.RemoteAddr = "127.0.0.1:1"
	handler.ServeHTTP(httptest.NewRecorder(), near)
	ask(401, "GET", "/metrics") // from elsewhere
	ask(405, "POST", "/metrics")
	ask(404, "GET", "/nothing")
	ask(401, "GET", "/v1/conversations")
	running.end()
	ask(200, "GET", "/healthz")
	ask(503, "GET", "/readyz")
}
