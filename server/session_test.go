package server

import (
	"crypto"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/gateway"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/server/datadir"
	"github.com/parley-run/parley/server/issuer"
	"github.com/parley-run/parley/server/issuer/issuertest"
)

const ownOrigin = "http://127.0.0.1:7275"

var ann = identity.Identity{Tenant: identity.Some("acme"), Actor: "ann"}

// hall is where sessions are opened, without a server around it.
type hall struct {
	t       *testing.T
	dir     datadir.Dir
	callers *callers
	handler http.Handler
	log     *logged
	isTLS   bool
}

func newHall(t *testing.T, i *issuer.Issuer) *hall {
	t.Helper()
	dir, err := datadir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	edge, err := gateway.NewEdge(gateway.EdgeConfig{AllowedHosts: []string{"127.0.0.1"}, AllowedOrigins: []string{ownOrigin}})
	if err != nil {
		t.Fatal(err)
	}
	h := &hall{t: t, dir: dir, log: &logged{}}
	log := slog.New(slog.NewTextHandler(h.log, nil))
	h.callers = &callers{ring: dir.Keyring(), issuer: i, log: log, cookie: func(*http.Request) string { return "parley_7275" }}
	sessions := newSessions(h.callers, dir, func(*http.Request) bool { return h.isTLS }, log).behind(edge)
	h.handler = contract.Watch(sessions, func(err error) { t.Errorf("docs/openapi.yaml: %v", err) })
	return h
}

// visit is a request to /session, as a page of the server makes it.
func visit(method, body string, change ...func(*http.Request)) *http.Request {
	r := httptest.NewRequest(method, ownOrigin+"/session", strings.NewReader(body))
	r.Header.Set("Origin", ownOrigin)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(r)
	}
	return r
}

func bearing(secret string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Add("Authorization", "Bearer "+secret) }
}

func carrying(cookie string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Add("Cookie", cookie) }
}

func from(address string) func(*http.Request) {
	return func(r *http.Request) { r.RemoteAddr = address }
}

// ask answers a request; the cookie is the one that it sets, as "name=value".
func (h *hall) ask(r *http.Request) (got *httptest.ResponseRecorder, cookie string) {
	h.t.Helper()
	got = httptest.NewRecorder()
	h.handler.ServeHTTP(got, r)
	if got.Header().Get("X-Content-Type-Options") != "nosniff" { // C-32.4
		h.t.Errorf("%s /session has no nosniff", r.Method)
	}
	cookie, _, _ = strings.Cut(got.Header().Get("Set-Cookie"), ";")
	return got, cookie
}

// want wants a status.
func (h *hall) want(what string, status int, r *http.Request) {
	h.t.Helper()
	if got, _ := h.ask(r); got.Code != status {
		h.t.Errorf("%s: %d %s; want %d", what, got.Code, got.Body, status)
	}
}

// known reports whether the gateway knows who sends a request (C-31.8: it asks
// again with the same one while a stream is open).
func (h *hall) known(r *http.Request) bool {
	_, err := h.callers.principal(r)
	return err == nil
}

func (h *hall) link(owner identity.Identity) string {
	h.t.Helper()
	_, code, err := h.dir.CreateLink(h.t.Context(), owner, time.Hour)
	if err != nil {
		h.t.Fatal(err)
	}
	return fmt.Sprintf(`{"code":%q}`, code.Reveal())
}

// enter opens a session and returns its cookie.
func (h *hall) enter(r *http.Request) string {
	h.t.Helper()
	got, cookie := h.ask(r)
	if got.Code != http.StatusCreated || cookie == "" {
		h.t.Fatalf("POST /session: %d %s", got.Code, got.Body)
	}
	return cookie
}

