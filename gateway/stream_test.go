package gateway

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
)

// events opens a stream over a real connection.
func events(t *testing.T, server *httptest.Server, id, query, token, last string) (*http.Response, *reader) {
	t.Helper()
	r := request("GET", server.URL+"/v1/conversations/"+id+"/events"+query, token, "")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response, newReader(response.Body)
}

// expect reads the next event and checks its name.
func (r *reader) expect(t *testing.T, name event) sse {
	t.Helper()
	e, err := r.next()
	if err != nil || e.name != string(name) {
		t.Fatalf("the next event is %+v, %v; want %s", e, err, name)
	}
	return e
}

// message reads the next message and returns its record.
func (r *reader) message(t *testing.T) (sse, conversation.Record) {
	t.Helper()
	e := r.expect(t, eventMessage)
	var record conversation.Record
	if err := json.Unmarshal([]byte(e.data), &record); err != nil || record.Cursor.String() != e.id {
		t.Fatalf("message %+v: %v; want a record whose cursor is the id", e, err)
	}
	return e, record
}

func (r *reader) ended(t *testing.T) {
	t.Helper()
	if e, err := r.next(); err == nil {
		t.Errorf("after the last event comes %+v", e)
	}
}

// C-30.1 to C-30.3, C-30.8, C-30.15, T49: one stream from the first status to
// the close, over turns and rotations, with the entries as in history.
func TestStream(t *testing.T) {
	w := newWorld(t)
	server := w.serve()
	id := w.start()
	w.say(id, "one")
	response, r := events(t, server, id, "", "ann@acme", "")
	want := http.Header{ // SSE-46, SSE-48, SSE-49
		"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-store, no-transform"},
		"X-Accel-Buffering": {"no"}, "X-Content-Type-Options": {"nosniff"},
	}
	response.Header.Del("Date")
	if diff := cmp.Diff(want, response.Header); response.StatusCode != 200 || diff != "" {
		t.Errorf("status %d, header (-want +got):\n%s", response.StatusCode, diff)
	}
	first := r.expect(t, eventStatus)
	status := regexp.MustCompile(`^{"id":"` + id + `","state":"open","turns":1,"shared":false,"time":"([-0-9]{10}T[:0-9]{8}(?:\.[0-9]{1,3})?Z)"}$`).FindStringSubmatch(first.data)
	if status == nil || first.id != "" || first.retry == "" {
		t.Fatalf("status: %+v", first)
	}
	opened, _ := time.Parse(time.RFC3339, status[1])
	var data []string
	for range 2 {
		e, record := r.message(t)
		data = append(data, e.data)
		if record.Time.After(opened) {
			t.Errorf("the stream was opened at %v, and the entry of before that is of %v", opened, record.Time)
		}
	}
	for i := range 7 { // two rotations
		w.say(id, fmt.Sprint("more ", i))
		for range 2 {
			e, _ := r.message(t)
			data = append(data, e.data)
		}
	}
	w.end(id)
	closed := r.expect(t, eventClosed)
	if closed.data != `{"id":"`+id+`","state":"closed","turns":8,"shared":false}` || closed.id != "" {
		t.Errorf("closed: %+v", closed)
	}
	r.ended(t)
	got := w.ask(request("GET", "/v1/conversations/"+id+"/history", "ann@acme", ""))
	if history := `{"entries":[` + strings.Join(data, ",") + `],`; !strings.HasPrefix(got.Body.String(), history) {
		t.Errorf("the stream and the history differ:\n%s\n%s", history, got.Body)
	}
}

// C-30.4, T37, SSE-22, SSE-29, SSE-34, check 32: a stream that is cut at every event and
// resumed sees each message once, and the header wins over the address.
func TestStreamResumed(t *testing.T) {
	w := newWorld(t)
	server := w.serve()
	id := w.start()
	w.say(id, "0", "1", "2", "3", "4", "5", "6")
	last := ""
	for i := range 14 {
		response, r := events(t, server, id, "?cursor=0.0", "ann@acme", last)
		r.expect(t, eventStatus)
		e, record := r.message(t)
		if record.Ord != i+1 || record.Text != fmt.Sprint(i/2) {
			t.Fatalf("after %q comes %+v; want entry %d", last, record, i+1)
		}
		last = e.id
		response.Body.Close()
	}
	// By hand.
	_, r := events(t, server, id, "?cursor="+last, "ann@acme", "")
	r.expect(t, eventStatus)
	w.say(id, "7")
	if _, record := r.message(t); record.Text != "7" {
		t.Errorf("after %s by hand: %+v", last, record)
	}
}

