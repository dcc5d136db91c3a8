package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/internal/contracttest"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
)

// C-29 to C-32: docs/openapi.yaml and the gateway are the same, in both
// directions. Here each operation meets each answer that it can give.
func TestContract(t *testing.T) {
	c, err := contracttest.Open("../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		step func(*walk, *testing.T)
	}{
		{"routes", (*walk).routes},
		{"doors", (*walk).doors},
		{"failures", (*walk).failures},
		{"limits", (*walk).limits},
		{"bodies and queries", (*walk).requests},
		{"records and states", (*walk).records},
		{"words", (*walk).words},
		{"people", (*walk).people},
		{"what people may see", (*walk).clearances},
		{"leases", (*walk).leases},
		{"ends of streams", (*walk).ends},
	} {
		t.Run(step.name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { step.step(&walk{c}, t) }) })
	}
	if unseen := c.Unseen("/v1/"); !t.Failed() && len(unseen) > 0 {
		t.Errorf("in the document, and no answer shows it:\n%s", strings.Join(unseen, "\n"))
	}
}

// walk makes exchanges that are held against a contract of its own.
type walk struct{ *contracttest.Contract }

// in makes a world of the walk's.
func (c *walk) in(w *world) *world {
	w.handler = c.Watch(w.gateway, func(err error) { w.t.Errorf("docs/openapi.yaml: %v", err) })
	return w
}

// each is a good request to each operation, of ann's.
func (c *walk) each(t *testing.T, id func() string, visit func(operation string, r *http.Request)) {
	bodies := map[string]string{
		"turns": `{"text":"hello","messageId":"m"}`, "stop": `{"turn":1}`, "participants": `{"tenant":"acme","actor":"bob"}`,
	}
	for _, operation := range c.Operations() {
		method, path, _ := strings.Cut(operation, " ")
		if strings.HasPrefix(path, "/v1/") {
			body := bodies[path[strings.LastIndex(path, "/")+1:]]
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // of a stream
			r := request(method, "http://parley.example"+strings.Replace(path, "{id}", id(), 1), "ann@acme", body)
			visit(operation, r.WithContext(ctx))
			cancel()
		}
	}
}

// answers asks and wants a status.
func (w *world) answers(r *http.Request, want int) {
	w.t.Helper()
	got := &tape{}
	w.handler.ServeHTTP(got, r)
	if got.code != want {
		w.t.Errorf("%s %s: %d %s; want %d", r.Method, r.URL, got.code, got.text(), want)
	}
}

// routes: what is asked well is granted, also from a page that may ask, with its
// cookie. The document and the gateway have the same routes.
func (c *walk) routes(t *testing.T) {
	edge, err := NewEdge(EdgeConfig{AllowedOrigins: []string{page}, AllowCredentials: true})
	if err != nil {
		t.Fatal(err)
	}
	w := c.in(newRoomWorld(t, "otherwise\n  reply", func(_ *kernel.Config, c *Config) { c.Edge = edge }))
	start := func() string { return w.room() }
	want := map[string]int{"GET": 200, "POST": 202, "DELETE": 204, "POST /v1/conversations": 201, "POST /v1/conversations/{id}/participants": 204}
	left := map[string]bool{}
	for path, methods := range routes {
		for method := range methods {
			left[method+" /v1/"+strings.Replace(path, "*", "{id}", 1)] = true
		}
	}
	c.each(t, start, func(operation string, r *http.Request) {
		r.Header.Set("Origin", page)
		status, ok := want[operation]
		if !ok {
			status = want[r.Method]
		}
		if r.Method == "GET" {
			head := r.Clone(r.Context())
			head.Method = "HEAD"
			w.answers(head, status)
		}
		w.answers(r, status)
		if !left[operation] {
			t.Errorf("%s is in the document, and no route", operation)
		}
		delete(left, operation)
		preflight := r.Clone(r.Context())
		preflight.Method, preflight.Body = "OPTIONS", nil
		preflight.Header.Del("Authorization")
		w.answers(preflight, 204)
	})
	if len(left) > 0 {
		t.Errorf("not in the document: %v", left)
	}
	id := w.start()
	for _, query := range []string{"?limit=1&direction=backward", "?direction=forward&maxScan=1&cursor=0.1"} {
		w.answers(request("GET", "/v1/conversations/"+id+"/history"+query, "ann@acme", ""), 200)
	}
	w.answers(request("GET", "/v1/conversations?limit=1", "ann@acme", ""), 200)
}

// doors: everything that is refused before a route is.
func (c *walk) doors(t *testing.T) {
	edge, err := NewEdge(EdgeConfig{AllowedHosts: []string{"parley.example"}})
	if err != nil {
		t.Fatal(err)
	}
	w := c.in(newWorld(t, func(_ *kernel.Config, c *Config) { c.Edge = edge }))
	c.each(t, w.start, func(_ string, r *http.Request) {
		refused := func(change func(*http.Request), want int) {
			r := r.Clone(r.Context())
			change(r)
			w.answers(r, want)
		}
		refused(func(r *http.Request) { r.Host = "evil.example" }, 403)
		refused(func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403)
		refused(func(r *http.Request) { r.Method = "PATCH" }, 405)
		refused(func(r *http.Request) { r.URL.Path += "/x/y/z" }, 404)
		refused(func(r *http.Request) { r.Header.Del("Authorization") }, 401)
		if strings.HasPrefix(r.URL.Path, "/v1/conversations/") {
			refused(func(r *http.Request) { r.Header.Set("Authorization", "Bearer bob@acme") }, 404)
		}
		if changes(r) {
			refused(func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415)
			refused(func(r *http.Request) {
				r.Body = io.NopCloser(strings.NewReader(strings.Repeat(" ", MaxBodyBytes+1)))
			}, 413)
		}
	})
	w.answers(request("GET", "http://evil.example/v1/nothing", "ann@acme", ""), 403)
	closed := w.start()
	w.end(closed)
	w.answers(request("POST", "http://parley.example/v1/conversations/"+closed+"/turns", "ann@acme", `{"text":"late"}`), 409)
}