// A link opens one session; its cookie says who is there, until the session is
// ended, which ends what is open with it (C-31.8).
func TestSessionOfLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, nil)
		body := h.link(ann)
		got, cookie := h.ask(visit("POST", body))
		want := fmt.Sprintf(`{"identity":{"tenant":"acme","actor":"ann"},"expires":%q}`, time.Now().Add(datadir.SessionLife).UTC().Format(time.RFC3339))
		if got.Code != http.StatusCreated || got.Body.String() != want || got.Header().Get("Cache-Control") != "no-store" {
			t.Fatalf("POST: %d %s %v; want 201 %s", got.Code, got.Body, got.Header(), want)
		}
		set, attributes, _ := strings.Cut(got.Header().Get("Set-Cookie"), "; ")
		if !strings.HasPrefix(set, "parley_7275=parley_") || attributes != "Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict" {
			t.Errorf("the cookie is %.12q with %q", set, attributes)
		}
		if got, _ := h.ask(visit("GET", "", carrying(cookie))); got.Code != http.StatusOK || got.Body.String() != want {
			t.Errorf("GET: %d %s; want 200 %s", got.Code, got.Body, want)
		}
		h.want("HEAD", 200, visit("HEAD", "", carrying(cookie)))
		h.want("the same code again", 401, visit("POST", body))
		stream := httptest.NewRequest("GET", ownOrigin+"/v1/conversations/x/events", nil)
		carrying(cookie)(stream)
		if !h.known(stream) {
			t.Error("a stream with the cookie is of nobody")
		}

		other := h.enter(visit("POST", h.link(ann)))
		got, cleared := h.ask(visit("DELETE", "", carrying(cookie)))
		if got.Code != http.StatusNoContent || cleared != "parley_7275=" || !strings.Contains(got.Header().Get("Set-Cookie"), "Max-Age=0") {
			t.Errorf("DELETE: %d %s, Set-Cookie %q; want 204 and the cookie taken away", got.Code, got.Body, got.Header().Get("Set-Cookie"))
		}
		if h.known(stream) {
			t.Error("a session that was ended goes on")
		}
		h.want("GET after the end", 401, visit("GET", "", carrying(cookie)))
		h.want("DELETE after the end", 401, visit("DELETE", "", carrying(cookie)))
		h.want("the other session", 200, visit("GET", "", carrying(other)))
		time.Sleep(datadir.SessionLife)
		h.want("after 30 days", 401, visit("GET", "", carrying(other)))
		if strings.Contains(h.log.String(), "parley_") {
			t.Errorf("the log holds a secret:\n%s", h.log)
		}
	})
}

