package metrics

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A request is counted by its route and the class of its answer; a stream has no
// latency, and a refusal is counted by its status as well.
func TestAround(t *testing.T) {
	seconds := func(route, class string) string {
		return `parley_http_request_seconds_count{class="` + class + `",route="` + route + `"}`
	}
	refused := func(status string) string { return `parley_http_refused_total{status="` + status + `"}` }
	status := func(code int) func(http.ResponseWriter) { return func(w http.ResponseWriter) { w.WriteHeader(code) } }
	const turns = "/v1/conversations/abc/turns"
	for name, test := range map[string]struct {
		method, path string
		answer       func(http.ResponseWriter)
		want         map[string]string
	}{
		"accepted": {"POST", turns, status(202), map[string]string{seconds("POST /v1/conversations/{id}/turns", "2xx"): "1"}},
		"refused": {"POST", turns, status(429), map[string]string{
			seconds("POST /v1/conversations/{id}/turns", "4xx"): "1", refused("429"): "1",
		}},
		"nothing said": {"GET", "/v1/conversations", func(http.ResponseWriter) {}, map[string]string{seconds("GET /v1/conversations", "2xx"): "1"}},
		"a body alone": {"HEAD", "/v1/conversations", func(w http.ResponseWriter) { io.WriteString(w, "{}") }, map[string]string{
			seconds("GET /v1/conversations", "2xx"): "1",
		}},
		"a hint first": {"GET", "/v1/conversations", func(w http.ResponseWriter) { w.WriteHeader(103); w.WriteHeader(500) }, map[string]string{
			seconds("GET /v1/conversations", "5xx"): "1", refused("500"): "1",
		}},
		"said twice": {"GET", "/v1/conversations", func(w http.ResponseWriter) { w.WriteHeader(200); w.WriteHeader(500) }, map[string]string{
			seconds("GET /v1/conversations", "2xx"): "1",
		}},
		"a panic":          {"GET", "/v1/conversations", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, map[string]string{seconds("GET /v1/conversations", "5xx"): "1", refused("500"): "1"}},
		"no such path":     {"GET", "/v2", status(404), map[string]string{seconds("other", "4xx"): "1", refused("404"): "1"}},
		"a session":        {"DELETE", "/session", status(204), map[string]string{seconds("DELETE /session", "2xx"): "1"}},
		"a rare status":    {"GET", "/", status(418), map[string]string{seconds("other", "4xx"): "1", refused("other"): "1"}},
		"moved":            {"GET", "/", status(304), map[string]string{seconds("other", "3xx"): "1"}},
		"a stream":         {"GET", "/v1/conversations/abc/events", status(200), map[string]string{}},
		"a refused stream": {"GET", "/v1/conversations/abc/events", status(404), map[string]string{refused("404"): "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := New("test")
			before := read(t, m)
			func() {
				defer func() {
					if r := recover(); r != nil && r != http.ErrAbortHandler {
						t.Errorf("a panic of the handler is passed on as %v", r)
					}
				}()
				m.Around(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { test.answer(w) })).
					ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(test.method, test.path, nil))
			}()
			if diff := cmp.Diff(test.want, changed(before, read(t, m))); diff != "" {
				t.Errorf("changed series (-want +got):\n%s", diff)
			}
		})
	}
}

// A stream needs the deadlines of its connection, and to flush.
func TestAroundHidesNothing(t *testing.T) {
	server := httptest.NewServer(New("test").Around(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		control := http.NewResponseController(w)
		if err := control.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Errorf("SetWriteDeadline: %v", err)
		}
		io.WriteString(w, "one")
		if err := control.Flush(); err != nil {
			t.Errorf("Flush: %v", err)
		}
	})))
	defer server.Close()
	if _, err := http.Get(server.URL); err != nil {
		t.Fatal(err)
	}
}
