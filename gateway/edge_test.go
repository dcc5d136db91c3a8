package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
)

const page = "https://chat.example.org"

// edged makes a world behind an edge, which counts who asks for an identity.
func edged(t *testing.T, config EdgeConfig) (w *world, asked *int) {
	t.Helper()
	edge, err := NewEdge(config)
	if err != nil {
		t.Fatal(err)
	}
	asked = new(int)
	w = newWorld(t, func(_ *kernel.Config, c *Config) {
		c.Edge = edge
		c.Authenticate = func(r *http.Request) (identity.Principal, error) { *asked++; return byToken(r) }
	})
	return w, asked
}

// C-32.1, C-32.2, C-31.10, checks 4 and 16: a page of a listed origin is served, with its CORS
// headers on refusals too; any other origin is a 403 before anything runs, and
// Host never proves that it is the server's own.
func TestOrigin(t *testing.T) {
	w, asked := edged(t, EdgeConfig{AllowedOrigins: []string{page, "http://127.0.0.1:7275"}})
	path := "http://chat.example.org/v1/conversations/" + w.start()
	for _, test := range []struct {
		origin string
		want   int
	}{
		{page, 200},
		{"http://127.0.0.1:7275", 200},
		{"https://evil.example", 403},
		{"http://chat.example.org", 403}, // the Host of the request
		{"https://chat.example.org:8443", 403},
		{"https://chat.example.org.evil.example", 403},
		{"HTTPS://chat.example.org", 403},
		{"https://chat.example.org/", 403},
		{"null", 403},
		{"", 403},
		{"*", 403},
	} {
		*asked = 0
		r := request("GET", path, "ann@acme", "")
		r.Header.Set("Origin", test.origin)
		got := w.ask(r)
		if got.Code != test.want || got.Code == 403 && (*asked > 0 || got.Body.String() != `{"error":"forbidden","reason":"origin-not-allowed"}`) {
			t.Errorf("origin %q: %d %s, %d asked who it is; want %d", test.origin, got.Code, got.Body, *asked, test.want)
		}
		allowed := got.Header().Get("Access-Control-Allow-Origin")
		if (test.want == 200) != (allowed != "" && allowed == test.origin) || got.Header().Get("Vary") != "Origin" || got.Header().Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("origin %q: headers %v", test.origin, got.Header())
		}
	}
	for _, two := range [][]string{{page, page}, {page, "https://evil.example"}} {
		r := request("GET", path, "ann@acme", "")
		r.Header["Origin"] = two
		if got := w.ask(r); got.Code != 403 {
			t.Errorf("origins %q: %d; want 403", two, got.Code)
		}
	}
	for name, r := range map[string]*http.Request{
		"401": request("GET", path, "", ""), "404": request("GET", path+"x", "ann@acme", ""), "405": request("PUT", path, "ann@acme", ""),
		"400": request("POST", path+"/turns", "ann@acme", "{"), "204": request("OPTIONS", path, "", ""),
	} {
		r.Header.Set("Origin", page)
		got := w.ask(r)
		if fmt.Sprint(got.Code) != name || got.Header().Get("Access-Control-Allow-Origin") != page || got.Header().Get("Access-Control-Expose-Headers") != "Retry-After" {
			t.Errorf("%s: %d, headers %v", name, got.Code, got.Header())
		}
	}
}

