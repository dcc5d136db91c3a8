package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// chunk reads one chunk of an HTTP/1.1 body as it lies on the wire.
func chunk(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	size, err := strconv.ParseUint(strings.TrimSuffix(line, "\r\n"), 16, 20)
	if err != nil {
		t.Fatalf("a chunk begins with %q", line)
	}
	data := make([]byte, size+2)
	if _, err := io.ReadFull(r, data); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(data), "\r\n")
}

// C-30.1, C-30.12, SSE-42, SSE-46, SSE-48, SSE-49, SSE-50, checks 10 to 15, 17, 19 to
// 22, 28 and 29: a stream as a raw socket sees it. Whatever the client accepts, the
// head is the same; the first bytes are a whole status; lines end with LF, no byte
// order mark stands anywhere, each flush ends between two events, and a silent
// stream comments every 15 s.
func TestWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, listener := w.piped(t)
		id := w.start()
		conn := listener.dial()
		defer conn.Close()
		fmt.Fprintf(conn, "GET /v1/conversations/%s/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ann@acme\r\n"+
			"Accept: application/json\r\nAccept-Encoding: gzip, br, zstd\r\nConnection: keep-alive\r\n\r\n", id)
		r := bufio.NewReader(conn)
		status, err := r.ReadString('\n')
		if err != nil || status != "HTTP/1.1 200 OK\r\n" {
			t.Fatalf("the answer begins with %q, %v", status, err)
		}
		head, err := textproto.NewReader(r).ReadMIMEHeader()
		if err != nil {
			t.Fatal(err)
		}
		head.Del("Date")
		want := textproto.MIMEHeader{
			"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-store, no-transform"}, "X-Accel-Buffering": {"no"},
			"X-Content-Type-Options": {"nosniff"}, "Transfer-Encoding": {"chunked"}, // the framing of HTTP/1.1, not ours
		}
		if diff := cmp.Diff(want, head); diff != "" {
			t.Errorf("head (-want +got):\n%s", diff)
		}
		begun := time.Now()
		first := chunk(t, r)
		if !regexp.MustCompile(`^event: status\nretry: [2-4]\d{3}\ndata: \{"id":"`+id+`",.*\}\n\n$`).MatchString(first) || time.Since(begun) != 0 {
			t.Errorf("after %v the first bytes are %q", time.Since(begun), first)
		}
		for i := range 3 {
			comment, at := chunk(t, r), time.Since(begun)
			if comment != ":\n\n" || at != time.Duration(i+1)*keepAlive {
				t.Errorf("after %v comes %q; want a comment every 15 s", at, comment)
			}
		}
		w.turn(id, "one\r\n")
		message := regexp.MustCompile(`^(event: message\nid: \d+\.\d+\ndata: \{.*\}\n\n)+$`)
		for seen := 0; seen < 2; {
			got := chunk(t, r)
			if seen += strings.Count(got, "event: "); !message.MatchString(got) || strings.Contains(got, "\r") {
				t.Errorf("the messages are %q", got)
			}
		}
	})
}

// Check 48: to HTTP/1.0 a stream is a body without a frame, which ends with its
// connection. One that names no Host is served where any will do (check 1).
func TestHTTP10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, listener := w.piped(t)
		id := w.start()
		w.say(id, "one")
		conn := listener.dial()
		defer conn.Close()
		fmt.Fprintf(conn, "GET /v1/conversations/%s/events HTTP/1.0\r\nAuthorization: Bearer ann@acme\r\n\r\n", id)
		r := bufio.NewReader(conn)
		response, err := http.ReadResponse(r, nil)
		if err != nil || response.StatusCode != 200 || len(response.TransferEncoding) > 0 {
			t.Fatalf("%+v, %v", response, err)
		}
		events := newReader(response.Body)
		events.expect(t, eventStatus)
		w.end(id)
		for _, name := range []event{eventMessage, eventMessage, eventClosed} {
			events.expect(t, name)
		}
		events.ended(t)
	})
}

// Checks 29 and 30: whatever is flushed is whole events, however long.
func TestFlushedEventsAreWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLiveWorld(t, "otherwise\n  repeat 200 \"0123456789ü🙂\\n\" 10ms\n  wait 1s")
		id := w.start()
		for range 3 {
			w.say(id, strings.Repeat("x", 31_000))
		}
		seen := &tape{onFlush: func(seen *tape) {
			if text := seen.text(); !strings.HasSuffix(text, "\n\n") {
				t.Errorf("flushed in the middle of an event: …%q", text[max(0, len(text)-100):])
			}
		}}
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.handler.ServeHTTP(seen, request("GET", "/v1/conversations/"+id+"/events", "ann@acme", ""))
		}()
		w.say(id, "more")
		w.end(id)
		<-done
		if names := seen.events(); len(names) < 1+8+1 || names[len(names)-1] != "closed" {
			t.Errorf("%d events", len(names))
		}
	})
}

// Check 27: each stream is told when to come back, and not all the same; a gateway
// that drains spreads them wider.
func TestRetryIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.start()
		var status, reconnect []string
		var tapes []*tape
		var done []<-chan time.Time
		for range 20 {
			tape, ended := w.stream(t.Context(), id)
			tapes, done = append(tapes, tape), append(done, ended)
		}
		synctest.Wait()
		w.gateway.Drain(t.Context())
		for i, tape := range tapes {
			<-done[i]
			r := newReader(strings.NewReader(tape.text()))
			status, reconnect = append(status, r.expect(t, eventStatus).retry), append(reconnect, r.expect(t, eventReconnect).retry)
		}
		for most, all := range map[int][]string{5000: status, 10000: reconnect} {
			for _, text := range all {
				if ms, err := strconv.Atoi(text); err != nil || ms < 2000 || ms >= most {
					t.Errorf("retry: %q; want 2000 to %d", text, most)
				}
			}
			slices.Sort(all)
			if n := len(slices.Compact(all)); n < 10 {
				t.Errorf("20 streams are told to come back at %d times", n)
			}
		}
	})
}
