package main

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/server"
	"github.com/parley-run/parley/server/datadir"
)

// The answer to a line is that of the line's own turn; what others say and are
// answered meanwhile is heard, and ends nothing.
func TestHear(t *testing.T) {
	user := func(turn int, text string) conversation.Record {
		return conversation.Record{Turn: turn, Role: conversation.RoleUser, Status: conversation.StatusAccepted, Text: text}
	}
	reply := func(turn int, status conversation.Status, text string) conversation.Record {
		return conversation.Record{Turn: turn, Role: conversation.RoleAssistant, Status: status, Text: text}
	}
	rejected := conversation.Record{Role: conversation.RoleUser, Status: conversation.StatusRejected, Reason: conversation.ReasonStale, Text: "mine"}
	bare := rejected
	bare.Text = ""
	failed := reply(3, conversation.StatusFailed, "")
	failed.Reason, failed.ErrorID = conversation.ReasonModelError, "x1"
	tests := map[string]struct {
		records []conversation.Record
		after   int // records that are heard before the line is dealt with
		out     string
		err     string
	}{
		"answered":         {[]conversation.Record{user(3, "mine"), reply(3, conversation.StatusComplete, "yes")}, 2, "yes\n", ""},
		"interrupted":      {[]conversation.Record{user(3, "mine"), reply(3, conversation.StatusInterrupted, "ye")}, 2, "ye\n", ""},
		"an older answer":  {[]conversation.Record{reply(2, conversation.StatusComplete, "old"), user(3, "mine"), reply(3, conversation.StatusComplete, "yes")}, 3, "old\nyes\n", ""},
		"somebody else's":  {[]conversation.Record{user(3, "theirs"), reply(3, conversation.StatusComplete, "them"), user(4, "mine"), reply(4, conversation.StatusComplete, "yes")}, 4, "them\nyes\n", ""},
		"failed":           {[]conversation.Record{user(3, "mine"), failed}, 2, "", "parley: no answer: model-error, error id x1\n"},
		"rejected":         {[]conversation.Record{rejected}, 1, "", "parley: the message was rejected: stale\n"},
		"rejected, unread": {[]conversation.Record{bare}, 1, "", "parley: the message was rejected: stale\n"},
		"not yet":          {[]conversation.Record{user(3, "mine")}, 0, "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errs strings.Builder
			talk := &talk{terminal: console{out: &out, err: &errs}}
			turn, after := 0, 0
			for i, record := range tt.records {
				if talk.hear(record, "mine", &turn) {
					after = i + 1
					break
				}
			}
			if after != tt.after || out.String() != tt.out || errs.String() != tt.err {
				t.Errorf("dealt with after %d records, with %q and %q, want %d, %q and %q", after, out.String(), errs.String(), tt.after, tt.out, tt.err)
			}
		})
	}
}

