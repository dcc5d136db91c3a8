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

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/conversation"
)

// stream is a response with the events given, and the end of the body.
func stream(events ...string) *http.Response {
	return answer(200, strings.Join(events, ""), "Content-Type", "text/event-stream")
}

const (
	begins    = "event: status\nretry: 100\ndata: {\"id\":\"a\",\"state\":\"open\",\"turns\":1}\n\n"
	closes    = "event: closed\ndata: {\"id\":\"a\",\"state\":\"closed\",\"turns\":9}\n\n"
	goes      = "event: reconnect\nretry: 2000\ndata: {}\n\n"
	fails     = "event: error\ndata: {\"error\":\"internal\",\"errorId\":\"e1\"}\n\n"
	gone      = "event: error\ndata: {\"error\":\"not found\"}\n\n"
	midway    = "event: partial\ndata: {\"turn\":2,\"text\":\"a b\",\"truncated\":true}\n\n"
	word      = "event: delta\ndata: {\"turn\":2,\"text\":\" c\"}\n\n"
	anew      = "event: reset\ndata: {\"turn\":2}\n\n"
	unheardOf = "event: later\ndata: {}\n\n"
)

func says(ord int) string {
	return fmt.Sprintf("event: message\nid: 0.%d\ndata: {\"turn\":1,\"ord\":%d,\"role\":\"user\",\"status\":\"accepted\",\"time\":\"2030-01-02T03:04:05Z\",\"cursor\":\"0.%d\"}\n\n", ord, ord, ord)
}

// collect renders the events of a sequence.
func collect(events func(func(Event, error) bool)) (all []string, err error) {
	for event, err := range events {
		if err != nil {
			return all, err
		}
		text := string(event.Kind)
		switch event.Kind {
		case Message:
			text += " " + event.Record.Cursor.String()
		case Status, Closed:
			text += " " + string(event.Info.State)
		case Delta, Partial, Reset:
			text += fmt.Sprintf(" %+v", event.Words)
		}
		all = append(all, text)
	}
	return all, nil
}

// One pass over one stream, and how it ends.
func TestEvents(t *testing.T) {
	for _, test := range []struct {
		response *http.Response
		want     []string
		err      error
	}{
		{stream(begins, says(1), ":\n\n", unheardOf, says(2), closes, says(3)), []string{"status open", "message 0.1", "message 0.2", "closed closed"}, nil},
		{stream(midway, word, anew, goes), []string{
			"partial {Kind:partial Turn:2 Text:a b Truncated:true}", "delta {Kind:delta Turn:2 Text: c Truncated:false}",
			"reset {Kind:reset Turn:2 Text: Truncated:false}", "reconnect",
		}, nil},
		{stream("event: delta\ndata: {\"turn\":\"x\"}\n\n"), nil, ErrProtocol},
		{stream(begins, goes, says(1)), []string{"status open", "reconnect"}, nil},
		{stream(begins, says(1)), []string{"status open", "message 0.1"}, io.ErrUnexpectedEOF},
		{stream(begins, says(1)[:40]), []string{"status open"}, io.ErrUnexpectedEOF},
		{stream(begins, fails), []string{"status open"}, ErrInternal},
		{stream(begins, gone), []string{"status open"}, conversation.ErrNotFound},
		{stream("event: error\ndata: oh\n\n"), nil, ErrProtocol},
		{stream("event: message\ndata: {\"cursor\":\"x\"}\n\n"), nil, ErrProtocol},
		{answer(204, ""), nil, nil},
		{answer(404, `{"error":"not found"}`), nil, conversation.ErrNotFound},
		{answer(200, `{}`), nil, ErrProtocol},
	} {
		c := newClient(t, func(*http.Request) *http.Response { return test.response })
		got, err := collect(c.Events(t.Context(), "a", nil))
		if diff := cmp.Diff(test.want, got); diff != "" || !errors.Is(err, test.err) {
			t.Errorf("%v, want %v (-want +got):\n%s", err, test.err, diff)
		}
	}
}

