package main

import (
	"context"
	"encoding/json/v2"
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
// answered meanwhile is heard, and ends nothing. An answer that was cut is told
// apart from a whole one, beside what is piped on.
func TestHear(t *testing.T) {
	user := func(turn int, text string) conversation.Record {
		return conversation.Record{Turn: turn, Role: conversation.RoleUser, Status: conversation.StatusAccepted, Text: text}
	}
	reply := func(turn int, status conversation.Status, text string) conversation.Record {
		return conversation.Record{Turn: turn, Role: conversation.RoleAssistant, Status: status, Text: text}
	}
	rejected := conversation.Record{Role: conversation.RoleUser, Status: conversation.StatusRejected, Reason: conversation.ReasonStale, Text: "mine"}
	bare, edit, large := rejected, rejected, rejected
	bare.Text, edit.Reason, large.Reason = "", conversation.ReasonEditInvalid, conversation.ReasonPromptTooLarge
	failed := reply(3, conversation.StatusFailed, "")
	failed.Reason, failed.ErrorID = conversation.ReasonModelError, "x1"
	tests := map[string]struct {
		records []conversation.Record
		after   int // records that are heard before the line is dealt with
		out     string
		err     string
	}{
		"answered":         {[]conversation.Record{user(3, "mine"), reply(3, conversation.StatusComplete, "yes")}, 2, "yes\n", ""},
		"interrupted":      {[]conversation.Record{user(3, "mine"), reply(3, conversation.StatusInterrupted, "ye")}, 2, "ye\n", "parley: the answer was interrupted\n"},
		"an older answer":  {[]conversation.Record{reply(2, conversation.StatusComplete, "old"), user(3, "mine"), reply(3, conversation.StatusComplete, "yes")}, 3, "old\nyes\n", ""},
		"somebody else's":  {[]conversation.Record{user(3, "theirs"), reply(3, conversation.StatusComplete, "them"), user(4, "mine"), reply(4, conversation.StatusComplete, "yes")}, 4, "them\nyes\n", ""},
		"failed":           {[]conversation.Record{user(3, "mine"), failed}, 2, "", "parley: no answer: model-error, error id x1\n"},
		"rejected":         {[]conversation.Record{rejected}, 1, "", "parley: the message was rejected: stale\n"},
		"rejected, unread": {[]conversation.Record{bare}, 1, "", "parley: the message was rejected: stale\n"},
		"too much":         {[]conversation.Record{large}, 1, "", "parley: the message was rejected: prompt-too-large; it does not fit into the model's context window, send it in pieces\n"},
		"a bad edit":       {[]conversation.Record{edit}, 1, "", "parley: the message was rejected: " + rejection(edit.Reason) + "\n"},
		"not yet":          {[]conversation.Record{user(3, "mine")}, 0, "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errs strings.Builder
			talk := &talk{terminal: console{out: &out, err: &errs}, asks: []*ask{{text: "mine", sent: true}}}
			after := 0
			for i, record := range tt.records {
				if talk.hear(record); len(talk.asks) == 0 {
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

// Two lines with one text are two messages, each with its own answer; one that is
// to be stopped is, as soon as its turn is known (C-46.3: never another).
func TestHearInOrder(t *testing.T) {
	first, second := &ask{text: "again", sent: true}, &ask{text: "again", sent: true, stop: true}
	talk := &talk{terminal: console{out: io.Discard, err: io.Discard}, asks: []*ask{first, second}}
	say := func(turn int) {
		talk.hear(conversation.Record{Turn: turn, Role: conversation.RoleUser, Status: conversation.StatusAccepted, Text: "again"})
	}
	if say(1); first.turn != 1 || second.turn != 0 || len(talk.orders) != 0 {
		t.Errorf("after the first record the turns are %d and %d, %d orders", first.turn, second.turn, len(talk.orders))
	}
	if say(2); second.turn != 2 || len(talk.orders) != 1 {
		t.Errorf("after the second record its turn is %d, with %d orders; want 2 and the stop", second.turn, len(talk.orders))
	}
}

// serving is a server that runs until the test ends.
func serving(t *testing.T, model string) *server.Server {
	t.Helper()
	s, err := server.New(t.Context(), server.Config{
		Data:     filepath.Join(t.TempDir(), "data"),
		Settings: server.Settings{Listen: "127.0.0.1:0", Model: "script:" + writeFile(t, "model.txt", model)},
		Log:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// person types a line at each prompt, and then ends the input.
type person struct {
	lines  []string
	asked  chan struct{}
	screen strings.Builder
}

// Write shows a text to the person.
func (p *person) Write(text []byte) (int, error) {
	if string(text) == "> " {
		p.asked <- struct{}{}
	}
	return p.screen.Write(text)
}

// Read waits for a prompt, and types.
func (p *person) Read(buffer []byte) (int, error) {
	<-p.asked
	if len(p.lines) == 0 {
		return 0, io.EOF
	}
	line := p.lines[0] + "\n"
	p.lines = p.lines[1:]
	return copy(buffer, line), nil
}

// Prompts are for people: on a terminal each line is asked for. Into a pipe go
// answers alone, one after another, however early the lines come.
func TestPrompts(t *testing.T) {
	s := serving(t, "otherwise\n reply\n")
	me := reader(t, s.Directory().Path())
	talkWith := func(terminal console, interactive bool) error {
		t.Helper()
		id, err := me.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		terminal.err = io.Discard
		return (&talk{server: me, id: id, terminal: terminal, interactive: interactive}).run(t.Context())
	}
	ann := &person{lines: []string{"hello", "", "you"}, asked: make(chan struct{}, 8)}
	if err := talkWith(console{in: ann, out: ann}, true); err != nil {
		t.Fatal(err)
	}
	if got, want := ann.screen.String(), "> hello\n> > you\n> \n"; got != want {
		t.Errorf("a person is shown %q, want %q", got, want)
	}
	var piped strings.Builder
	if err := talkWith(console{in: strings.NewReader("hello\n\nyou\n"), out: &piped}, false); err != nil {
		t.Fatal(err)
	}
	if got, want := piped.String(), "hello\nyou\n"; got != want {
		t.Errorf("the pipe brings %q, want %q", got, want)
	}
	// A line that is too long says so, in the words of those who wrote it.
	err := talkWith(console{in: strings.NewReader(strings.Repeat("x", maxLine+1)), out: io.Discard}, false)
	if err == nil || !strings.Contains(err.Error(), "a line is longer than 1048576 bytes") {
		t.Errorf("a line of %d bytes: %v, want that it is too long", maxLine+1, err)
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
		changed := func(away bool) {
			if !away {
				t.Error("an absent server is back")
			}
			began++
		}
		f := &finder{dir: dir, absence: absence{changed: changed, tooLong: func(err error) { gaveUp = err }}}
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
	talk := &talk{server: c, id: "x", terminal: console{out: io.Discard, err: &errs}, outcomes: make(chan error, 1)}
	send := func(text string) {
		t.Helper()
		talk.say(conversation.Message{Text: text})
		talk.work(t.Context())
		if err := talk.settle(<-talk.outcomes); err != nil {
			t.Fatal(err)
		}
	}
	send("good")
	if len(ids) != 3 || ids[0] == "" || ids[0] != ids[1] || ids[1] != ids[2] || len(talk.asks) != 1 {
		t.Errorf("the message was sent as %q, want three times under one id", ids)
	}
	send("bad")
	if talk.failed != 1 || len(ids) != 4 || len(talk.asks) != 1 {
		t.Errorf("a bad text was sent %d times, %d lines have failed; want it sent once and complained about", len(ids)-3, talk.failed)
	}
	if !strings.Contains(errs.String(), `"text-too-long"); send it in pieces`) {
		t.Errorf("the complaint is %q, want the reason and what to do", errs.String())
	}
}