// C-30.16, SSE-31, SSE-35, check 9, check 42: what a cursor may be, and what it is
// answered.
func TestStreamCursors(t *testing.T) {
	w := newWorld(t)
	open, over := w.start(), w.start()
	w.say(open, "one")
	w.say(over, "one")
	w.end(over)
	page, err := w.client.History(t.Context(), ann, over, conversation.HistoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lastEntry := page.Entries[1].Cursor.String()
	for _, test := range []struct {
		id, header, query string
		want              int
	}{
		{over, lastEntry, "", 204},
		{over, page.Next.String(), "", 204},
		{over, "99.0", "", 204},
		{over, "", "?cursor=" + lastEntry, 204},
		{over, "", "", 200},
		{over, "0.0", "", 200},
		{over, page.Entries[0].Cursor.String(), "?cursor=" + lastEntry, 200},
		{over, lastEntry, "?cursor=x", 204},
		{over, "", "?cursor=", 200},
		{open, "x", "", 400},
		{open, "0", "", 400},
		{open, "e.18446744073709551615", "", 400},
		{open, "0.18446744073709551615", "", 400},
		{open, "18446744073709551615.0", "", 400},
		{open, "999999999999999.999999999999999", "", 200},
		{open, " ", "", 400}, // net/http takes spaces away, and then it is none
		{open, "0.0 ", "", 400},
		{open, "-1.0", "", 400},
		{open, "0.0", "?cursor=0.0&cursor=1.0", 200},
		{open, "1.1\xff", "", 400},
		{open, strings.Repeat("1", 5000) + ".0", "", 400},
		{open, "", "?cursor=1", 400},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		r := request("GET", "/v1/conversations/"+test.id+"/events"+test.query, "ann@acme", "").WithContext(ctx)
		if test.header != "" {
			r.Header.Set("Last-Event-ID", test.header)
		}
		got := &tape{onFlush: func(*tape) { cancel() }}
		w.handler.ServeHTTP(got, r)
		cancel()
		if got.code != test.want || test.want == 204 && got.text() != "" {
			t.Errorf("Last-Event-ID %.30q, query %q: %d %q; want %d", test.header, test.query, got.code, got.text(), test.want)
		}
	}
	r := request("GET", "/v1/conversations/"+open+"/events", "ann@acme", "")
	r.Header["Last-Event-Id"] = []string{"0.0", "0.1"}
	if got := w.ask(r); got.Code != 400 {
		t.Errorf("two Last-Event-IDs: %d; want 400", got.Code)
	}
}

// C-30.10, SSE-27, SSE-28, T48: two tenants, and two tabs of one of them, each
// see all of their own conversation and nothing of the other's.
func TestStreamsAreSeparate(t *testing.T) {
	w := newWorld(t)
	server := w.serve()
	mine := w.start()
	code, theirs := do[created](t, server, "POST", "/v1/conversations", "ann@evil", "")
	if code != 201 {
		t.Fatal(code)
	}
	_, tab1 := events(t, server, mine, "", "ann@acme", "")
	_, tab2 := events(t, server, mine, "", "ann@acme", "")
	_, other := events(t, server, theirs.ID, "", "ann@evil", "")
	for _, r := range []*reader{tab1, tab2, other} {
		r.expect(t, eventStatus)
	}
	for i := range 5 {
		w.say(mine, fmt.Sprint("mine ", i))
		do[sent](t, server, "POST", "/v1/conversations/"+theirs.ID+"/turns", "ann@evil", `{"text":"theirs"}`)
		for _, r := range []*reader{tab1, tab2} {
			for range 2 {
				if _, record := r.message(t); record.Text != fmt.Sprint("mine ", i) {
					t.Errorf("a tab of mine sees %q", record.Text)
				}
			}
		}
		for range 2 {
			if _, record := other.message(t); record.Text != "theirs" {
				t.Errorf("theirs sees %q", record.Text)
			}
		}
	}
}

// Finding 9, check 2: a HEAD of a stream is answered and leaves nothing
// behind.
func TestStreamHead(t *testing.T) {
	w := newWorld(t)
	server := w.serve()
	id := w.start()
	response, err := http.DefaultClient.Do(request("HEAD", server.URL+"/v1/conversations/"+id+"/events", "ann@acme", ""))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	got := &tape{}
	w.handler.ServeHTTP(got, request("HEAD", "/v1/conversations/"+id+"/events", "ann@acme", "")) // returns
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" || got.text() != "" {
		t.Errorf("HEAD: %d %v, body %q", response.StatusCode, response.Header, got.text())
	}
}

