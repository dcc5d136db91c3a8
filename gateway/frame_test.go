package gateway

import (
	"bytes"
	"encoding/json/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/conversation"
)

// C-30.6, SSE-37, SSE-39, SSE-40, SSE-42, checks 20 to 22 and 24 to 26: no text ends a line, forges a field
// or loses a character.
func TestFrameIsOneEvent(t *testing.T) {
	for _, text := range []string{
		"", " two spaces", "a\nevent: error\ndata: {}\n\n", "a\r\rb", "a\r\nid: 9.9\r\n", "\u2028id: 1.1\u2029", "a\u0085b", "\x00\x1b[2J", "\ufeff", "🙂 ü 世",
		`"}` + "\n\nevent: closed\ndata: {}", "</script>", strings.Repeat("\n", 1000),
	} {
		checkFrame(t, text)
	}
}

// C-30.2, SSE-43, check 23: the names of events are letters of the alphabet and
// there are eight of them; none is "open", which a browser says by itself.
func TestSSE43EventNames(t *testing.T) {
	want := []event{"status", "partial", "message", "delta", "reset", "closed", "reconnect", "error"}
	got := []event{eventStatus, eventPartial, eventMessage, eventDelta, eventReset, eventClosed, eventReconnect, eventError}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	for _, name := range got {
		if strings.Trim(string(name), "abcdefghijklmnopqrstuvwxyz") != "" || name == "open" {
			t.Errorf("an event is named %q", name)
		}
	}
}

func FuzzFrame(f *testing.F) {
	f.Add("a\r\nevent: error\n\n\u2028\u0085")
	f.Fuzz(func(t *testing.T, text string) {
		if utf8.ValidString(text) {
			checkFrame(t, text)
		}
	})
}

func checkFrame(t *testing.T, text string) {
	t.Helper()
	sent := frame{event: eventMessage, id: "1.2", retry: 1500 * time.Millisecond, data: conversation.Record{Turn: 1, Text: text}}.append(nil)
	if bytes.ContainsAny(sent, "\r\u2028\u2029\u0085\x00") || bytes.Count(sent, []byte("\n")) != 5 {
		t.Fatalf("frame of %q: %q", text, sent)
	}
	words := frameOf(conversation.Words{Kind: conversation.WordsDelta, Turn: 1, Text: text})
	if bytes.ContainsAny(words, "\r\u2028\u2029\u0085\x00") || bytes.Count(words, []byte("\n")) != 3 {
		t.Fatalf("frame of the words %q: %q", text, words)
	}
	got, err := newReader(bytes.NewReader(sent)).next()
	if err != nil || got.name != "message" || got.id != "1.2" || got.retry != "1500" {
		t.Fatalf("frame of %q reads as %+v, %v", text, got, err)
	}
	var r conversation.Record
	if err := json.Unmarshal([]byte(got.data), &r); err != nil || r.Text != text {
		t.Fatalf("text %q comes back as %q, %v", text, r.Text, err)
	}
}