// C-31.10, check 2: OPTIONS needs no credentials, and only allowed origins get an answer.
func TestPreflight(t *testing.T) {
	w, asked := edged(t, EdgeConfig{AllowedOrigins: []string{page}, AllowCredentials: true})
	ask := func(path, origin string) *httptest.ResponseRecorder {
		r := request("OPTIONS", path, "", "")
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		r.Header.Set("Access-Control-Request-Method", "POST")
		return w.ask(r)
	}
	got := ask("/v1/conversations/x/turns", page)
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": page, "Access-Control-Allow-Methods": "POST", "Access-Control-Allow-Credentials": "true",
		"Access-Control-Allow-Headers": "Authorization, Content-Type, Last-Event-ID", "Access-Control-Max-Age": "600", "Vary": "Origin",
	} {
		if got.Code != 204 || got.Header().Get(name) != want {
			t.Errorf("preflight: %d, %s %q; want %q", got.Code, name, got.Header().Get(name), want)
		}
	}
	for _, test := range []struct {
		path, origin string
		want         int
	}{
		{"/v1/conversations/x/turns", "https://evil.example", 403},
		{"/v1/conversations/x/turns", "", 405},
		{"/v1/nothing", page, 404},
	} {
		if got := ask(test.path, test.origin); got.Code != test.want || got.Header().Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("OPTIONS %s from %q: %d %v; want %d", test.path, test.origin, got.Code, got.Header(), test.want)
		}
	}
	if *asked > 0 {
		t.Errorf("OPTIONS asked %d times who it is", *asked)
	}
}

// Check 4: without an Origin a browser still says whose page it is. A
// person's cookie must not be used by another site to fill their places.
func TestFetchMetadata(t *testing.T) {
	w, _ := edged(t, EdgeConfig{AllowedOrigins: []string{page}})
	path := "/v1/conversations/" + w.start()
	for _, test := range []struct {
		suffix, site, mode string
		want               int
	}{
		{"", "", "", 200},
		{"", "same-origin", "cors", 200},
		{"", "none", "navigate", 200},
		{"", "cross-site", "no-cors", 403},
		{"", "same-site", "no-cors", 403},
		{"", "cross-site", "navigate", 403},
		{"/events", "none", "navigate", 403},
		{"/events", "same-origin", "navigate", 403},
		{"/events", "cross-site", "no-cors", 403},
	} {
		r := request("GET", path+test.suffix, "ann@acme", "")
		r.Header.Set("Sec-Fetch-Mode", test.mode)
		if test.site != "" {
			r.Header.Set("Sec-Fetch-Site", test.site)
		}
		if got := w.ask(r); got.Code != test.want {
			t.Errorf("%+v: %d %s", test, got.Code, got.Body)
		}
	}
	r := request("GET", path, "ann@acme", "")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	r.Header.Set("Origin", page) // a listed page of another site may
	if got := w.ask(r); got.Code != 200 {
		t.Errorf("a listed origin, cross-site: %d %s", got.Code, got.Body)
	}
}

// C-32.5, C-29.11, check 1: the Host decides before all else. The table knows each way to
// write one.
func TestHost(t *testing.T) {
	loopback := []string{"localhost", "LocalHost:80", "localhost.", "127.0.0.1", "127.8.9.10:1", "[::1]", "[::1]:7275", "[::ffff:127.0.0.1]:1"}
	others := []string{"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0", "[::]", "", ":80", "[::1", "localhost:80:80"}
	for name, test := range map[string]struct {
		config   EdgeConfig
		yes, not []string
	}{
		"any":      {EdgeConfig{}, append(others, loopback...), nil},
		"loopback": {EdgeConfig{LoopbackOnly: true}, loopback, others},
		"a list": {
			EdgeConfig{AllowedHosts: []string{"Chat.Example.org", "other.example:8443", "::1", "[fe80::1]:99"}},
			[]string{"chat.example.org", "CHAT.example.org.", "chat.example.org:1234", "other.example:8443", "[::1]:5", "[::1]", "[fe80::1]:99"},
			append([]string{"other.example", "other.example:443", "localhost", "xchat.example.org", "[fe80::1]:98", "[fe80::1]"}, others...),
		},
		"both": {
			EdgeConfig{LoopbackOnly: true, AllowedHosts: []string{"localhost", "evil.example"}},
			[]string{"localhost:1"},
			[]string{"evil.example", "127.0.0.1"},
		},
	} {
		w, asked := edged(t, test.config)
		for want, hosts := range map[int][]string{401: test.yes, 403: test.not} {
			for _, host := range hosts {
				*asked = 0
				r := request("PUT", "/v1/nothing", "", "")
				if r.Host = host; want == 401 {
					r = request("GET", "/v1/conversations", "", "")
					r.Host = host
				}
				got := w.ask(r)
				if got.Code != want || want == 403 && (*asked > 0 || got.Body.String() != `{"error":"forbidden","reason":"host-not-allowed"}`) {
					t.Errorf("%s: host %q: %d %s; want %d", name, host, got.Code, got.Body, want)
				}
			}
		}
	}
}