// C-30.14: an error in mid-stream is the fixed body of its cause, and the end.
func TestStreamError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.start()
		tape, done := w.stream(t.Context(), id)
		synctest.Wait() // the execution is parked: if its own read failed, the whole runtime would
		secret := errors.New("disk at QWERTZ")
		w.store.OnRead(func(string) error { return secret })
		<-done
		r := newReader(strings.NewReader(tape.text()))
		r.expect(t, eventStatus)
		failed := r.expect(t, eventError)
		r.ended(t)
		var p Refusal
		if err := json.Unmarshal([]byte(failed.data), &p); err != nil || p.Code != "internal" || !errors.Is(w.reports()[p.ErrorID], secret) || failed.id != "" {
			t.Errorf("error event %+v: %v; want an internal problem, reported", failed, err)
		}
		if strings.Contains(failed.data, "QWERTZ") {
			t.Errorf("the error event tells %s", failed.data)
		}
	})
}

// SSE-6, check 44: behind a wrapper that hides deadlines a stream fails loudly.
func TestStreamNeedsDeadlines(t *testing.T) {
	w := newWorld(t)
	id := w.start()
	got := w.ask(request("GET", "/v1/conversations/"+id+"/events", "ann@acme", "")) // a recorder has none
	if got.Code != 500 || len(w.reports()) != 1 {
		t.Errorf("%d %s, reported %v; want a 500 and a report", got.Code, got.Body, w.reports())
	}
}

// SSE-1, SSE-3: neither the server's write timeout nor its read timeout ends a
// stream; an idle one outlives both.
func TestStreamOutlivesServerTimeouts(t *testing.T) {
	w := newWorld(t)
	const timeout = 50 * time.Millisecond
	server := w.serve(func(s *http.Server) { s.WriteTimeout, s.ReadTimeout = timeout, timeout })
	id := w.start()
	_, r := events(t, server, id, "", "ann@acme", "")
	r.expect(t, eventStatus)
	timer := time.NewTimer(4 * timeout) // real sockets, so real time
	<-timer.C
	w.say(id, "later")
	if _, record := r.message(t); record.Text != "later" {
		t.Errorf("after the timeouts: %+v", record)
	}
}

// C-30.11, C-42.4, SSE-54, SSE-56: 500 connects and disconnects leave no
// stream, no goroutine and no subscription.
func TestStreamsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.start()
		w.say(id, "one")
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				for range 50 {
					ctx, cancel := context.WithCancel(t.Context())
					got := &tape{onFlush: func(*tape) { cancel() }}
					w.handler.ServeHTTP(got, request("GET", "/v1/conversations/"+id+"/events", "ann@acme", "").WithContext(ctx))
					cancel()
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if open, subscribed := w.open(), w.store.Counts().Subscriptions; open != 0 || subscribed != 0 {
			t.Errorf("%d streams and %d subscriptions are left", open, subscribed)
		}
	})
}

// C-30.6: hostile texts, from the turn to the stream.
func TestStreamHostileTexts(t *testing.T) {
	w := newWorld(t)
	server := w.serve()
	id := w.start()
	_, r := events(t, server, id, "", "ann@acme", "")
	r.expect(t, eventStatus)
	for _, text := range []string{"a\nevent: error\ndata: {}\n\n", "\r\r\nid: 99.99\r", "\u2028\u2029\u0085event: closed\u0085", `\u000aevent: x`, "\ufeffdata:"} {
		body, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		if code, _ := do[sent](t, server, "POST", "/v1/conversations/"+id+"/turns", "ann@acme", string(body)); code != 202 {
			t.Fatal(code)
		}
		for range 2 {
			if _, record := r.message(t); record.Text != text {
				t.Errorf("text %q comes as %q", text, record.Text)
			}
		}
	}
}