// Whatever is wrong with a code or a credential, the answer is one and the same.
func TestSessionRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, nil)
		_, secret, err := h.dir.CreateToken(t.Context(), ann)
		if err != nil {
			t.Fatal(err)
		}
		token, used, late := secret.Reveal(), h.link(ann), h.link(ann)
		cookie := h.enter(visit("POST", used))
		time.Sleep(time.Hour)
		n := 0
		ask := func(r *http.Request) *httptest.ResponseRecorder {
			n++
			r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1", n) // each from an address of its own
			got, set := h.ask(r)
			if got.Code/100 != 2 && set != "" {
				t.Errorf("a refusal sets the cookie %q", set)
			}
			return got
		}
		_, session, _ := strings.Cut(cookie, "=")
		for what, r := range map[string]*http.Request{
			"no credential":            visit("GET", ""),
			"an unknown cookie":        visit("GET", "", carrying("parley_7275=parley_"+strings.Repeat("x", 43))),
			"another server's cookie":  visit("GET", "", carrying("parley_7276="+session)),
			"two cookies":              visit("GET", "", carrying(cookie+"; "+cookie)),
			"two cookies in two lines": visit("GET", "", carrying(cookie), carrying("parley_7275=x")),
			"a token as a cookie":      visit("GET", "", carrying("parley_7275="+token)),
			"a session as a token":     visit("GET", "", bearing(session)),
			"a wrong header beside it": visit("GET", "", carrying(cookie), bearing("x")),
			"no scheme beside it":      visit("GET", "", carrying(cookie), func(r *http.Request) { r.Header.Set("Authorization", "") }),
			"two headers":              visit("GET", "", bearing(token), bearing(token)),
			"two headers to open":      visit("POST", "{}", bearing(token), bearing(token)),
			"no code":                  visit("POST", "{}"),
			"a cookie to open":         visit("POST", "{}", carrying(cookie)),
			"a wrong token to open":    visit("POST", "{}", bearing("x"), carrying(cookie)),
			"a wrong token and a code": visit("POST", h.link(ann), bearing("x")),
			"an empty code":            visit("POST", `{"code":""}`),
			"a wrong code":             visit("POST", `{"code":"parley_`+strings.Repeat("x", 43)+`"}`),
			"a used code":              visit("POST", used),
			"a late code":              visit("POST", late),
			"a token as a code":        visit("POST", fmt.Sprintf(`{"code":%q}`, token)),
			"a session as a code":      visit("POST", fmt.Sprintf(`{"code":%q}`, session)),
			"nothing to end":           visit("DELETE", ""),
		} {
			got := ask(r)
			if got.Code != 401 || got.Body.String() != `{"error":"unauthorized"}` || got.Header().Get("WWW-Authenticate") != "Bearer" || got.Header().Get("Retry-After") != "" {
				t.Errorf("%s: %d %s %v; want the 401 of all", what, got.Code, got.Body, got.Header())
			}
		}
		typed := func(kind ...string) func(*http.Request) {
			return func(r *http.Request) { r.Header["Content-Type"] = kind }
		}
		for _, test := range []struct {
			r      *http.Request
			status int
			want   string
		}{
			{visit("POST", h.link(ann), typed("text/plain")), 415, `{"error":"unsupported media type"}`},
			{visit("POST", h.link(ann), typed("application/json", "application/json")), 415, `{"error":"unsupported media type"}`},
			{visit("POST", h.link(ann), typed()), 415, `{"error":"unsupported media type"}`},
			{visit("POST", strings.Repeat(" ", gateway.MaxBodyBytes+1)), 413, `{"error":"too large"}`},
			{visit("POST", ""), 400, `{"error":"bad request","reason":"malformed-json"}`},
			{visit("POST", `{"code":`), 400, `{"error":"bad request","reason":"malformed-json"}`},
			{visit("POST", `{} {}`), 400, `{"error":"bad request","reason":"malformed-json"}`},
			{visit("POST", `{"code":1}`), 400, `{"error":"bad request","reason":"wrong-type"}`},
			{visit("POST", `[]`), 400, `{"error":"bad request","reason":"wrong-type"}`},
			{visit("POST", "{\"code\":\"\xff\"}"), 400, `{"error":"bad request","reason":"invalid-utf8"}`},
			{visit("POST", `{"code":"a","code":"b"}`), 400, `{"error":"bad request","reason":"duplicate-name"}`},
			{visit("POST", h.link(ann), bearing(token)), 400, `{"error":"bad request","reason":"two-credentials"}`},
			{visit("DELETE", "", bearing(token)), 400, `{"error":"bad request","reason":"no-session"}`},
			{visit("PUT", "{}", bearing(token)), 405, `{"error":"method not allowed"}`},
			// C-32.1: before anything else.
			{visit("POST", h.link(ann), func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }), 403, `{"error":"forbidden","reason":"origin-not-allowed"}`},
			{visit("GET", "", func(r *http.Request) { r.Header.Set("Origin", "null") }), 403, `{"error":"forbidden","reason":"origin-not-allowed"}`},
			{visit("GET", "", func(r *http.Request) { r.Header.Del("Origin"); r.Header.Set("Sec-Fetch-Site", "same-site") }), 403, `{"error":"forbidden","reason":"origin-not-allowed"}`},
			{visit("DELETE", "", func(r *http.Request) { carrying(cookie)(r); r.Host = "evil.example" }), 403, `{"error":"forbidden","reason":"host-not-allowed"}`},
		} {
			if got := ask(test.r); got.Code != test.status || got.Body.String() != test.want {
				t.Errorf("%s %v: %d %s; want %d %s", test.r.Method, test.r.Header, got.Code, got.Body, test.status, test.want)
			}
		}
		h.want("the session, after all that", 200, visit("GET", "", carrying(cookie)))
		if strings.Contains(h.log.String(), "parley_") {
			t.Errorf("the log holds a secret:\n%s", h.log)
		}
	})
}

