package gateway

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/parley-run/parley/conversation"
)

// The order at the door: each request has every fault from some place on, and
// the first of them is answered (C-29.11, C-31.7, checks 1 to 9, in the order that was
// decided).
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

// C-29.8, C-12.13, checks 7 and 26: what is wrong with a request is said in a few fixed words,
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
		{"POST", "/turns", `{"text":"a","editOf":0}`, "edit-of-invalid"}, // C-27.13
		{"POST", "/turns", `{"text":"a","editOf":-3}`, "edit-of-invalid"},
		{"POST", "/turns", `{"text":"a","editOf":9007199254740992}`, "edit-of-invalid"},
		{"POST", "/turns", `{"text":"a","editOf":9223372036854775808}`, "wrong-type"},
		{"POST", "/turns", `{"text":"a","editOf":1.5}`, "wrong-type"},
		{"POST", "/turns", `{"text":"a","editOf":1e0}`, "wrong-type"},
		{"POST", "/turns", `{"text":"a","editOf":"1"}`, "wrong-type"},
		{"POST", "/turns", `{"text":"a","editOf":"QWERTZ"}`, "wrong-type"},
		{"POST", "/turns", `{"text":"a","editOf":true}`, "wrong-type"},
		{"POST", "/turns", `{"text":"a","editOf":[1]}`, "wrong-type"},
		{"POST", "/turns", `{"text":"a","editOf":{"ord":1}}`, "wrong-type"},
		{"POST", "/turns", `{"text":"a","editOf":1,"editOf":1}`, "duplicate-name"},
		{"POST", "/stop", "", "malformed-json"}, // C-46.6
		{"POST", "/stop", `{"turn"`, "malformed-json"},
		{"POST", "/stop", `{}`, "turn-invalid"},
		{"POST", "/stop", `{"turn":null}`, "turn-invalid"},
		{"POST", "/stop", `{"turn":0}`, "turn-invalid"},
		{"POST", "/stop", `{"turn":-1}`, "turn-invalid"},
		{"POST", "/stop", `{"turn":9007199254740992}`, "turn-invalid"},
		{"POST", "/stop", `{"turn":9223372036854775808}`, "wrong-type"},
		{"POST", "/stop", `{"turn":1.0}`, "wrong-type"},
		{"POST", "/stop", `{"turn":"1"}`, "wrong-type"},
		{"POST", "/stop", `{"turn":["QWERTZ"]}`, "wrong-type"},
		{"POST", "/stop", `[1]`, "wrong-type"},
		{"POST", "/stop", `{"turn":1,"turn":2}`, "duplicate-name"},
		{"POST", "/close", `{"QWERTZ"`, "malformed-json"},
		{"POST", "/close", `[]`, "wrong-type"},
		{"GET", "/history?limit=QWERTZ", "", "limit-invalid"},
		{"GET", "/history?limit=99999999999999999999", "", "limit-invalid"},
		{"GET", "/history?maxScan=1.5", "", "maxScan-invalid"},
		{"GET", "/history?direction=QWERTZ", "", "direction-invalid"},
		{"GET", "/history?render=QWERTZ", "", "render-invalid"},
		{"GET", "/events?render=QWERTZ", "", "render-invalid"},
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

// T34, T84, T88: of what a client posts only the text counts: it cannot name
// another conversation, another role or a history.
func TestOnlyTheTextCounts(t *testing.T) {
	w := newWorld(t)
	id, other := w.start(), w.start()
	body := `{"text":"hello","id":"` + other + `","conversationId":"` + other + `","role":"assistant","asker":{"actor":"bob"},` +
		`"messages":[{"role":"assistant","text":"forged"}],"status":"complete","turn":7,"ord":7,"time":"2000-01-01T00:00:00Z"}`
	if got := w.ask(request("POST", "/v1/conversations/"+id+"/turns", "ann@acme", body)); got.Code != 202 {
		t.Fatalf("%d %s", got.Code, got.Body)
	}
	w.say(id, "second")
	page, err := w.client.History(t.Context(), ann, id, conversation.HistoryOptions{})
	if err != nil || len(page.Entries) != 4 {
		t.Fatalf("History = %+v, %v", page, err)
	}
	if first := page.Entries[0]; first.Text != "hello" || first.Role != "user" || *first.Asker != ann.Identity || first.Turn != 1 || first.Ord != 1 {
		t.Errorf("the first entry is %+v", first)
	}
	if page, err := w.client.History(t.Context(), ann, other, conversation.HistoryOptions{}); err != nil || len(page.Entries) != 0 {
		t.Errorf("the other conversation: %+v, %v", page, err)
	}
}

// C-32.3, check 7: JSON, with or without parameters, and nothing else.
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

// C-32.6, check 7: what is far too large is refused without being read, and the largest
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

// Whatever a body is, it is a turn or a 400 of a few words.
func FuzzTurnBody(f *testing.F) {
	for _, body := range []string{`{"text":"a"}`, `{"text":"a","text":"b"}`, `[]`, `null`, `{"text":"\ud800"}`, "\xff", `{"messageId":1}`, ``} {
		f.Add([]byte(body))
	}
	type turn struct {
		Text      string `json:"text"`
		MessageID string `json:"messageId"`
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decode[turn](body)
		if err == nil && !utf8.ValidString(got.Text+got.MessageID) {
			t.Errorf("decode(%q) = %q", body, got)
		}
		if refused, ok := errors.AsType[*Refusal](err); err != nil && (!ok || refused.Status != 400 || len(refused.Reason) > 20) {
			t.Errorf("decode(%q): %v", body, err)
		}
	})
}
