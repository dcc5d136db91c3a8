package gateway

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/kernel"
)

// limited makes a world with the default limits.
func limited(t *testing.T) *world {
	return newWorld(t, func(_ *kernel.Config, c *Config) { c.MaxStreamsPerCaller, c.PostsPerMinute = 0, 0 })
}

// C-32.9, C-31.7, check 8: the 121st POST within a minute is a 429 that says when there is
// room again; it counts all that one identity posts, to whatever route and with
// whatever outcome, and nobody else's. A stranger is still told 404.
func TestPostRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := limited(t)
		anns := w.start()
		post := func(token, path, body string) (int, string) {
			got := w.ask(request("POST", "/v1/conversations"+path, token, body))
			return got.Code, got.Header().Get("Retry-After")
		}
		for i := range DefaultPostsPerMinute {
			path, body, want := "/"+anns+"/turns", "{", 400
			if i%3 == 0 {
				path, body, want = "", "", 201
			}
			if code, _ := post("ann@acme", path, body); code != want {
				t.Fatalf("post %d: %d; want %d", i+1, code, want)
			}
			if i == 0 {
				time.Sleep(10 * time.Second)
			}
		}
		for _, path := range []string{"", "/" + anns + "/turns", "/" + anns + "/close"} {
			if code, after := post("ann@acme", path, "{}"); code != 429 || after != "50" {
				t.Errorf("post 121 to %q: %d, Retry-After %q; want 429 after 50", path, code, after)
			}
		}
		if code, _ := post("ann@acme", "/missing/turns", "{}"); code != 404 {
			t.Errorf("post 121 to what is not there: %d; want 404", code)
		}
		if code, _ := post("bob@acme", "", ""); code != 201 {
			t.Errorf("a colleague's first post: %d", code)
		}
		if got := w.ask(request("GET", "/v1/conversations/"+anns, "ann@acme", "")); got.Code != 200 {
			t.Errorf("a read: %d; posts alone are counted", got.Code)
		}
		time.Sleep(50 * time.Second)
		if code, _ := post("ann@acme", "", ""); code != 201 {
			t.Errorf("a minute after the first: %d", code)
		}
		if code, after := post("ann@acme", "", ""); code != 429 || after != "10" {
			t.Errorf("the next: %d, Retry-After %q; want 429 after 10", code, after)
		}
	})
}

// C-32.12: who has gone quiet is forgotten, and the table never outgrows its
// bound.
func TestPostersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPosts(2)
		for i := range maxPosters {
			p.count(fmt.Sprint(i))
		}
		if wait := p.count("one more"); wait != postsWindow || len(p.of) != maxPosters {
			t.Errorf("one more: wait %v, %d known; want a minute", wait, len(p.of))
		}
		if wait := p.count("7"); wait != 0 {
			t.Errorf("one that is known waits %v", wait)
		}
		time.Sleep(postsWindow)
		if wait := p.count("one more"); wait != 0 || len(p.of) != 1 {
			t.Errorf("a minute later: wait %v, %d known; want 0 and 1", wait, len(p.of))
		}
	})
}

// C-32.7, C-31.7, SSE-59, check 8: the ninth stream of one identity is a 429, whichever
// conversation it is of; a stranger is told 404 whatever they have open; and a
// place is free as soon as its stream is gone.
func TestStreamsPerCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := limited(t)
		id, other := w.start(), w.start()
		var leave []context.CancelFunc
		var gone []<-chan time.Time
		for i := range DefaultMaxStreamsPerCaller {
			ctx, cancel := context.WithCancel(t.Context())
			_, done := w.stream(ctx, []string{id, other}[i%2])
			leave, gone = append(leave, cancel), append(gone, done)
		}
		synctest.Wait()
		for _, id := range []string{id, other} {
			got := w.ask(request("GET", "/v1/conversations/"+id+"/events?cursor=malformed", "ann@acme", ""))
			if got.Code != 429 || got.Body.String() != `{"error":"too many requests","reason":"streams"}` || got.Header().Get("Retry-After") != "5" {
				t.Errorf("the ninth: %d %s %v", got.Code, got.Body, got.Header())
			}
		}
		if got := w.ask(request("GET", "/v1/conversations/missing/events", "ann@acme", "")); got.Code != 404 {
			t.Errorf("the ninth, of what is not there: %d; want 404", got.Code)
		}
		leave[0]()
		<-gone[0]
		ctx, cancel := context.WithCancel(t.Context())
		tape, done := w.stream(ctx, id)
		synctest.Wait()
		if names := tape.events(); len(names) != 1 || names[0] != "status" {
			t.Errorf("with a place free again: %v", names)
		}
		cancel()
		<-done
		for i := range leave {
			leave[i]()
		}
		for _, done := range gone[1:] {
			<-done
		}
		if s := &w.gateway.streams; s.open != 0 || len(s.of) != 0 {
			t.Errorf("%d streams of %d callers are left", s.open, len(s.of))
		}
	})
}
