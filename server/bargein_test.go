package server

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal/sqlite"
)

// endless never comes to the end of one answer, and repeats every other text.
const endless = "when is \"long\"\n  forever \"word \" 5ms\notherwise\n  reply\n"

// C-14.1, C-14.21, C-46.2: a message cuts the answer that is being written, unless
// barge_in is off: then it waits. A stop ends the answer in both cases. What
// became of it is replayed from the log, an unfinished turn included, though nothing
// watches the inbox then.
func TestBargeIn(t *testing.T) {
	for name, bargeIn := range map[string]*bool{"by default": nil, "on": new(true), "off": new(false)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			model := filepath.Join(t.TempDir(), "model.txt")
			if err := os.WriteFile(model, []byte(endless), 0o600); err != nil {
				t.Fatal(err)
			}
			w.config.Settings.Model, w.config.Settings.BargeIn = "script:"+model, bargeIn
			r := w.start()
			me := r.me()
			id, err := me.Start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := cutShort(t, me, id, bargeIn == nil || *bargeIn)
			want := []string{"accepted long", "interrupted", "accepted next", "complete next"}
			if !slices.Equal(got, want) {
				t.Errorf("the transcript is %q, want %q", got, want)
			}
			r.end()
			replayed(t, r.Directory().Database(), id)
		})
	}
}

// cutShort begins a long answer, sends another message into it, and stops it if
// that message does not. It returns the transcript, without the texts of cut
// answers, and leaves another long answer running.
func cutShort(t *testing.T, me *client.Client, id string, cutsIn bool) (transcript []string) {
	t.Helper()
	send := func(text string) {
		t.Helper()
		if _, err := me.Send(t.Context(), id, conversation.Message{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // the answer has no end of its own
	defer cancel()
	words := 0
	for event, err := range me.Follow(ctx, id, nil) {
		if err != nil {
			t.Fatal(err)
		}
		switch event.Kind {
		case client.Status:
			send("long")
		case client.Delta:
			if words++; event.Words.Turn == 3 {
				return transcript[:min(4, len(transcript))]
			}
			if words == 1 {
				send("next")
			}
			if words == 40 && !cutsIn { // the message has had time enough to do what it should not
				if err := me.Stop(t.Context(), id, 1); err != nil {
					t.Fatal(err)
				}
			}
		case client.Message:
			line := string(event.Record.Status)
			if event.Record.Status != conversation.StatusInterrupted {
				line += " " + event.Record.Text
			}
			if transcript = append(transcript, line); len(transcript) == 4 {
				send("long")
			}
		}
	}
	return transcript
}

// replayed wants a conversation in the journal of a stopped server to replay.
func replayed(t *testing.T, path, id string) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, err := range Replay(t.Context(), store, id) {
		if err != nil {
			t.Errorf("Replay of an interrupted conversation: %v", err)
		}
	}
}