// Prompts are for people: on a terminal each line is asked for.
func TestPrompts(t *testing.T) {
	s, err := server.New(t.Context(), server.Config{
		Data:     filepath.Join(t.TempDir(), "data"),
		Settings: server.Settings{Listen: "127.0.0.1:0", Model: "script:" + writeFile(t, "echo.txt", "otherwise\n reply\n")},
		Log:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for _, interactive := range []bool{true, false} {
		me := reader(t, s.Directory().Path())
		id, err := me.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		terminal := console{in: strings.NewReader("hello\n\nyou\n"), out: &out, err: io.Discard}
		if err := (&talk{server: me, id: id, terminal: terminal, interactive: interactive}).run(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := "hello\nyou\n"
		if interactive {
			want = "> hello\n> > you\n> \n"
		}
		if out.String() != want {
			t.Errorf("interactive %t: the talk prints %q, want %q", interactive, out.String(), want)
		}
	}
	// A line that is too long says so, in the words of those who wrote it.
	me := reader(t, s.Directory().Path())
	id, err := me.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	long := console{in: strings.NewReader(strings.Repeat("x", maxLine+1)), out: io.Discard, err: io.Discard}
	err = (&talk{server: me, id: id, terminal: long}).run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "a line is longer than 1048576 bytes") {
		t.Errorf("a line of %d bytes: %v, want that it is too long", maxLine+1, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if isTerminal(strings.NewReader("")) {
		t.Error("a text is taken for a terminal")
	}
}

// A server that is away is waited for, but not for ever.
func TestFinderGivesUp(t *testing.T) {
	dir, err := datadir.Open(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var gaveUp error
		began := 0
		f := &finder{dir: dir, absence: absence{began: func() { began++ }, tooLong: func(err error) { gaveUp = err }}}
		try := func() {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://parley.invalid/v1/conversations", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.RoundTrip(r); err == nil || !strings.Contains(err.Error(), "parley serve --data "+dir.Path()) {
				t.Fatalf("RoundTrip without a server = %v, want what to do", err)
			}
		}
		try()
		time.Sleep(patience)
		if try(); gaveUp != nil {
			t.Fatalf("after %v it has given up: %v", patience, gaveUp)
		}
		time.Sleep(time.Millisecond)
		if try(); gaveUp == nil || !strings.Contains(gaveUp.Error(), "away for 1m0s") {
			t.Errorf("after more than %v it gives up with %v", patience, gaveUp)
		}
		if began != 1 {
			t.Errorf("the absence began %d times, want once", began)
		}
	})
}

// T26, T27: a message whose answer was lost is sent again under the same id, and
// one that the server can never take is sent once.
func TestSendAgain(t *testing.T) {
	var ids []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var turn struct {
			Text      string `json:"text"`
			MessageID string `json:"messageId"`
		}
		if err := json.UnmarshalRead(r.Body, &turn); err != nil {
			t.Error(err)
		}
		ids = append(ids, turn.MessageID)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case turn.Text == "bad":
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":"bad request","reason":"text-too-long"}`)
		case len(ids) == 1:
			panic(http.ErrAbortHandler) // the answer is lost
		case len(ids) == 2:
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, `{"error":"unavailable"}`)
		default:
			w.WriteHeader(http.StatusAccepted)
			io.WriteString(w, `{"messageId":"`+turn.MessageID+`"}`)
		}
	}))
	defer server.Close()
	c, err := client.New(server.URL, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	talk := &talk{server: c, id: "x", terminal: console{out: io.Discard, err: &errs}}
	if sent, err := talk.send(t.Context(), "good"); !sent || err != nil {
		t.Fatalf("send = %t, %v", sent, err)
	}
	if len(ids) != 3 || ids[0] == "" || ids[0] != ids[1] || ids[1] != ids[2] {
		t.Errorf("the message was sent as %q, want three times under one id", ids)
	}
	if sent, err := talk.send(t.Context(), "bad"); sent || err != nil || talk.failed != 1 || len(ids) != 4 {
		t.Errorf("send of a bad text = %t, %v, after %d requests, want it sent once and complained about", sent, err, len(ids)-3)
	}
	if !strings.Contains(errs.String(), "text-too-long") {
		t.Errorf("the complaint is %q, want the reason", errs.String())
	}
}

// What the server will never take is not sent again; all else is.
func TestMayPass(t *testing.T) {
	tests := []struct {
		err  error
		want bool
	}{
		{errors.New("connection refused"), true},
		{&client.Error{Status: 503, Code: "unavailable"}, true},
		{&client.Error{Status: 429, Code: "QueueFull"}, true},
		{&client.Error{Status: 404, Code: "not found"}, false},
		{&client.Error{Status: 409, Code: "ConversationClosed"}, false},
		{fmt.Errorf("send: %w", &client.Error{Status: 401, Code: "unauthorized"}), false},
	}
	for _, tt := range tests {
		if got := mayPass(tt.err); got != tt.want {
			t.Errorf("mayPass(%v) = %t, want %t", tt.err, got, tt.want)
		}
	}
}
