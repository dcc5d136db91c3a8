package server

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
)

// C-28.2: the parts of a server are joined by a hub: the words of an answer come
// before it, while the model still speaks, and are its text.
func TestLiveWords(t *testing.T) {
	w := newWorld(t)
	model := filepath.Join(t.TempDir(), "model.txt")
	if err := os.WriteFile(model, []byte("otherwise\n  words \"one two three\" 100ms\n  wait 100ms\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.config.Settings.Model = "script:" + model
	r := w.start()
	defer r.end()
	me := r.me()
	id, err := me.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	words, pieces := "", 0
	for event, err := range me.Follow(t.Context(), id, nil) {
		if err != nil {
			t.Fatal(err)
		}
		switch event.Kind {
		case client.Status:
			if _, err := me.Send(t.Context(), id, conversation.Message{Text: "go"}); err != nil {
				t.Fatal(err)
			}
		case client.Delta:
			words += event.Words.Text
			pieces++
		}
		if event.Kind == client.Message && event.Record.Role == conversation.RoleAssistant {
			if words != event.Record.Text || pieces < 2 {
				t.Errorf("the words were %q in %d pieces, the answer is %q", words, pieces, event.Record.Text)
			}
			return
		}
	}
}
