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
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// do sends a request and decodes its answer.
func do[T any](t *testing.T, server *httptest.Server, method, path, token, body string) (int, T) {
	t.Helper()
	response, err := http.DefaultClient.Do(request(method, server.URL+path, token, body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var value T
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatalf("%s %s: %d %s: %v", method, path, response.StatusCode, data, err)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
	} {
		if got := response.Header.Get(name); got != want {
			t.Errorf("%s %s: %s is %q; want %q", method, path, name, got, want)
		}
	}
	return response.StatusCode, value
}

type created struct {
	ID string `json:"id"`
}

type sent struct {
	MessageID string `json:"messageId"`
}

// C-29.1 to C-29.8: one conversation, over HTTP from its start to its close.
func TestRoutes(t *testing.T) {
	w := newWorld(t)
	server := w.serve()
	const by = "ann@acme"

	code, c := do[created](t, server, "POST", "/v1/conversations", by, "")
	if code != 201 || len(c.ID) != 26 {
		t.Fatalf("start: %d, %+v; want 201 with an id", code, c)
	}
	if code, other := do[created](t, server, "POST", "/v1/conversations", by, `{"id":"mine","unknown":[1]}`); code != 201 || other.ID == "mine" {
		t.Errorf("start with an id in the body: %d, %+v; want an id of the server's", code, other)
	}
	path := "/v1/conversations/" + c.ID
	if code, s := do[sent](t, server, "POST", path+"/turns", by, `{"text":"hello","messageId":"m1","unknown":1}`); code != 202 || s.MessageID != "m1" {
		t.Errorf("turn: %d, %+v; want 202 with m1", code, s)
	}
	if code, s := do[sent](t, server, "POST", path+"/turns", by, `{"text":"hello","messageId":"m1"}`); code != 202 || s.MessageID != "m1" { // T26
		t.Errorf("retry: %d, %+v; want 202 with m1", code, s)
	}
	w.say(c.ID, "two", "three", "four")
	if code, s := do[sent](t, server, "POST", path+"/turns", by, `{"text":"five"}`); code != 202 || len(s.MessageID) != 26 {
		t.Errorf("turn without an id: %d, %+v", code, s)
	}
	w.say(c.ID, "six")
	if code, info := do[conversation.Info](t, server, "GET", path, by, ""); code != 200 || info != (conversation.Info{ID: c.ID, State: "open", Turns: 6}) {
		t.Errorf("status: %d, %+v", code, info)
	}
	code, page := do[conversation.Page](t, server, "GET", path+"/history?limit=4", by, "")
	if code != 200 || len(page.Entries) != 4 || page.Done || page.Entries[0].Text != "hello" || page.Entries[1].Role != "assistant" {
		t.Errorf("history: %d, %+v", code, page)
	}
	code, rest := do[conversation.Page](t, server, "GET", path+"/history?cursor="+page.Next.String(), by, "")
	if code != 200 || len(rest.Entries) != 8 || !rest.Done || rest.Entries[0].Text != "three" {
		t.Errorf("history from %v: %d, %+v", page.Next, code, rest)
	}
	code, last := do[conversation.Page](t, server, "GET", path+"/history?direction=backward&limit=1&maxScan=999999999", by, "")
	if code != 200 || len(last.Entries) != 1 || last.Entries[0].Text != "six" || last.Entries[0].Ord != 12 {
		t.Errorf("history backward: %d, %+v", code, last)
	}
	if code, _ := do[struct{}](t, server, "POST", path+"/close", by, "{}"); code != 202 {
		t.Errorf("close: %d", code)
	}
	w.end(c.ID)
	if code, _ := do[struct{}](t, server, "POST", path+"/close", by, ""); code != 202 { // C-26.5
		t.Errorf("second close: %d", code)
	}
	if code, p := do[problem](t, server, "POST", path+"/turns", by, `{"text":"late"}`); code != 409 || p != (problem{Code: "ConversationClosed"}) {
		t.Errorf("turn after the close: %d, %+v", code, p)
	}
	code, list := do[conversation.Listing](t, server, "GET", "/v1/conversations?limit=1", by, "")
	if code != 200 || len(list.Conversations) != 1 || list.Done {
		t.Fatalf("list: %d, %+v", code, list)
	}
	got := list.Conversations[0]
	if got.ID != c.ID || got.State != "closed" || got.Turns != 6 || got.Title != "hello" || got.Shared {
		t.Errorf("list: %+v", got)
	}
	if code, list := do[conversation.Listing](t, server, "GET", "/v1/conversations?cursor="+list.Next, by, ""); code != 200 || len(list.Conversations) != 1 || !list.Done {
		t.Errorf("second page of the list: %d, %+v", code, list)
	}
	if code, list := do[conversation.Listing](t, server, "GET", "/v1/conversations", "bob@acme", ""); code != 200 || len(list.Conversations) != 0 {
		t.Errorf("list of a colleague: %d, %+v; want none", code, list)
	}
	if text := w.log(); strings.Contains(text, "hello") || strings.Contains(text, "three") || len(w.reports()) > 0 {
		t.Errorf("the log has a user's text, or something was reported: %s %v", text, w.reports())
	}
}

// perID are the routes of one conversation, each with a request that is well
// formed and one that is not.
var perID = []struct{ method, suffix, body, badSuffix, badBody string }{
	{"GET", "", "", "", ""},
	{"HEAD", "", "", "", ""},
	{"GET", "/history", "", "/history?cursor=x&limit=y", ""},
	{"GET", "/events", "", "/events?cursor=x", ""},
	{"HEAD", "/events", "", "/events?cursor=x", ""},
	{"POST", "/turns", `{"text":"hello"}`, "/turns", `{"text":`},
	{"POST", "/close", `{}`, "/close", `[`},
}

// C-29.9, C-29.11, C-23.7, T83, T84, T87, SSE-58: a missing conversation, a
// foreign one, one with an id that cannot be, and an unknown path get the same
// answer byte for byte, however well formed the request is.
func TestNotFoundIsUniform(t *testing.T) {
	w := newWorld(t)
	id := w.start()
	w.say(id, "hello")
	closed := w.start()
	w.end(closed)
	render := func(method, path, token, body string) string {
		r := request(method, path, token, body)
		r.Header.Set("Last-Event-ID", "0.0")
		got := w.ask(r)
		if method == "HEAD" {
			got.Body.Reset() // net/http writes none
		}
		return fmt.Sprint(got.Code, got.Header(), got.Body)
	}
	want := map[bool]string{}
	for _, head := range []bool{false, true} {
		want[head] = `404 map[Cache-Control:[no-store] Content-Length:[21] Content-Type:[application/json] X-Content-Type-Options:[nosniff]]`
		if !head {
			want[head] += ` {"error":"not found"}`
		} else {
			want[head] += ` `
		}
	}
	ids := map[string]string{
		"a foreign one": id, "a foreign closed one": closed, "a missing one": kernel.NewID(),
		"a stream of the journal": "inbox:" + id, "a generation": id + "~1", "a long one": strings.Repeat("x", 4000), "dots": "..",
	}
	before := w.store.Counts().Appends
	for _, route := range perID {
		for _, token := range []string{"bob@acme", "ann@evil"} {
			for name, id := range ids {
				good := render(route.method, "/v1/conversations/"+id+route.suffix, token, route.body)
				bad := render(route.method, "/v1/conversations/"+id+route.badSuffix, token, route.badBody)
				if w := want[route.method == "HEAD"]; good != w || bad != w {
					t.Errorf("%s %s of %s by %s:\n%s\n%s\nwant %s", route.method, route.suffix, name, token, good, bad, w)
				}
			}
		}
	}
	if n := w.store.Counts().Appends; n != before {
		t.Errorf("%d appends for strangers", n-before)
	}
	for _, path := range []string{"/", "/v1", "/v1/", "/v2/conversations", "/v1/conversations/", "/v1/conversations/" + id + "/", "/v1/conversations/" + id + "/nothing", "//v1/conversations", "/v1/conversations//history", "/v1/x/../conversations", "/v1/*", "/v1/conversations/" + id + "/turns/1"} {
		for _, token := range []string{"ann@acme", ""} {
			if got := render("GET", path, token, ""); got != want[false] {
				t.Errorf("GET %s: %s\nwant %s", path, got, want[false])
			}
		}
	}
}

// C-23, C-31.1: over all routes, a caller without a good token is a 401 whether
// the conversation exists or not.
func TestUnauthorizedIsUniform(t *testing.T) {
	w := newWorld(t)
	id := w.start()
	for _, route := range perID {
		for _, id := range []string{id, kernel.NewID()} {
			for _, token := range []string{"", "eve@acme"} {
				got := w.ask(request(route.method, "/v1/conversations/"+id+route.badSuffix, token, route.badBody))
				if got.Code != 401 || got.Body.String() != `{"error":"unauthorized"}` || got.Header().Get("WWW-Authenticate") != "Bearer" {
					t.Errorf("%s %s by %q: %d %s", route.method, route.suffix, token, got.Code, got.Body)
				}
			}
		}
	}
}

// The order at the door: each request has every fault from some place on, and
// the first of them is answered (C-29.11, C-31.7, decisions).
func TestOrderAtTheDoor(t *testing.T) {
	w := newWorld(t)
	id := w.start()
	huge := strings.Repeat(" ", MaxBodyBytes+1)
	for _, test := range []struct {
		name, method, path, token, contentType, body string
		want                                         int
	}{
		{"path before all", "PUT", "/v1/nothing", "", "text/plain", huge, 404},
		{"method before authentication", "PUT", "/v1/conversations/missing/turns", "", "text/plain", huge, 405},
		{"authentication before the type", "POST", "/v1/conversations/missing/turns", "", "text/plain", huge, 401},
		{"type before size", "POST", "/v1/conversations/missing/turns", "bob@acme", "text/plain", huge, 415},
		{"no type at all", "POST", "/v1/conversations", "ann@acme", "", "", 415},
		{"size before authorization", "POST", "/v1/conversations/missing/turns", "bob@acme", "application/json", huge, 413},
		{"authorization before the body", "POST", "/v1/conversations/" + id + "/turns", "bob@acme", "application/json", "{", 404},
		{"the body last", "POST", "/v1/conversations/" + id + "/turns", "ann@acme", "application/json", "{", 400},
	} {
		r := request("POST", test.path, test.token, test.body)
		r.Method = test.method
		r.Header.Del("Content-Type")
		if test.contentType != "" {
			r.Header.Set("Content-Type", test.contentType)
		}
		if got := w.ask(r); got.Code != test.want {
			t.Errorf("%s: %d %s; want %d", test.name, got.Code, got.Body, test.want)
		}
	}
	for path, want := range map[string]string{
		"/v1/conversations": "GET, HEAD, POST", "/v1/conversations/" + id: "GET, HEAD",
		"/v1/conversations/missing/turns": "POST", "/v1/conversations/" + id + "/events": "GET, HEAD",
	} {
		for _, method := range []string{"DELETE", "PATCH", "OPTIONS", "TRACE", "get"} {
			got := w.ask(request(method, path, "ann@acme", ""))
			if got.Code != 405 || got.Header().Get("Allow") != want || got.Body.String() != `{"error":"method not allowed"}` {
				t.Errorf("%s %s: %d, Allow %q, %s; want 405, %q", method, path, got.Code, got.Header().Get("Allow"), got.Body, want)
			}
		}
	}
}

// C-29.8, C-12.13: what is wrong with a request is said in a few fixed words,
// and nothing of the request comes back.
func TestBadRequests(t *testing.T) {
	w := newWorld(t)
	path := "/v1/conversations/" + w.start()
	const mark = "QWERTZ"
	for _, test := range []struct{ method, path, body, want string }{
		{"POST", "/turns", "", "malformed-json"},
		{"POST", "/turns", `{"text":"QWERTZ"`, "malformed-json"},
		{"POST", "/turns", `{"text":"a"} {"QWERTZ":1}`, "malformed-json"},
		{"POST", "/turns", `{"text":"\ud800QWERTZ"}`, "malformed-json"},
		{"POST", "/turns", `{"QWERTZ":` + strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000) + `}`, "malformed-json"},
		{"POST", "/turns", `{"text":"a","QWERTZ":1,"QWERTZ":2}`, "duplicate-name"},
		{"POST", "/turns", `{"text":"a","text":"QWERTZ"}`, "duplicate-name"},
		{"POST", "/turns", `{"text":"a","x":{"QWERTZ":1,"QWERTZ":1}}`, "duplicate-name"},
		{"POST", "/turns", `{"text":["QWERTZ"]}`, "wrong-type"},
		{"POST", "/turns", `{"text":"a","messageId":1}`, "wrong-type"},
		{"POST", "/turns", `["QWERTZ"]`, "wrong-type"},
		{"POST", "/turns", `"QWERTZ"`, "wrong-type"},
		{"POST", "/turns", "{\"text\":\"QWERTZ\xff\"}", "invalid-utf8"},
		{"POST", "/turns", `{}`, "text-empty"},
		{"POST", "/turns", `{"text":null}`, "text-empty"},
		{"POST", "/turns", `{"Text":"QWERTZ"}`, "text-empty"},
		{"POST", "/turns", `{"text":"` + strings.Repeat("a", 32001) + `"}`, "text-too-long"},
		{"POST", "/turns", `{"text":"a","messageId":"` + strings.Repeat("m", 257) + `"}`, "message-id-invalid"},
		{"POST", "/turns", `{"text":"a","messageId":"QWERTZ\u0000"}`, "message-id-invalid"},
		{"POST", "/close", `{"QWERTZ"`, "malformed-json"},
		{"POST", "/close", `[]`, "wrong-type"},
		{"GET", "/history?limit=QWERTZ", "", "limit-invalid"},
		{"GET", "/history?limit=99999999999999999999", "", "limit-invalid"},
		{"GET", "/history?maxScan=1.5", "", "maxScan-invalid"},
		{"GET", "/history?direction=QWERTZ", "", "direction-invalid"},
		{"GET", "/history?QWERTZ=%zz", "", "query-malformed"},
		{"GET", "/history?limit=1&limit=2", "", "query-repeated"},
		{"GET", "/history?cursor=QWERTZ", "", "InvalidCursorError"},
		{"GET", "/history?cursor=1", "", "InvalidCursorError"},
		{"GET", "/events?cursor=QWERTZ", "", "InvalidCursorError"},
		{"GET", "/events?cursor=0.0&cursor=0.1", "", "query-repeated"},
	} {
		r := request(test.method, path, "ann@acme", test.body)
		r.URL.Path, r.URL.RawQuery, _ = strings.Cut(path+test.path, "?")
		got := w.ask(r)
		want := `{"error":"bad request","reason":"` + test.want + `"}`
		if test.want == "InvalidCursorError" {
			want = `{"error":"InvalidCursorError"}`
		}
		if got.Code != 400 || got.Body.String() != want || strings.Contains(fmt.Sprint(got.Header()), mark) {
			t.Errorf("%s %.60q: %d %s; want 400 %s", test.path, test.body, got.Code, got.Body, want)
		}
	}
	if strings.Contains(w.log(), mark) || len(w.reports()) > 0 {
		t.Errorf("the log repeats a request, or one was reported: %s %v", w.log(), w.reports())
	}
}

