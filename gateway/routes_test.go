package gateway

import (
	"encoding/json/v2"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
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
	if code, p := do[Refusal](t, server, "POST", path+"/turns", by, `{"text":"late"}`); code != 409 || p != (Refusal{Code: "ConversationClosed"}) {
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
	{"POST", "/stop", `{"turn":1}`, "/stop", `{"turn":"x"`},
	{"POST", "/close", `{}`, "/close", `[`},
	{"GET", "/waiting", "", "/waiting?x=%zz", ""},
	{"GET", "/participants", "", "/participants?x=%zz", ""},
	{"POST", "/participants", `{"tenant":"acme","actor":"cal"}`, "/participants", `{"actor":`},
	{"DELETE", "/participants", `{"tenant":"acme","actor":"cal"}`, "/participants", `{}`},
}

// No route of a conversation is left out of the tables over routes and callers.
func TestTablesKnowRoutes(t *testing.T) {
	known := map[string]bool{}
	for _, route := range perID {
		known[route.method+" conversations/*"+route.suffix] = true
	}
	for path, methods := range routes {
		for method := range methods {
			if strings.Contains(path, "*") && !known[method+" "+path] {
				t.Errorf("%s %s is not in perID", method, path)
			}
		}
	}
}

// C-29.9, C-29.11, C-23.7, T83, T84, T87, SSE-58, checks 3 and 6: a missing conversation, a
// foreign one, one with an id that cannot be, and an unknown path get the same
// answer byte for byte, however well formed the request is.
func TestNotFoundIsUniform(t *testing.T) { synctest.Test(t, notFoundIsUniform) }

func notFoundIsUniform(t *testing.T) {
	w := newRoomWorld(t, "otherwise\n  reply")
	id := w.start()
	w.say(id, "hello")
	closed := w.start()
	w.end(closed)
	left := w.room(bob, evil) // they took part in it
	w.say(left, "hello")
	for _, who := range []*identity.Principal{bob, evil} {
		if err := w.client.RemoveParticipant(t.Context(), ann, left, who.Identity); err != nil {
			t.Fatal(err)
		}
	}
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
		"a foreign one": id, "a foreign closed one": closed, "one of theirs, once": left, "a shared one": w.room(), "a missing one": kernel.NewID(),
		"a stream of the journal": "inbox:" + id, "a roster": conversation.ParticipantsPrefix + left, "a generation": id + "~1", "a long one": strings.Repeat("x", 4000), "dots": "..",
	}
	synctest.Wait()
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

// C-29.8, C-29.15: a full queue is a 429 that says when to come back.
func TestQueueFull(t *testing.T) {
	w := newWorld(t)
	got := httptest.NewRecorder()
	w.gateway.fail(&exchange{w: got, r: request("POST", "/", "", "")}, conversation.ErrQueueFull)
	if got.Code != 429 || got.Body.String() != `{"error":"QueueFull"}` || got.Header().Get("Retry-After") != "5" {
		t.Errorf("%d %v %s", got.Code, got.Header(), got.Body)
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