// changes reports whether a request has a body.
func changes(r *http.Request) bool { return r.Method == "POST" || r.Method == "DELETE" }

// failures: a fault of ours, and a server that ends.
func (c *walk) failures(t *testing.T) {
	broken := errors.New("broken")
	for status, failure := range map[int]error{500: broken, 503: journal.ErrClosed} {
		w := c.in(newRoomWorld(t, "otherwise\n  reply"))
		id := w.room()
		synctest.Wait()
		w.store.OnRead(func(string) error { return failure })
		w.store.Before(func(int, []journal.Append) error { return failure })
		c.each(t, func() string { return id }, func(operation string, r *http.Request) {
			if operation != "GET /v1/leases" { // it reads nothing from the store
				w.answers(r, status)
			}
		})
	}
}

// limits: each 429, behind the authorization.
func (c *walk) limits(t *testing.T) {
	w := c.in(newWorld(t, func(_ *kernel.Config, c *Config) { c.PostsPerMinute = 1 }))
	w.answers(request("POST", "/v1/conversations", "ann@acme", ""), 201)
	c.each(t, w.start, func(_ string, r *http.Request) {
		if changes(r) {
			w.answers(r, 429)
		}
	})

	w = c.in(newWorldOn(t, journaltest.Wrap(memory.New()), endless, nil))
	id := w.start()
	w.turn(id, "a long time") // without barge-in the others wait
	synctest.Wait()
	turn := func() *http.Request {
		return request("POST", "/v1/conversations/"+id+"/turns", "ann@acme", `{"text":"and?"}`)
	}
	for range 256 {
		w.answers(turn(), 202)
	}
	w.answers(turn(), 429)

	hub := conversation.NewHub(conversation.HubConfig{MaxReaders: 1})
	w = c.in(newWorldOn(t, journaltest.Wrap(memory.New()), endless, hub, func(_ *kernel.Config, c *Config) { c.MaxStreamsPerCaller = 2 }))
	id = w.start()
	_, leave := w.resume(id, "")
	defer leave()
	w.answers(request("GET", "/v1/conversations/"+id+"/events", "ann@acme", ""), 429) // TooManyReaders
	_, leaveOther := w.resume(w.start(), "")
	defer leaveOther()
	w.answers(request("GET", "/v1/conversations/"+id+"/events", "ann@acme", ""), 429) // streams
}

// requests: everything that a body, a query and a cursor can be wrong with.
func (c *walk) requests(t *testing.T) {
	w := c.in(newWorld(t))
	path := "/v1/conversations/" + w.start()
	bodies := map[string][]string{
		"/turns": {`{"text":""}`, `{"text":"` + strings.Repeat("a", 32001) + `"}`, `{"text":"a","messageId":"` + strings.Repeat("m", 257) + `"}`, `{"text":"a","editOf":0}`},
		"/stop":  {`{"turn":0}`},
		"/close": nil, "/participants": {`{}`, `{"actor":""}`, `{"actor":"` + strings.Repeat("a", 257) + `"}`},
	}
	for suffix, own := range bodies {
		for _, body := range append(own, `{`, `[]`, `{"a":1,"a":1}`, "{\"text\":\"\xff\"}") {
			w.answers(request("POST", path+suffix, "ann@acme", body), 400)
			if suffix == "/participants" {
				w.answers(request("DELETE", path+suffix, "ann@acme", body), 400)
			}
			if suffix == "/close" {
				w.answers(request("POST", "/v1/conversations", "ann@acme", body), 400)
			}
		}
		cut := request("POST", path+suffix, "ann@acme", "")
		cut.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF))
		w.answers(cut, 400)
	}
	burdened := request("GET", path+"/events", "ann@acme", "")
	burdened.ContentLength = 1
	w.answers(burdened, 400)
	for _, target := range []string{"/v1/conversations", path + "/history", path + "/events"} {
		for _, query := range []string{"?cursor=!", "?x=%zz", "?cursor=0.1&cursor=0.1"} {
			w.answers(request("GET", target+query, "ann@acme", ""), 400)
		}
		if target != "/v1/conversations" {
			w.answers(request("GET", target+"?render=x", "ann@acme", ""), 400)
		}
		if target != path+"/events" {
			w.answers(request("GET", target+"?limit=x", "ann@acme", ""), 400)
		}
	}
	for _, query := range []string{"?maxScan=x", "?direction=up"} {
		w.answers(request("GET", path+"/history"+query, "ann@acme", ""), 400)
	}
	w.answers(request("POST", path+"/turns", "ann@acme", `{"text":"a","messageId":null,"editOf":null}`), 202)
}
