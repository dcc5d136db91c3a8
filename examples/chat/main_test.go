package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-run/parley/journal/sqlite"
	"github.com/parley-run/parley/kernel"
)

// C-1.11, C-1.12: the example talks, stops, and goes on where it was.
func TestChat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chat.db")
	say := func(lines ...string) []string {
		t.Helper()
		var out strings.Builder
		if err := chat(t.Context(), path, strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(out.String()), "\n")
	}
	first := say("hello", "I am unhappy about my brother")
	second := say("hello")
	if len(first) != 2 || len(second) != 1 || !strings.Contains(first[1], "brother") {
		t.Fatalf("the answers are %q, then %q, want two about a brother, then one", first, second)
	}
	if second[0] == first[0] {
		t.Errorf("after a restart the greeting is %q again: what was said before is forgotten", second[0])
	}

	store, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	owner, _, err := kernel.OwnerOf(t.Context(), store, "chat")
	if err != nil || owner == nil || owner.Actor != "me" {
		t.Errorf("OwnerOf(chat) = %v, %v, want me", owner, err)
	}
	if next, _, err := store.HeadOf(t.Context(), kernel.InboxStream("chat")); next != 3 || err != nil {
		t.Errorf("the inbox holds %d messages, %v, want 3", next, err)
	}
}

// The key stays, or what waits at a kill would be rejected afterwards.
func TestSigningKeysStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chat.db.key")
	var keys [2]string
	for i := range keys {
		if _, err := signingKeys(path); err != nil {
			t.Fatal(err)
		}
		key, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = string(key)
	}
	if keys[0] != keys[1] {
		t.Error("a second start makes another key")
	}
}
