package gateway

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/internal/browsertest"
)

// A native EventSource in a real browser, by itself and with nothing of ours in
// the page. The subtests bear the numbers of the cases.
func TestEventSource(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes its time")
	}
	browser := browsertest.Start(t)
	for name, test := range map[string]func(*testing.T, context.Context){
		"SSE21ResumesAndStops":   resumesAndStops,
		"SSE51SevenTabs":         sevenTabs,
		"SSE51FiftyTabs":         fiftyTabs,
		"SSE43Error":             tellsErrorsApart,
		"ComesBackToAFullServer": comesBack,
		"IgnoresTheUnknown":      ignoresTheUnknown,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, browser)
		})
	}
}

// SSE-21, SSE-22, SSE-29, C-30.4, C-30.16: over connections that are reset in
// mid-event each message comes once, in order, since the browser names the last one
// that it had, words between them or not; and it never asks again after the 204.
func resumesAndStops(t *testing.T, browser context.Context) {
	s := newSite(t, siteConfig{cut: true})
	id, other := s.start(), s.start()
	s.say(id, "a", "b", "c", "d", "e", "f")
	s.say(other, "a", "b", "c")
	p := s.visit(t, browser)
	p.listen(id)
	ord, seen := 0, []string{""}
	hear := func(stream, until int) {
		t.Helper()
		for ord < until {
			e := p.next("status", "error", "partial", "delta")
			var record conversation.Record
			if e.Data == nil || e.Kind != "message" || json.Unmarshal([]byte(*e.Data), &record) != nil {
				t.Fatalf("among the messages is %s", e)
			}
			if ord++; e.Stream != stream || record.Ord != ord || record.Cursor.String() != e.ID {
				t.Fatalf("the message is %s; want ord %d of stream %d", e, ord, stream)
			}
			seen = append(seen, e.ID)
		}
	}
	hear(0, 12)
	s.say(id, "g") // live
	hear(0, 14)
	s.end(id)
	stops := func(stream int) {
		t.Helper()
		for {
			e := p.next("status", "closed")
			if e.Kind != "error" || e.Data != nil || e.Stream != stream {
				t.Fatalf("behind the last message comes %s", e)
			}
			if e.State == closed {
				return
			}
		}
	}
	stops(0)

	requests := s.requests(id)
	place := 0
	for _, asked := range requests {
		if place = slices.Index(seen, asked.last); place < 0 {
			t.Errorf("Last-Event-ID is %q; want that of a message", asked.last)
		}
	}
	if len(requests) < 5 || place != 14 || !slices.IsSortedFunc(requests, func(a, b asked) int { return slices.Index(seen, a.last) - slices.Index(seen, b.last) }) {
		t.Errorf("the streams were asked for as %v; want several, each from where the last one ended", requests)
	}
	ord, seen = 0, []string{""}
	s.end(other)
	p.listen(other) // it comes back several times, which the first would have done too
	hear(1, 6)
	stops(1)
	if again := s.requests(id); len(again) != len(requests) {
		t.Errorf("after the 204 the browser has asked again: %v", again[len(requests):])
	}
}

// SSE-51, T96: over HTTP/1.1 a browser opens six connections to a server. Six tabs
// are served, the seventh waits until one of them is closed.
func sevenTabs(t *testing.T, browser context.Context) {
	s := newSite(t, siteConfig{})
	id := s.start()
	p := s.visit(t, browser)
	for range 7 {
		p.listen(id)
	}
	served := map[int]bool{}
	for range 6 {
		e := p.next()
		if served[e.Stream] = true; e.Kind != "status" {
			t.Fatalf("the stream begins with %s", e)
		}
	}
	s.say(id, "still there?")
	for range 6 * 2 {
		if e := p.next("delta", "partial", "status"); e.Kind != "message" || !served[e.Stream] {
			t.Fatalf("the next event is %s; want a message of one of the six", e)
		}
	}
	if n, waits := len(s.requests(id)), p.ask("streams.filter(s => s.readyState == EventSource.CONNECTING).length"); len(served) != 6 || n != 6 || waits != 1 {
		t.Errorf("%d streams are served on %d requests, %d wait; want 6, and one that waits", len(served), n, waits)
	}
	for stream := range served {
		p.do(fmt.Sprintf("streams[%d].close()", stream))
		delete(served, stream)
		break
	}
	if e := p.next("delta", "partial"); e.Kind != "status" || served[e.Stream] {
		t.Errorf("after one was closed comes %s; want the seventh's status", e)
	}
}

