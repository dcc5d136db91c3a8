package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Under TLS the cookie has the name and the attribute by which browsers keep it
// for this host alone.
func TestSecureCookie(t *testing.T) {
	for _, test := range []struct {
		settings Settings
		proto    string
		want     string
	}{
		{Settings{}, "", "parley_7275"},
		{Settings{PublicURL: "http://chat.example.org"}, "", "parley_7275"},
		{Settings{PublicURL: "https://chat.example.org"}, "", "__Host-parley"},
		{Settings{}, "https", "parley_7275"},
		{Settings{TrustedProxies: []string{"192.0.2.1"}}, "https", "__Host-parley"},
		{Settings{TrustedProxies: []string{"192.0.2.1"}}, "http", "parley_7275"},
	} {
		d, err := newDoor(test.settings)
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{door: d, listener: at{address: net.TCPAddr{IP: net.IPv6loopback, Port: 7275}}}
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "192.0.2.1:1"
		if test.proto != "" {
			r.Header.Set(forwardedProto, test.proto)
		}
		behindProxies(d.proxies, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if got := s.cookieName(r); got != test.want {
				t.Errorf("%+v, proto %q: cookie %q, want %q", test.settings, test.proto, got, test.want)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
	}
	h := newHall(t, nil)
	h.isTLS = true
	got, _ := h.ask(visit("POST", h.link(ann)))
	if set := got.Header().Get("Set-Cookie"); !strings.HasSuffix(set, "; HttpOnly; Secure; SameSite=Strict") || strings.Contains(set, "Domain") {
		t.Errorf("the cookie under TLS has %q", set[strings.Index(set, ";"):])
	}
}

// Who fails ten times within a minute waits, with a good code too; others do not,
// and where there are too many to count nobody is shut out.
func TestSessionFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, nil)
		good := h.link(ann)
		fail := func(address string) int {
			got, _ := h.ask(visit("POST", `{"code":"x"}`, from(address)))
			return got.Code
		}
		for n := range failuresPerMinute {
			if got := fail("192.0.2.7:1"); got != 401 {
				t.Errorf("failure %d: %d", n, got)
			}
			fail(fmt.Sprintf("[2001:db8::%d]:1", n))
			h.want("a body that is wrong", 400, visit("POST", "x", from("192.0.2.8:1")))
			time.Sleep(time.Second)
		}
		got, _ := h.ask(visit("POST", good, from("192.0.2.7:9")))
		if got.Code != 429 || got.Body.String() != `{"error":"too many requests","reason":"failures"}` || got.Header().Get("Retry-After") != "50" {
			t.Errorf("one failure too many: %d %s, Retry-After %q; want 429 for 50 s", got.Code, got.Body, got.Header().Get("Retry-After"))
		}
		h.want("the same network", 429, visit("POST", good, from("[2001:db8::ffff]:1")))
		if got := fail("[2001:db8:0:1::1]:1"); got != 401 {
			t.Errorf("another network: %d", got)
		}
		if got := fail("192.0.2.8:1"); got != 401 {
			t.Errorf("who sends wrong bodies: %d", got)
		}
		time.Sleep(50 * time.Second)
		if got := []int{fail("192.0.2.7:1"), fail("192.0.2.7:1")}; !slices.Equal(got, []int{401, 429}) {
			t.Errorf("when the first failure is a minute old: %v, want room for one", got)
		}
		time.Sleep(tallyWindow)
		h.want("a minute later", 201, visit("POST", good, from("192.0.2.7:1")))
	})
}

// C-32.12: the table of failures is bounded, and what is being tried counts.
func TestTally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := newTally(2)
		one, _ := tally.begin("a")
		two, wait := tally.begin("a")
		if one == nil || two == nil || wait != 0 {
			t.Fatalf("begin twice: wait %v", wait)
		}
		if end, wait := tally.begin("a"); end != nil || wait <= 0 {
			t.Errorf("a third at the same time: wait %v, want some", wait)
		}
		one(nil)
		two(io.EOF)
		if end, wait := tally.begin("a"); wait != 0 {
			t.Errorf("after one failure: wait %v, want none", wait)
		} else {
			end(nil)
		}
		for n := range 2 * maxTallied {
			if end, wait := tally.begin(fmt.Sprint(n)); wait != 0 {
				t.Fatalf("somebody new waits %v", wait)
			} else {
				end(io.EOF)
			}
		}
		if len(tally.of) > maxTallied {
			t.Errorf("%d are counted, want %d at most", len(tally.of), maxTallied)
		}
		time.Sleep(tallyWindow)
		tally.begin("a")
		if len(tally.of) != 1 {
			t.Errorf("%d are counted after a minute, want 1", len(tally.of))
		}
	})
}

// What cannot be written is the server's own fault: it is told to the log, and
// nobody is let in.
func TestSessionUnwritable(t *testing.T) {
	h := newHall(t, nil)
	body := h.link(ann)
	lock := filepath.Join(h.dir.Path(), "tokens.lock")
	if err := errors.Join(os.Remove(lock), os.Mkdir(lock, 0o700)); err != nil {
		t.Fatal(err)
	}
	got, cookie := h.ask(visit("POST", body))
	if got.Code != 503 || cookie != "" || got.Header().Get("Retry-After") == "" || !strings.Contains(h.log.String(), "a session cannot be opened") {
		t.Errorf("POST: %d %s, cookie %q, log %s", got.Code, got.Body, cookie, h.log)
	}
}