// C-17.14: numbers over HTTP are clamped.
func TestNumbersAreClamped(t *testing.T) {
	w := newWorld(t)
	id := w.start()
	w.say(id, "one", "two")
	for query, want := range map[string]int{
		"": 4, "limit=": 4, "limit=0": 1, "limit=-5": 1, "limit=3": 3, "limit=1000": 4, "maxScan=0": 0, "maxScan=-1": 0, "maxScan=999999": 4,
	} {
		got := w.ask(request("GET", "/v1/conversations/"+id+"/history?"+query, "ann@acme", ""))
		var page conversation.Page
		if err := json.Unmarshal(got.Body.Bytes(), &page); err != nil || got.Code != 200 || len(page.Entries) != want {
			t.Errorf("history?%s: %d %s; want %d entries", query, got.Code, got.Body, want)
		}
	}
}

// C-32.3: JSON, with or without parameters, and nothing else.
func TestContentTypes(t *testing.T) {
	w := newWorld(t)
	for contentType, want := range map[string]int{
		"application/json": 201, "application/json; charset=utf-8": 201, "Application/JSON": 201,
		"text/plain": 415, "application/x-www-form-urlencoded": 415, "multipart/form-data; boundary=x": 415,
		"application/jsonp": 415, "application/json, text/plain": 415, ";": 415, "application/json; charset": 415,
	} {
		r := request("POST", "/v1/conversations", "ann@acme", "")
		r.Header.Set("Content-Type", contentType)
		if got := w.ask(r); got.Code != want {
			t.Errorf("content type %q: %d; want %d", contentType, got.Code, want)
		}
	}
	r := request("POST", "/v1/conversations", "ann@acme", "")
	r.Header.Add("Content-Type", "text/plain")
	if got := w.ask(r); got.Code != 415 {
		t.Errorf("two content types: %d; want 415", got.Code)
	}
}

