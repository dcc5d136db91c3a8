package server

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal/sqlite"
	"github.com/parley-run/parley/server/datadir"
)

// C-11.16, C-41: a restart with another system prompt, a lower rotation, another
// model and a dropped key diverges nowhere, and every open conversation goes on.
func TestRestartWithChanges(t *testing.T) {
	w := newWorld(t)
	w.config.Settings.RotateEveryTurns = 4
	first := w.start()
	ids := make([]string, 3)
	for i := range ids {
		id, err := first.me().Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range i + 2 {
			say(t, first.me(), id, "hello")
		}
		ids[i] = id
	}
	first.end()

	script := filepath.Join(t.TempDir(), "script.txt")
	if err := os.WriteFile(script, []byte("when system \"another prompt\"\n say \"as you wish\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	key := base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{7}, datadir.KeyBytes))
	if err := os.WriteFile(filepath.Join(w.config.Data, "key"), []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.config.Settings = Settings{
		Listen: "127.0.0.1:0", System: "You have another prompt.", Model: "script:" + script,
		RotateEveryTurns: 2, MaxWindowTurns: 1, MaxTurnChars: 100,
	}
	second := w.start()
	for i, id := range ids {
		got := say(t, second.me(), id, "go on")
		if got.Turn != i+3 || got.Text != "as you wish" {
			t.Errorf("conversation %d goes on with %+v, want turn %d under the new prompt", i, got, i+3)
		}
		if info, err := second.me().Status(t.Context(), id); err != nil || info.State != conversation.StateOpen {
			t.Errorf("conversation %d is %+v, %v, want it open", i, info, err)
		}
	}
	second.end()

	store, err := sqlite.Open(t.Context(), filepath.Join(w.config.Data, "parley.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for i, id := range ids {
		for rehearsal, err := range Replay(t.Context(), store, id) {
			if err != nil {
				t.Errorf("replay of conversation %d: %+v, %v", i, rehearsal, err)
			}
		}
	}
	if log := w.log.String(); strings.Contains(strings.ToLower(log), "diverge") {
		t.Errorf("a log has diverged:\n%s", log)
	}
}
