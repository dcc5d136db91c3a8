package gateway

import (
	"encoding/json/v2"
	"strings"
	"testing"

	"github.com/parley-run/parley/conversation"
)

// C-29.13, C-29.14, C-33.4, C-33.12: a shared conversation over HTTP, from its start
// by one to its close; who is removed is told of it what a stranger is.
func TestPeople(t *testing.T) {
	w := newRoomWorld(t, "otherwise\n  reply")
	server := w.serve()
	code, c := do[created](t, server, "POST", "/v1/conversations", "ann@acme", `{"shared":true}`)
	if code != 201 {
		t.Fatalf("start: %d", code)
	}
	path := "/v1/conversations/" + c.ID
	const bobHimself, colleague = `{"tenant":"acme","actor":"bob"}`, `{"tenant":"acme","actor":"cal"}`
	ask := func(method, suffix, token, body string, want int, wantBody string) {
		t.Helper()
		got := w.ask(request(method, path+suffix, token, body))
		if got.Code != want || wantBody != "" && got.Body.String() != wantBody {
			t.Errorf("%s %s by %s: %d %s; want %d %s", method, suffix, token, got.Code, got.Body, want, wantBody)
		}
	}
	const nowhere, notPermitted = `{"error":"not found"}`, `{"error":"forbidden","reason":"not-permitted"}`
	ask("GET", "", "bob@acme", "", 404, nowhere)
	for range 2 {
		ask("POST", "/participants", "ann@acme", bobHimself, 204, "")
	}
	code, people := do[conversation.Participants](t, server, "GET", path+"/participants", "ann@acme", "")
	if code != 200 || len(people.Participants) != 2 || !people.Manages || !people.Participants[0].Owner ||
		people.Participants[0].Identity != ann.Identity || people.Participants[1].Identity != bob.Identity {
		t.Errorf("participants: %d, %+v", code, people)
	}
	if code, people := do[conversation.Participants](t, server, "GET", path+"/participants", "bob@acme", ""); code != 200 || len(people.Participants) != 2 || people.Manages {
		t.Errorf("participants, for bob: %d, %+v", code, people)
	}
	ask("GET", "", "bob@acme", "", 200, `{"id":"`+c.ID+`","state":"open","turns":0,"shared":true}`)
	ask("POST", "/turns", "bob@acme", `{"text":"hello"}`, 202, "")
	if code, list := do[conversation.Listing](t, server, "GET", "/v1/conversations", "bob@acme", ""); code != 200 || len(list.Conversations) != 1 || !list.Conversations[0].Shared {
		t.Errorf("bob's list: %d, %+v", code, list)
	}
	for _, method := range []string{"POST", "DELETE"} {
		ask(method, "/participants", "bob@acme", colleague, 403, notPermitted)
		ask(method, "/participants", "ann@acme", `{"actor":""}`, 400, `{"error":"InvalidParticipant"}`)
		ask(method, "/participants", "ann@acme", `{"name":"bob"}`, 400, `{"error":"InvalidParticipant"}`)
		ask(method, "/participants", "ann@acme", `{"actor":"b","actor":"c"}`, 400, `{"error":"bad request","reason":"duplicate-name"}`)
	}
	ask("POST", "/participants", "ann@acme", `{"actor":"parley:service"}`, 400, `{"error":"InvalidParticipant"}`)
	ask("DELETE", "/participants", "ann@acme", `{"tenant":"acme","actor":"ann"}`, 409, `{"error":"OwnerStays"}`)
	ask("POST", "/close", "bob@acme", "", 403, notPermitted)
	for range 2 {
		ask("DELETE", "/participants", "ann@acme", bobHimself, 204, "")
	}
	for _, route := range perID {
		if route.method != "HEAD" {
			ask(route.method, route.suffix, "bob@acme", route.body, 404, nowhere)
		}
	}
	if code, list := do[conversation.Listing](t, server, "GET", "/v1/conversations", "bob@acme", ""); code != 200 || len(list.Conversations) != 0 {
		t.Errorf("bob's list afterwards: %d, %+v", code, list)
	}
	ask("POST", "/close", "ann@acme", "", 202, "")
}

