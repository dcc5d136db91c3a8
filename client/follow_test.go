package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// opens is a status of a server whose clock shows a second of 03:04.
func opens(second int) string {
	return fmt.Sprintf("event: status\nretry: 100\ndata: {\"id\":\"a\",\"state\":\"open\",\"turns\":1,\"time\":\"2030-01-02T03:04:%02dZ\"}\n\n", second)
}

// replies is the answer of turn 2.
func replies(ord int) string {
	return strings.Replace(strings.Replace(says(ord), `"user"`, `"assistant"`, 1), `"turn":1`, `"turn":2`, 1)
}

// played is a client of a server that answers with one response after another,
// and what it is asked.
type played struct {
	*Client
	after []string        // the Last-Event-ID of each request
	waits []time.Duration // before each but the first
}

func play(t *testing.T, script ...*http.Response) *played {
	p := &played{}
	var last time.Time
	p.Client = newClient(t, func(r *http.Request) *http.Response {
		if len(p.after) > 0 {
			p.waits = append(p.waits, time.Since(last))
		}
		last = time.Now()
		p.after = append(p.after, r.Header.Get("Last-Event-ID"))
		return script[len(p.after)-1]
	})
	return p
}

// follow wants the events of a Follow that ends well.
func (p *played) follow(t *testing.T, want ...string) {
	t.Helper()
	got, err := collect(p.Follow(t.Context(), "a", nil))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// waited wants each wait between least and twice that.
func (p *played) waited(t *testing.T, least ...time.Duration) {
	t.Helper()
	for i, least := range least {
		if waited := p.waits[i]; waited < least || waited > 2*least {
			t.Errorf("wait %d was %v; want %v to twice that", i, waited, least)
		}
	}
}

const refused, unavailable = `Get "http://server/base/v1/conversations/a/events": connection refused`, `the server answers "unavailable"`

// Follow goes on from the last entry, waits as it is told and longer while
// nothing comes, says so, and ends with the close (SSE-32, SSE-55's kin).
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := play(
			t,
			stream(begins, says(1), says(2)),        // cut
			nil,                                     // refused
			answer(503, `{"error":"unavailable"}`),  //
			answer(502, "a proxy's page"),           //
			stream(begins, says(3), goes),           // told to come back after 2 s
			stream(begins),                          // cut at once
			stream(begins, fails),                   //
			answer(429, `{}`, "Retry-After", "100"), //
			stream(goes),                            // full (C-32.7)
			answer(504, "a proxy's page"),           //
			stream("event: error\ndata: {\"error\":\"unauthorized\"}\n\n"), // the token has expired, the next one may do
			stream(begins, says(4), closes),
		)
		p.follow(
			t, "status open", "message 0.1", "message 0.2", "lost unexpected EOF", "lost "+refused, "lost "+unavailable, "lost "+unavailable,
			"status open, resumed", "message 0.3", "reconnect", "status open, resumed", "lost unexpected EOF", "status open, resumed",
			`lost the server answers "internal", error id "e1"`, `lost the server answers "too many requests"`, "reconnect",
			"lost "+unavailable, `lost the server answers "unauthorized"`, "status open, resumed", "message 0.4", "closed closed",
		)
		if diff := cmp.Diff([]string{"", "0.2", "0.2", "0.2", "0.2", "0.3", "0.3", "0.3", "0.3", "0.3", "0.3", "0.3"}, p.after); diff != "" {
			t.Errorf("Last-Event-ID (-want +got):\n%s", diff)
		}
		p.waited(
			t, 250*time.Millisecond, 500*time.Millisecond, time.Second, 2*time.Second, 2*time.Second,
			500*time.Millisecond, time.Second, 100*time.Second, 4*time.Second,
		)
	})
}

// SSE-32: where nothing comes of it the waits grow, although each stream opens; an
// entry, or a stream of a minute, makes them short. A server can ask for half a
// minute between two streams and for five of them after a refusal, not for more.
func TestSSE32FollowWithoutProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := stream()
		long.Body = &slow{strings.NewReader(begins)}
		p := play(
			t, stream(begins), stream(begins), stream(begins), stream(begins), stream(begins, says(1)), stream(begins), long, stream(begins),
			stream("event: reconnect\nretry: 999999999\ndata: {}\n\n"), answer(429, `{}`, "Retry-After", "999999999"), stream(closes),
		)
		if _, err := collect(p.Follow(t.Context(), "a", nil)); err != nil {
			t.Error(err)
		}
		const ms = time.Millisecond
		p.waited(t, 250*ms, 500*ms, 1000*ms, 2000*ms, 250*ms, 500*ms)
		for i, want := range map[int]time.Duration{6: steady + 250*ms, 8: mostWait, 9: mostAfter} {
			if waited := p.waits[i]; waited < want || waited > want+time.Second {
				t.Errorf("wait %d was %v; want %v and little more", i, waited, want)
			}
		}
	})
}