// C-32.7, check 8: beyond the total, a stream is told to come back, and its place is
// free again when one has gone (C-32.13).
func TestStreamsAreBounded(t *testing.T) {
	w := newWorld(t)
	id := w.start()
	var leaves []func()
	for i := range DefaultMaxStreams {
		leave, err := w.gateway.streams.enter(fmt.Sprint("caller ", i))
		if err != nil || leave == nil {
			t.Fatalf("no room below the limit: %v", err)
		}
		leaves = append(leaves, leave)
	}
	path := "/v1/conversations/" + id + "/events"
	got := &tape{}
	w.handler.ServeHTTP(got, request("GET", path, "ann@acme", ""))
	if got.code != 200 || !regexp.MustCompile(`^event: reconnect\nretry: \d{4,5}\ndata: \{\}\n\n$`).MatchString(got.text()) {
		t.Errorf("beyond the limit: %d %q; want 200 with a reconnect alone", got.code, got.text())
	}
	w.wantEnd(EndFull)
	stranger := w.ask(request("GET", path, "bob@acme", "")) // C-31.7
	if stranger.Code != 404 {
		t.Errorf("a stranger beyond the limit: %d; want 404", stranger.Code)
	}
	leaves[0]()
	ctx, cancel := context.WithCancel(t.Context())
	got = &tape{onFlush: func(*tape) { cancel() }}
	w.handler.ServeHTTP(got, request("GET", path, "ann@acme", "").WithContext(ctx))
	if names := got.events(); len(names) == 0 || names[0] != "status" {
		t.Errorf("with a place free again: %v", names)
	}
}

// A panic in mid-stream cuts the connection and writes nothing into it
// (check 43); before the head it is a 500.
func TestPanics(t *testing.T) {
	w := newWorld(t)
	id := w.start()
	got := &tape{onFlush: func(*tape) { panic("QWERTZ") }}
	func() {
		defer func() {
			if r := recover(); r != http.ErrAbortHandler {
				t.Errorf("the handler panics with %v; want ErrAbortHandler", r)
			}
		}()
		w.handler.ServeHTTP(got, request("GET", "/v1/conversations/"+id+"/events", "ann@acme", ""))
	}()
	if w.open() != 0 || strings.Contains(got.text(), "QWERTZ") {
		t.Errorf("after the panic %d streams are open; the tape says %q", w.open(), got.text())
	}
	w.wantEnd(EndFailed)
	w.store.OnRead(func(string) error { panic("QWERTZ") })
	if got := w.ask(request("GET", "/v1/conversations/"+kernel.NewID(), "ann@acme", "")); got.Code != 500 {
		t.Errorf("%d; want 500", got.Code)
	}
	if text := fmt.Sprint(w.reports(), w.log()); strings.Contains(text, "QWERTZ") || len(w.reports()) != 2 {
		t.Errorf("reported: %s; want both panics, by type alone", text)
	}
}

// C-32.13, C-32.8: a store that panics while a stream is being opened takes no
// place from the conversation's readers, whichever read it is.
func TestPanicWhileOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := conversation.NewHub(conversation.HubConfig{MaxReaders: 1})
		w := newWorldOn(t, journaltest.Wrap(memory.New()), "otherwise\n  reply", hub)
		id := w.start()
		open := func() *tape {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			got := &tape{onFlush: func(*tape) { w.store.OnRead(nil); leave() }} // it is open
			w.handler.ServeHTTP(got, request("GET", "/v1/conversations/"+id+"/events", "ann@acme", "").WithContext(ctx))
			return got
		}
		for failing := 0; ; failing++ {
			synctest.Wait() // the runtime reads nothing meanwhile
			reads := 0
			w.store.OnRead(func(string) error {
				if reads++; reads > failing {
					panic("QWERTZ")
				}
				return nil
			})
			got := open()
			w.store.OnRead(nil)
			if reads <= failing {
				return // each read has had its turn
			}
			if got.code != 500 {
				t.Fatalf("a panic at read %d is answered %d; want 500", failing, got.code)
			}
			if got := open(); got.code != 200 || w.open() != 0 {
				t.Fatalf("after a panic at read %d a stream is answered %d, and %d are open; want 200, and none", failing, got.code, w.open())
			}
		}
	})
}