// A token opens a session that ends with it, so that a page can use a token
// without keeping it; a header stands over a cookie.
func TestSessionOfToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, nil)
		token, secret, err := h.dir.CreateTokenFor(t.Context(), ann, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		got, cookie := h.ask(visit("POST", "{}", bearing(secret.Reveal())))
		want := fmt.Sprintf(`{"identity":{"tenant":"acme","actor":"ann"},"expires":%q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		if got.Code != 201 || got.Body.String() != want {
			t.Fatalf("POST: %d %s; want 201 %s", got.Code, got.Body, want)
		}
		if got, _ := h.ask(visit("GET", "", bearing(secret.Reveal()))); got.Code != 200 || got.Body.String() != want {
			t.Errorf("GET with the token: %d %s; want 200 %s", got.Code, got.Body, want)
		}
		bobs := h.enter(visit("POST", h.link(identity.Identity{Actor: "bob"})))
		if got, _ := h.ask(visit("GET", "", bearing(secret.Reveal()), carrying(bobs))); got.Body.String() != want {
			t.Errorf("GET with ann's token and bob's cookie: %s; want ann", got.Body)
		}
		if err := h.dir.RevokeToken(t.Context(), token.ID); err != nil {
			t.Fatal(err)
		}
		h.want("when the token is revoked", 401, visit("GET", "", carrying(cookie)))
		h.want("bob, meanwhile", 200, visit("GET", "", carrying(bobs)))

		_, forever, err := h.dir.CreateToken(t.Context(), ann)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := h.ask(visit("GET", "", bearing(forever.Reveal()))); got.Body.String() != `{"identity":{"tenant":"acme","actor":"ann"}}` {
			t.Errorf("GET with a token without an end: %s", got.Body)
		}
		for range sessionsPerMinute - 1 {
			h.enter(visit("POST", "{}", bearing(forever.Reveal())))
		}
		got, _ = h.ask(visit("POST", "{}", bearing(forever.Reveal())))
		if got.Code != 429 || got.Header().Get("Retry-After") != "60" || got.Body.String() != `{"error":"too many requests","reason":"sessions"}` {
			t.Errorf("one session too many: %d %s, Retry-After %q", got.Code, got.Body, got.Header().Get("Retry-After"))
		}
		time.Sleep(tallyWindow)
		h.want("a minute later", 201, visit("POST", "{}", bearing(forever.Reveal())))
	})
}

// A session that a JWT has opened ends with it, and so does what is open with
// either (C-31.8).
func TestSessionOfJWT(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := issuertest.New("https://login.example.org")
		key := issuertest.NewKey(t)
		a.Publish(map[string]crypto.Signer{"k": key})
		i := issuer.New(issuer.Config{Issuer: a.URL, Audience: "parley"}, Owner, a, slog.New(slog.DiscardHandler))
		defer i.Close()
		h := newHall(t, i)
		raw := a.Sign(t, "k", key, nil)
		cookie := h.enter(visit("POST", "{}", bearing(raw)))
		_, static, err := h.dir.CreateToken(t.Context(), Owner)
		if err != nil {
			t.Fatal(err)
		}
		byCookie, byJWT := visit("GET", "", carrying(cookie)), visit("GET", "", bearing(raw))
		time.Sleep(time.Hour + time.Minute - time.Second)
		if !h.known(byCookie) || !h.known(byJWT) {
			t.Errorf("before its end: known by the cookie %t, by the JWT %t", h.known(byCookie), h.known(byJWT))
		}
		time.Sleep(time.Second)
		if h.known(byCookie) || h.known(byJWT) {
			t.Errorf("after its end: known by the cookie %t, by the JWT %t", h.known(byCookie), h.known(byJWT))
		}
		h.want("a JWT that is over", 401, visit("POST", "{}", bearing(raw)))
		a.Cut(io.EOF)
		if !h.known(visit("GET", "", bearing(static.Reveal()))) {
			t.Error("a static token needs the issuer")
		}
	})
}