// Follow goes on from the last entry, waits as it is told and longer while
// nothing comes, and ends with the close (SSE-32, SSE-55's kin).
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := []*http.Response{
			stream(begins, says(1), says(2)),        // cut
			nil,                                     // refused
			answer(503, `{"error":"unavailable"}`),  //
			answer(502, "a proxy's page"),           //
			stream(begins, says(3), goes),           // told to come back after 2 s
			stream(begins),                          // cut at once
			stream(begins, fails),                   //
			answer(429, `{}`, "Retry-After", "100"), //
			stream(begins, says(4), closes),
		}
		var asked []string
		var at []time.Duration
		begun := time.Now()
		c := newClient(t, func(r *http.Request) *http.Response {
			asked = append(asked, r.Header.Get("Last-Event-ID"))
			at = append(at, time.Since(begun))
			response := script[len(asked)-1]
			return response
		})
		got, err := collect(c.Follow(t.Context(), "a", nil))
		want := []string{
			"status open", "message 0.1", "message 0.2", "status open", "message 0.3", "reconnect",
			"status open", "status open", "status open", "message 0.4", "closed closed",
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if diff := cmp.Diff([]string{"", "0.2", "0.2", "0.2", "0.2", "0.3", "0.3", "0.3", "0.3"}, asked); diff != "" {
			t.Errorf("Last-Event-ID (-want +got):\n%s", diff)
		}
		for i, least := range []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 2 * time.Second, 0, 0, 100 * time.Second} {
			if waited := at[i+1] - at[i]; waited < least || waited > least+5*time.Second {
				t.Errorf("wait %d was %v; want %v and little more", i, waited, least)
			}
		}
	})
}

// Follow ends with a refusal that will not pass, with its context, and when its
// reader has enough.
func TestFollowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, response := range []*http.Response{
			answer(404, `{"error":"not found"}`), answer(401, `{"error":"unauthorized"}`), answer(400, `{"error":"InvalidCursorError"}`),
			answer(200, `<html>`), stream(begins, gone), stream("data: " + strings.Repeat("x", maxEventBytes+1)),
		} {
			asked := 0
			c := newClient(t, func(*http.Request) *http.Response { asked++; return response })
			if _, err := collect(c.Follow(t.Context(), "a", nil)); err == nil || asked != 1 {
				t.Errorf("%v after %d requests; want an error after one", err, asked)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		asked := 0
		c := newClient(t, func(*http.Request) *http.Response { asked++; return nil })
		if _, err := collect(c.Follow(ctx, "a", nil)); !errors.Is(err, context.DeadlineExceeded) || asked < 100 || asked > 300 {
			t.Errorf("%v after %d requests in an hour; want them 15 to 30 s apart", err, asked)
		}
		c = newClient(t, func(*http.Request) *http.Response { return stream(begins, says(1), says(2), closes) })
		n := 0
		for range c.Follow(t.Context(), "a", nil) {
			if n++; n == 2 {
				break
			}
		}
		if got, err := collect(newClient(t, func(*http.Request) *http.Response { return answer(204, "") }).Follow(t.Context(), "a", nil)); len(got) > 0 || err != nil {
			t.Errorf("of a conversation that is over: %v, %v; want nothing", got, err)
		}
	})
}

// A stream that says nothing for 45 s, no comment either, is given up.
func TestEventsOfASilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		c := newClient(t, func(r *http.Request) *http.Response {
			context.AfterFunc(r.Context(), func() { out.CloseWithError(r.Context().Err()) })
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: in}
		})
		go func() {
			io.WriteString(out, begins)
			for range 10 {
				time.Sleep(silence - time.Second)
				io.WriteString(out, ":\n\n")
			}
		}()
		begun := time.Now()
		_, err := collect(c.Events(t.Context(), "a", nil))
		if lived := time.Since(begun); !errors.Is(err, ErrSilent) || lived != 10*(silence-time.Second)+silence {
			t.Errorf("%v after %v; want ErrSilent 45 s after the last comment", err, lived)
		}
	})
}
