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
			text += fmt.Sprintf(" %d %q", event.Words.Turn, event.Words.Text)
		case Lost:
			text += " " + event.Err.Error()
		}
		if event.Resumed {
			text += ", resumed"
		}
		if event.Missed {
			text += ", missed"
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
			`partial 2 "a b"`, `delta 2 " c"`, `reset 2 ""`, "reconnect",
		}, nil},
		{stream("event: delta\ndata: {\"turn\":\"x\"}\n\n"), nil, ErrProtocol},
		{stream("event: status\ndata: {\"time\":\"noon\"}\n\n"), nil, ErrProtocol},
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