// slow is a body that ends a minute after its first byte.
type slow struct{ *strings.Reader }

func (s *slow) Read(p []byte) (int, error) {
	if s.Len() == 0 {
		for range 4 {
			time.Sleep(steady / 4)
		}
	}
	return s.Reader.Read(p)
}

func (s *slow) Close() error { return nil }

// What was made while no stream was open is marked, by the server's clock alone: a
// client's may be years off. The first stream misses nothing, nor does a server
// that tells no time.
func TestFollowMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it is the year 2000; says is of 2030, 03:04:05
		play(
			t, stream(opens(50), says(1), goes), stream(opens(4), says(2), says(3)), nil, stream(opens(6), says(4)),
			stream(opens(5), says(5)), stream(begins, says(6), closes),
		).follow(
			t, "status open", "message 0.1", "reconnect", "status open, resumed", "message 0.2", "message 0.3", "lost unexpected EOF", "lost "+refused,
			"status open, resumed", "message 0.4, missed", "lost unexpected EOF", "status open, resumed", "message 0.5", "lost unexpected EOF",
			"status open, resumed", "message 0.6", "closed closed",
		)
	})
}

// T36, T40: words that were told before a stream was lost are never taken for the
// beginning of others that come after it: a Partial or a Reset stands between.
func TestFollowWords(t *testing.T) {
	const lost, resumed = "lost unexpected EOF", "status open, resumed"
	for name, test := range map[string]struct {
		second string
		want   []string
	}{
		"it goes on":            {midway + word, []string{`partial 2 "a b"`, `delta 2 " c"`}},
		"it began again":        {anew + word, []string{`reset 2 ""`, `delta 2 " c"`}},
		"nobody says how":       {word + word, []string{`reset 2 ""`, `delta 2 " c"`, `delta 2 " c"`}},
		"it ended":              {replies(1) + word, []string{"message 0.1", `delta 2 " c"`}},
		"an older one ended":    {strings.Replace(replies(1), `"turn":2`, `"turn":1`, 1) + word, []string{"message 0.1", `reset 2 ""`, `delta 2 " c"`}},
		"another one is told":   {strings.Replace(word, "2", "3", 1), []string{`delta 3 " c"`}},
		"the question is told":  {says(1) + word, []string{"message 0.1", `reset 2 ""`, `delta 2 " c"`}},
		"it is lost once again": {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				want := append([]string{"status open", `delta 2 " c"`, lost, resumed}, test.want...)
				if test.second == "" {
					play(t, stream(begins, word), stream(begins), stream(begins, word, closes)).follow(
						t, append(want, lost, resumed, `reset 2 ""`, `delta 2 " c"`, "closed closed")...)
					return
				}
				play(t, stream(begins, word), stream(begins, test.second, closes)).follow(t, append(want, "closed closed")...)
			})
		})
	}
}

// Follow ends with a refusal that will not pass, with its context, and when its
// reader has enough.
func TestFollowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, response := range []*http.Response{
			answer(404, `{"error":"not found"}`), answer(401, `{"error":"unauthorized"}`), answer(400, `{"error":"InvalidCursorError"}`),
			answer(403, `{"error":"forbidden"}`), answer(307, "", "Location", "http://elsewhere/"),
			answer(200, `<html>`), stream(begins, gone), stream("data: " + strings.Repeat("x", maxEventBytes+1)),
		} {
			asked := 0
			c := newClient(t, func(*http.Request) *http.Response { asked++; return response })
			if _, err := collect(c.Follow(t.Context(), "a", nil)); err == nil || asked != 1 {
				t.Errorf("%v after %d requests; want an error after one", err, asked)
			}
		}
		// C-31.8: whose token holds no more is asked for the next one, once.
		p := play(t, stream(begins, "event: error\ndata: {\"error\":\"unauthorized\"}\n\n"), answer(401, `{"error":"unauthorized"}`))
		if _, err := collect(p.Follow(t.Context(), "a", nil)); !errors.Is(err, ErrUnauthorized) || len(p.after) != 2 {
			t.Errorf("a revoked token: %v after %d requests; want ErrUnauthorized after two", err, len(p.after))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		asked := 0
		c := newClient(t, func(*http.Request) *http.Response { asked++; return nil })
		if _, err := collect(c.Follow(ctx, "a", nil)); !errors.Is(err, context.DeadlineExceeded) || asked < 100 || asked > 300 {
			t.Errorf("%v after %d requests in an hour; want them 15 to 30 s apart", err, asked)
		}
		for enough, script := range map[int][]*http.Response{
			2: {stream(begins, says(1), says(2), closes)},
			3: {stream(begins, says(1))},                    // the Lost
			5: {stream(begins, word), stream(begins, word)}, // the Reset that nobody sent
		} {
			n := 0
			for range play(t, script...).Follow(t.Context(), "a", nil) {
				if n++; n == enough {
					break
				}
			}
		}
		if got, err := collect(newClient(t, func(*http.Request) *http.Response { return answer(204, "") }).Follow(t.Context(), "a", nil)); len(got) > 0 || err != nil {
			t.Errorf("of a conversation that is over: %v, %v; want nothing", got, err)
		}
	})
}

