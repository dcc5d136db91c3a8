package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal"
)

// server answers requests without a network.
type server func(*http.Request) *http.Response

func (s server) RoundTrip(r *http.Request) (*http.Response, error) {
	response := s(r)
	if response == nil {
		return nil, errors.New("connection refused")
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	response.Request = r
	return response, nil
}

// answer is a response.
func answer(status int, body string, header ...string) *http.Response {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, ProtoMajor: 1, Body: io.NopCloser(strings.NewReader(body))}
}

func newClient(t *testing.T, s server) *Client {
	t.Helper()
	c, err := New("http://server/base/", "parley_secret", &http.Client{Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNew(t *testing.T) {
	for _, base := range []string{"", "server", "server:80", "ftp://server", "http://", "http://user:pw@server", "http://server?x=1", "http://server#x", "http://a b"} {
		if _, err := New(base, "", nil); err == nil || strings.Contains(err.Error(), "pw") {
			t.Errorf("New(%q) = %v; want an error that repeats nothing", base, err)
		}
	}
	c := newClient(t, nil)
	if text := fmt.Sprintf("%v %+v %#v", c, *c, c); strings.Contains(text, "parley_secret") {
		t.Error("a printed client shows its token")
	}
}

func message(text string) conversation.Message { return conversation.Message{Text: text} }

// Each call is the request that it should be.
func TestRequests(t *testing.T) {
	var got string
	c := newClient(t, func(r *http.Request) *http.Response {
		body := ""
		if r.Body != nil {
			data, _ := io.ReadAll(r.Body)
			body = " " + r.Header.Get("Content-Type") + " " + string(data)
		}
		got = fmt.Sprint(r.Method, " ", r.URL, " ", r.Header.Get("Authorization"), body)
		return answer(200, `{"id":"c1"}`)
	})
	for _, test := range []struct {
		call func() error
		want string
	}{
		{func() error { _, err := c.Start(t.Context()); return err }, `POST http://server/base/v1/conversations Bearer parley_secret application/json {}`},
		{func() error {
			_, err := c.Send(t.Context(), "a", conversation.Message{Text: "hi", ID: "m"})
			return err
		}, `POST http://server/base/v1/conversations/a/turns Bearer parley_secret application/json {"text":"hi","messageId":"m"}`},
		{func() error {
			_, err := c.Send(t.Context(), "a", conversation.Message{Text: "hi", ID: "m", EditOf: 3})
			return err
		}, `POST http://server/base/v1/conversations/a/turns Bearer parley_secret application/json {"text":"hi","messageId":"m","editOf":3}`},
		{func() error { return c.Stop(t.Context(), "a", 7) }, `POST http://server/base/v1/conversations/a/stop Bearer parley_secret application/json {"turn":7}`},
		{func() error { return c.Close(t.Context(), "a") }, `POST http://server/base/v1/conversations/a/close Bearer parley_secret application/json {}`},
		{func() error { _, err := c.Status(t.Context(), "../a?b"); return err }, `GET http://server/base/v1/conversations/..%2Fa%3Fb Bearer parley_secret`},
		{func() error { _, err := c.History(t.Context(), "a", conversation.HistoryOptions{}); return err }, `GET http://server/base/v1/conversations/a/history Bearer parley_secret`},
		{func() error {
			_, err := c.History(t.Context(), "a", conversation.HistoryOptions{Limit: 3, MaxScan: 4, Cursor: &conversation.Cursor{Generation: 1, Seq: 2}, Direction: journal.Backward})
			return err
		}, `GET http://server/base/v1/conversations/a/history?cursor=1.2&direction=backward&limit=3&maxScan=4 Bearer parley_secret`},
		{func() error { _, err := c.List(t.Context(), "x&y", 5); return err }, `GET http://server/base/v1/conversations?cursor=x%26y&limit=5 Bearer parley_secret`},
	} {
		if err := test.call(); err != nil || got != test.want {
			t.Errorf("%v:\n%s\nwant\n%s", err, got, test.want)
		}
	}
}

// Every code of the wire is its sentinel again.
func TestErrors(t *testing.T) {
	for _, test := range []struct {
		response *http.Response
		want     error
		text     string
	}{
		{answer(404, `{"error":"not found"}`), conversation.ErrNotFound, `the server answers "not found"`},
		{answer(409, `{"error":"ConversationClosed"}`), conversation.ErrClosed, ""},
		{answer(429, `{"error":"QueueFull"}`), conversation.ErrQueueFull, ""},
		{answer(400, `{"error":"InvalidCursorError"}`), conversation.ErrInvalidCursor, ""},
		{answer(400, `{"error":"bad request","reason":"text-empty"}`), conversation.ErrInvalidTurn, `the server answers "bad request" ("text-empty")`},
		{answer(400, `{"error":"bad request","reason":"edit-of-invalid"}`), conversation.ErrInvalidTurn, ""},
		{answer(400, `{"error":"bad request","reason":"turn-invalid"}`), conversation.ErrInvalidTurn, ""},
		{answer(400, `{"error":"bad request","reason":"wrong-type"}`), ErrBadRequest, ""},
		{answer(401, `{"error":"unauthorized"}`), ErrUnauthorized, ""},
		{answer(403, `{"error":"forbidden"}`), ErrForbidden, ""},
		{answer(413, `{"error":"too large"}`), ErrTooLarge, ""},
		{answer(429, `{"error":"too many requests"}`), ErrTooMany, ""},
		{answer(500, `{"error":"internal","errorId":"e1"}`), ErrInternal, `the server answers "internal", error id "e1"`},
		{answer(503, `{"error":"unavailable"}`), ErrUnavailable, ""},
		{answer(502, `<html>a proxy</html>`), ErrUnavailable, ""},
		{answer(404, `<html>a proxy</html>`), nil, `the server answers "status 404"`},
		{answer(302, ``, "Location", "http://elsewhere/"), nil, `the server answers "status 302"`},
		{answer(418, `{"error":"`+strings.Repeat("x", 10_000)+`"}`), nil, `the server answers "status 418"`},
		{answer(418, `{"error":"new\u001b[2J"}`), nil, `the server answers "new\x1b[2J"`},
		{answer(200, `[]`), ErrProtocol, ""},
		{answer(200, `{"id":"`+strings.Repeat("x", maxAnswerBytes)+`"}`), ErrProtocol, ""},
	} {
		requests := 0
		c := newClient(t, func(*http.Request) *http.Response { requests++; return test.response })
		_, err := c.Status(t.Context(), "a")
		if err == nil || test.want != nil && !errors.Is(err, test.want) || test.text != "" && err.Error() != test.text || requests != 1 {
			t.Errorf("%d: %v after %d requests; want %v %s", test.response.StatusCode, err, requests, test.want, test.text)
		}
		if test.want == nil && errors.Is(err, conversation.ErrNotFound) {
			t.Errorf("%d: %v is taken for a missing conversation", test.response.StatusCode, err)
		}
	}
	for header, want := range map[string]time.Duration{"": 0, "5": 5 * time.Second, "-1": 0, "soon": 0, "999999999999": time.Hour} {
		c := newClient(t, func(*http.Request) *http.Response { return answer(429, `{"error":"QueueFull"}`, "Retry-After", header) })
		_, err := c.Status(t.Context(), "a")
		if refused, ok := errors.AsType[*Error](err); !ok || refused.RetryAfter != want || refused.Status != 429 {
			t.Errorf("Retry-After %q: %+v; want %v", header, err, want)
		}
	}
}

// T27: the id of a message is known even if its answer is lost, and a server that
// takes a request and never answers, as one behind a dead connection, is given up.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c := newClient(t, func(r *http.Request) *http.Response {
			asked++
			<-r.Context().Done()
			return answer(202, `{}`)
		})
		begun := time.Now()
		if _, err := c.Status(t.Context(), "a"); err != ErrSilent || time.Since(begun) != answerWithin {
			t.Errorf("Status without an answer: %v after %v; want ErrSilent after %v", err, time.Since(begun), answerWithin)
		}
		asked = 0
		if id, err := c.Send(t.Context(), "a", message("hi")); err != ErrSilent || len(id) != 26 || asked != 3 {
			t.Errorf("Send without an answer = %q, %v, asked %d times; want an id and ErrSilent", id, err, asked)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Status(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Status with a deadline: %v", err)
		}
	})
}