// C-32.6: what is far too large is refused without being read, and the largest
// that fits is taken.
func TestTooLarge(t *testing.T) {
	w := newWorld(t)
	server := w.serve()
	path := "/v1/conversations/" + w.start() + "/turns"
	conn, answer := raw(t, server)
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ann@acme\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, 1<<40)
	if response, err := http.ReadResponse(answer, nil); err != nil || response.StatusCode != 413 {
		t.Errorf("a body of 1 TiB: %v, %v; want 413 at once", response, err)
	}
	fits := `{"text":"a","pad":"` + strings.Repeat("a", MaxBodyBytes-21) + `"}`
	if code, _ := do[sent](t, server, "POST", path, "ann@acme", fits); len(fits) != MaxBodyBytes || code != 202 {
		t.Errorf("a body of %d bytes: %d; want 202", len(fits), code)
	}
}

// C-29.10, C-29.15: an error of the store is a 500 with an id and without its
// text, which goes to OnError alone; one that will pass is a 503.
func TestInternalErrors(t *testing.T) {
	w := newWorld(t)
	id := w.start()
	if got := w.ask(request("GET", "/v1/conversations/"+id, "ann@acme", "")); got.Code != 200 {
		t.Fatal(got.Code)
	}
	secret := errors.New("dial tcp db.internal: password QWERTZ")
	w.store.OnRead(func(string) error { return secret })
	for _, route := range perID {
		before := len(w.reports())
		got := w.ask(request(route.method, "/v1/conversations/"+id+route.suffix, "ann@acme", route.body))
		var p problem
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
}

// C-29.8, C-29.15: a full queue is a 429 that says when to come back.
func TestQueueFull(t *testing.T) {
	w := newWorld(t)
	got := httptest.NewRecorder()
	w.gateway.fail(&exchange{w: got, r: request("POST", "/", "", "")}, conversation.ErrQueueFull)
	if got.Code != 429 || got.Body.String() != `{"error":"QueueFull"}` || got.Header().Get("Retry-After") != "5" {
		t.Errorf("%d %v %s", got.Code, got.Header(), got.Body)
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
	if got := w.ask(request("POST", "/v1/conversations", "", "")); got.Code != 201 {
		t.Errorf("start by nobody: %d %s", got.Code, got.Body)
	}
	if got := w.ask(request("GET", "/v1/conversations/"+w.start(), "", "")); got.Code != 404 {
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

// A hook that panics does not reach the caller.
func TestErrorHookPanics(t *testing.T) {
	w := newWorld(t, func(_ *kernel.Config, c *Config) { c.OnError = func(string, error) { panic("QWERTZ") } })
	w.store.OnRead(func(string) error { return errors.New("broken") })
	got := w.ask(request("GET", "/v1/conversations/"+kernel.NewID(), "ann@acme", ""))
	if got.Code != 500 || strings.Contains(w.log(), "QWERTZ") {
		t.Errorf("%d %s, log %s", got.Code, got.Body, w.log())
	}
}

// The wire form of times is RFC 3339 in UTC.
func TestTimes(t *testing.T) {
	w := newWorld(t)
	id := w.start()
	w.say(id, "hello")
	var page struct {
		Entries []struct {
			Time string `json:"time"`
		} `json:"entries"`
	}
	got := w.ask(request("GET", "/v1/conversations/"+id+"/history", "ann@acme", ""))
	if err := json.Unmarshal(got.Body.Bytes(), &page); err != nil || len(page.Entries) != 2 {
		t.Fatalf("%v: %s", err, got.Body)
	}
	for _, e := range page.Entries {
		at, err := time.Parse("2006-01-02T15:04:05.999Z", e.Time)
		if err != nil || time.Since(at).Abs() > time.Minute {
			t.Errorf("time %q: %v", e.Time, err)
		}
	}
}