// T26, T27: a message whose answer is lost, or that a server has no time for, is
// sent again under its id, for a minute; what will not pass is sent once.
func TestSend(t *testing.T) {
	busy := func() *http.Response { return answer(429, `{"error":"too many requests"}`, "Retry-After", "20") }
	for name, test := range map[string]struct {
		script []*http.Response
		times  int
		took   time.Duration // and at most two seconds more
		err    error
	}{
		"answered":          {[]*http.Response{answer(202, `{}`)}, 1, 0, nil},
		"lost, unavailable": {[]*http.Response{nil, answer(503, `{"error":"unavailable"}`), answer(502, "a page"), answer(202, `{}`)}, 4, 1750 * time.Millisecond, nil},
		"busy":              {[]*http.Response{busy(), busy(), answer(202, `{}`)}, 3, 40 * time.Second, nil},
		"busy for long":     {[]*http.Response{answer(429, `{"error":"too many requests"}`, "Retry-After", "90")}, 1, 0, ErrTooMany},
		"busy for ever":     {[]*http.Response{busy(), busy(), busy()}, 3, 40 * time.Second, ErrTooMany},
		"unknown":           {[]*http.Response{answer(401, `{"error":"unauthorized"}`)}, 1, 0, ErrUnauthorized},
		"refused":           {[]*http.Response{answer(500, `{"error":"internal"}`), answer(403, `{"error":"forbidden"}`)}, 2, 250 * time.Millisecond, ErrForbidden},
		"no server of ours": {[]*http.Response{answer(200, `<html>`)}, 1, 0, ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var bodies []string
				c := newClient(t, func(r *http.Request) *http.Response {
					body := new(strings.Builder)
					r.Write(body)
					bodies = append(bodies, body.String())
					return test.script[len(bodies)-1]
				})
				begun := time.Now()
				id, err := c.Send(t.Context(), "a", message("hi"))
				if took := time.Since(begun); !errors.Is(err, test.err) || len(bodies) != test.times || took < test.took || took > test.took+2*time.Second {
					t.Errorf("%v after %d requests and %v; want %v after %d and %v", err, len(bodies), took, test.err, test.times, test.took)
				}
				for _, body := range bodies {
					if body != bodies[0] || !strings.Contains(body, id) || len(id) != 26 {
						t.Errorf("%q is sent after %q, with the id %q", body, bodies[0], id)
					}
				}
			})
		})
	}
}

// Persist ends a minute after the first failure, with what it was, or with its
// context. What is nobody's failure but ours is not asked again.
func TestPersist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("away")
		asked := 0
		ask := func(context.Context) error { asked++; return away }
		begun := time.Now()
		if err := Persist(t.Context(), ask); err != away || time.Since(begun) > patience || time.Since(begun) < patience-mostPersistWait || asked < 12 || asked > 30 {
			t.Errorf("%v after %d times and %v; want the failure within a minute", err, asked, time.Since(begun))
		}
		brief, end := context.WithTimeout(t.Context(), leastWait/2)
		defer end()
		asked, begun = 0, time.Now()
		if err := Persist(brief, ask); err != away || asked != 1 || time.Since(begun) > 0 {
			t.Errorf("%v after %d times and %v; want the failure at once, since there is no time to ask again", err, asked, time.Since(begun))
		}
		over := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(over) })
		if err := Persist(ctx, ask); !errors.Is(err, over) || !errors.Is(err, away) {
			t.Errorf("%v; want what ended it, and the failure", err)
		}
		for _, last := range []error{
			ErrProtocol, fmt.Errorf("%w: text", ErrBadRequest), fmt.Errorf("ask: %w", http.ErrSchemeMismatch),
			fmt.Errorf("ask: %w", &tls.CertificateVerificationError{Err: away}), &Error{Code: "unauthorized", Status: 401}, &Error{Code: "x", Status: 418},
		} {
			asked = 0
			if err := Persist(t.Context(), func(context.Context) error { asked++; return last }); err != last || asked != 1 {
				t.Errorf("%v: asked %d times; want once", last, asked)
			}
		}
		c := newClient(t, func(*http.Request) *http.Response { t.Error("sent"); return nil })
		if _, err := c.Send(t.Context(), "a", message("\xff")); !errors.Is(err, ErrBadRequest) {
			t.Errorf("a text that is no UTF-8: %v; want ErrBadRequest", err)
		}
	})
}