// What no request can name is refused when the edge is made.
func TestNewEdge(t *testing.T) {
	for _, host := range []string{"", ":80", "http://a", "a/b", "*", "*.example.org", "a b", "bücher.example", "a:", "[::1]:", "a:b:c", "a:http", "a:0", "a:080", "a:65536"} {
		if _, err := NewEdge(EdgeConfig{AllowedHosts: []string{host}}); err == nil {
			t.Errorf("host %q is taken", host)
		}
	}
	for _, host := range []string{"a", "A.example.", "a:8080", "::1", "fe80::", "[::1]", "[::1]:8080", "10.0.0.1:80", "xn--bcher-kva.example"} {
		if _, err := NewEdge(EdgeConfig{AllowedHosts: []string{host}}); err != nil {
			t.Errorf("host %q: %v", host, err)
		}
	}
	for _, origin := range []string{"", "null", "*", "chat.example.org", "https://", "https://a/", "https://a/b", "https://a?b", "https://A.example", "https://a:443", "http://a:80", "https://*.example.org", "https://bücher.example", "https://a:", "https://a:0443", "https://a:65536"} {
		if _, err := NewEdge(EdgeConfig{AllowedOrigins: []string{origin}}); err == nil {
			t.Errorf("origin %q is taken", origin)
		}
	}
	for _, origin := range []string{"https://a", "http://a:8080", "https://[::1]:7275", "tauri://localhost", "chrome-extension://abcdef"} {
		if _, err := NewEdge(EdgeConfig{AllowedOrigins: []string{origin}}); err != nil {
			t.Errorf("origin %q: %v", origin, err)
		}
	}
}

// Guard is the same edge for the routes of others.
func TestGuard(t *testing.T) {
	edge, err := NewEdge(EdgeConfig{AllowedHosts: []string{"a"}, AllowedOrigins: []string{page}})
	if err != nil {
		t.Fatal(err)
	}
	served := 0
	guarded := edge.Guard([]string{"GET", "POST"}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	for _, test := range []struct {
		method, host, origin string
		code, served         int
	}{
		{"GET", "a", page, 200, 1},
		{"GET", "a", "", 200, 1},
		{"GET", "b", page, 403, 0},
		{"GET", "a", "https://evil.example", 403, 0},
		{"PUT", "a", page, 405, 0},
		{"OPTIONS", "a", page, 204, 0},
		{"OPTIONS", "a", "", 405, 0},
	} {
		served = 0
		r := request(test.method, "/x", "", "")
		if r.Host = test.host; test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		got := httptest.NewRecorder()
		guarded.ServeHTTP(got, r)
		if got.Code != test.code || served != test.served || got.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%+v: %d, served %d, %v", test, got.Code, served, got.Header())
		}
		if allow := got.Header().Get("Allow"); (allow == "GET, POST") != (test.code == 405) || got.Code >= 400 && !strings.HasPrefix(got.Body.String(), `{"error":"`) {
			t.Errorf("%+v: Allow %q, %s", test, allow, got.Body)
		}
	}
	if !errors.Is(edge.admit(httptest.NewRecorder(), request("GET", "http://b/x", "", "")), errHost) {
		t.Error("an edge takes another host")
	}
}