// C-33.10, C-29.14: who may not start a shared conversation is told so, and starts
// none; a conversation of one owner is nothing that others could be added to.
func TestSharedWhereItIsNotPermitted(t *testing.T) {
	w := newRoomWorld(t, "otherwise\n  reply")
	plain := newWorld(t)
	for name, got := range map[string]string{
		"by the host's rule":  w.ask(request("POST", "/v1/conversations", "ann@evil", `{"shared":true}`)).Body.String(),
		"without the mode":    plain.ask(request("POST", "/v1/conversations", "ann@acme", `{"shared":true}`)).Body.String(),
		"of one owner":        w.ask(request("POST", "/v1/conversations/"+w.start()+"/participants", "ann@acme", `{"actor":"bob"}`)).Body.String(),
		"of one, without it":  plain.ask(request("POST", "/v1/conversations/"+plain.start()+"/participants", "ann@acme", `{"actor":"bob"}`)).Body.String(),
		"removed, of one own": w.ask(request("DELETE", "/v1/conversations/"+w.start()+"/participants", "ann@acme", `{"actor":"bob"}`)).Body.String(),
	} {
		if got != `{"error":"forbidden","reason":"not-permitted"}` {
			t.Errorf("%s: %s", name, got)
		}
	}
	var none conversation.Listing
	got := w.ask(request("GET", "/v1/conversations", "ann@evil", ""))
	if err := json.Unmarshal(got.Body.Bytes(), &none); err != nil || len(none.Conversations) != 0 {
		t.Errorf("there is a conversation: %s", got.Body)
	}
}

// C-32.3, C-32.6, C-32.9, C-31.10, C-29.14: the door treats a DELETE with a body as a
// POST, and a page of an allowed origin is told that it may send one.
func TestDeleteAtTheDoor(t *testing.T) {
	const page = "https://chat.example.org"
	edge, err := NewEdge(EdgeConfig{AllowedOrigins: []string{page}})
	if err != nil {
		t.Fatal(err)
	}
	w := newRoomWorld(t, "otherwise\n  reply", atMost(2), at(edge))
	path := "/v1/conversations/" + w.room(bob) + "/participants"
	remove := func(body, contentType string) (int, string) {
		r := request("DELETE", path, "ann@acme", body)
		r.Header.Set("Content-Type", contentType)
		got := w.ask(r)
		return got.Code, got.Body.String()
	}
	preflight := request("OPTIONS", path, "", "")
	preflight.Header.Set("Origin", page)
	if got := w.ask(preflight); got.Code != 204 || got.Header().Get("Access-Control-Allow-Methods") != "DELETE, GET, HEAD, POST" {
		t.Errorf("preflight: %d %v", got.Code, got.Header())
	}
	if code, body := remove(`{"actor":"bob"}`, "text/plain"); code != 415 {
		t.Errorf("another type: %d %s", code, body)
	}
	if code, body := remove(strings.Repeat(" ", MaxBodyBytes+1), "application/json"); code != 413 {
		t.Errorf("too large: %d %s", code, body)
	}
	if code, body := remove(`{"actor":"bob","tenant":"acme"}`, "application/json"); code != 429 {
		t.Errorf("the third within a minute: %d %s; want 429", code, body)
	}
	foreign := request("DELETE", path, "ann@acme", `{"actor":"bob"}`)
	foreign.Header.Set("Origin", "https://evil.example")
	if got := w.ask(foreign); got.Code != 403 {
		t.Errorf("of a foreign page: %d %s", got.Code, got.Body)
	}
	if people, err := w.client.Participants(t.Context(), ann, strings.Split(path, "/")[3]); err != nil || len(people.Participants) != 2 {
		t.Errorf("somebody was removed: %+v, %v", people, err)
	}
}
