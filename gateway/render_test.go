package gateway

import (
	"encoding/json/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-run/parley/conversation"
)

// bracketed stands for a maker of HTML.
func bracketed(text string) string { return "<p>" + text + "</p>" }

// renderScript answers whole, fails, and goes on until it is cut.
const renderScript = `when has "fail"
  say "half"
  fail unavailable "down"
when has "on and on"
  say "some "
  forever "more " 1ms
otherwise
  reply
`

// shown is an entry as a client that asks for HTML gets it.
type shown struct {
	conversation.Record
	HTML *string `json:"html"`
}

// C-30.13: who asks for HTML gets it beside the text of whole answers of the model,
// in the history as on the stream. What a person said has none, nor has an answer
// that was cut or has failed; and who does not ask gets none.
func TestRender(t *testing.T) {
	w := newLiveWorld(t, renderScript)
	w.gateway.config.HTML = bracketed
	id := w.start()
	w.say(id, "whole", "fail")
	if _, err := w.client.SendTurn(t.Context(), ann, id, conversation.Message{Text: "on and on"}); err != nil {
		t.Fatal(err)
	}
	live, err := w.client.Live(t.Context(), ann, id)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	for live.Next() == nil {
		<-live.Hint()
	}
	w.say(id, "<b>other</b>")
	w.end(id)

	var page struct {
		Entries []shown `json:"entries"`
	}
	answer := w.ask(request(http.MethodGet, "/v1/conversations/"+id+"/history?render=html", "ann@acme", ""))
	if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil {
		t.Fatalf("history = %d %s: %v", answer.Code, answer.Body, err)
	}
	checkShown(t, "the history", page.Entries)
	if plain := w.ask(request(http.MethodGet, "/v1/conversations/"+id+"/history", "ann@acme", "")); strings.Contains(plain.Body.String(), "html") {
		t.Errorf("who does not ask for HTML gets %s", plain.Body)
	}

	var streamed []shown
	stream, err := http.DefaultClient.Do(request(http.MethodGet, w.serve().URL+"/v1/conversations/"+id+"/events?render=html", "ann@acme", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	for r := newReader(stream.Body); ; {
		e, err := r.next()
		if err != nil {
			break
		}
		if e.name == string(eventMessage) {
			var entry shown
			if err := json.Unmarshal([]byte(e.data), &entry); err != nil {
				t.Fatal(err)
			}
			streamed = append(streamed, entry)
		}
	}
	checkShown(t, "the stream", streamed)
}

func checkShown(t *testing.T, where string, entries []shown) {
	t.Helper()
	if len(entries) != 8 {
		t.Fatalf("%s has %d entries, want 8", where, len(entries))
	}
	for i, entry := range entries {
		whole := entry.Role == conversation.RoleAssistant && entry.Status == conversation.StatusComplete
		switch {
		case whole && (entry.HTML == nil || *entry.HTML != bracketed(entry.Text)):
			t.Errorf("%s: entry %d, %q, has the HTML %v, want %q", where, i, entry.Text, entry.HTML, bracketed(entry.Text))
		case !whole && entry.HTML != nil:
			t.Errorf("%s: entry %d, %s %s, has the HTML %q, want none", where, i, entry.Role, entry.Status, *entry.HTML)
		}
	}
	if status := entries[5].Status; status != conversation.StatusInterrupted {
		t.Errorf("%s: the third answer is %s, want it interrupted", where, status)
	}
}

// C-30.13: any other form is a 400, to whoever may ask at all; where nothing makes
// HTML the text goes alone.
func TestRenderRefused(t *testing.T) {
	w := newWorld(t)
	id := w.start()
	w.say(id, "hello")
	for _, path := range []string{"/history", "/events"} {
		answer := w.ask(request(http.MethodGet, "/v1/conversations/"+id+path+"?render=markdown", "ann@acme", ""))
		if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), `"render-invalid"`) {
			t.Errorf("GET %s with another form = %d %s, want 400 render-invalid", path, answer.Code, answer.Body)
		}
	}
	answer := w.ask(request(http.MethodGet, "/v1/conversations/"+id+"/history?render=html", "ann@acme", ""))
	if answer.Code != http.StatusOK || strings.Contains(answer.Body.String(), "html") {
		t.Errorf("history without a maker of HTML = %d %s, want it without", answer.Code, answer.Body)
	}
}