// SSE-51: over HTTP/2 fifty tabs are served at once.
func fiftyTabs(t *testing.T, browser context.Context) {
	const tabs = 50
	s := newSite(t, siteConfig{tls: true, change: func(c *Config) { c.MaxStreamsPerCaller = tabs }})
	id := s.start()
	p := s.visit(t, browser)
	p.do(fmt.Sprintf("for (let i = 0; i < %d; i++) listen('/v1/conversations/%s/events')", tabs, id))
	count := func(kind event, times int) {
		t.Helper()
		served := map[int]int{}
		for range tabs * times {
			e := p.next("delta", "partial")
			if served[e.Stream]++; e.Kind != string(kind) || served[e.Stream] > times {
				t.Fatalf("the next event is %s; want %s, %d times in each tab", e, kind, times)
			}
		}
	}
	count(eventStatus, 1)
	if open := s.open(); open != tabs {
		t.Errorf("%d streams are open; want %d", open, tabs)
	}
	s.say(id, "are you all there?")
	count(eventMessage, 2)
	for _, asked := range s.requests(id) {
		if asked.proto != 2 {
			t.Errorf("a tab asks over HTTP/%d", asked.proto)
		}
	}
}

// SSE-43, C-30.14: an error of ours has data, a connection error has none, and the
// browser comes back after both.
func tellsErrorsApart(t *testing.T, browser context.Context) {
	s := newSite(t, siteConfig{})
	id := s.start()
	s.say(id, "hello")
	p := s.visit(t, browser)
	p.listen(id)
	p.expect(0, eventStatus)
	p.expect(0, eventMessage)
	p.expect(0, eventMessage)
	s.store.OnRead(func(stream string) error {
		if stream == id {
			return errors.New("the disk is gone")
		}
		return nil
	})
	var told Refusal
	if e := p.expect(0, eventError); e.Data == nil || json.Unmarshal([]byte(*e.Data), &told) != nil || told.Code != "internal" || told.ErrorID == "" {
		t.Errorf("an error of the server is %s", e)
	}
	s.store.OnRead(nil)
	if e := p.expect(0, eventError); e.Data != nil || e.State != connecting {
		t.Errorf("the end of the stream is %s, state %d; want no data, and that it is tried again", e, e.State)
	}
	p.expect(0, eventStatus)
}

// C-32.7: a stream that a server has no room for is tried again until there is.
func comesBack(t *testing.T, browser context.Context) {
	s := newSite(t, siteConfig{change: func(c *Config) { c.MaxStreams = 1 }})
	id, other := s.start(), s.start()
	p := s.visit(t, browser)
	p.listen(id)
	p.expect(0, eventStatus)
	p.listen(other)
	p.expect(1, eventReconnect)
	if e := p.expect(1, eventError); e.Data != nil || e.State != connecting {
		t.Errorf("a server without room: %s, state %d; want that it is tried again", e, e.State)
	}
	p.do("streams[0].close()")
	p.expect(1, eventStatus) // after 2 to 10 s
}

// What a later server may say besides is nothing to a page that does not know it;
// an id alone moves the place from which the browser goes on.
func ignoresTheUnknown(t *testing.T, browser context.Context) {
	last := make(chan string, 2)
	s := newSite(t, siteConfig{odd: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last <- r.Header.Get("Last-Event-ID")
		if r.Header.Get("Last-Event-ID") != "" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, ": a comment\n\nevent: later\ndata: {}\n\nretry: 10\ncolour: red\nevent: status\ndata: {\"colour\":\"red\"}\n\n"+
			"event: message\n\nretry: soon\n\nid: 0.7\n\nevent: delta\ndata: {\"text\":\"a\u2028b\"}\n\nevent: message\ndata: cut o")
	})})
	p := s.visit(t, browser)
	p.do("listen('/odd')")
	p.expect(0, eventStatus)
	if e := p.expect(0, eventDelta); e.ID != "0.7" || *e.Data != "{\"text\":\"a\u2028b\"}" {
		t.Errorf("the words are %s", e)
	}
	for _, state := range []int{connecting, closed} {
		if e := p.expect(0, eventError); e.Data != nil || e.State != state {
			t.Errorf("the end is %s, state %d; want state %d", e, e.State, state)
		}
	}
	if first, second := <-last, <-last; first != "" || second != "0.7" {
		t.Errorf("Last-Event-ID is %q and then %q; want 0.7 in the end", first, second)
	}
}
