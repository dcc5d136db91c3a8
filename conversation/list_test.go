package conversation

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// C-29.13: the caller's own conversations, newest activity first, in pages.
func TestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(t)
		begun := time.Now()
		bob := person("acme", "bob")
		for i := range 5 {
			id := fmt.Sprint("c", i)
			if _, err := w.client.Start(t.Context(), ann, id); err != nil {
				t.Fatal(err)
			}
			if _, err := w.client.Start(t.Context(), bob, "bobs-"+id); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		say := func(id, text string) {
			if _, err := w.client.SendTurn(t.Context(), ann, id, Message{Text: text}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		say("c1", strings.Repeat("é", 81))
		say("c1", "not the title")
		time.Sleep(time.Second)
		if err := w.client.Close(t.Context(), ann, "c3"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()

		var got []Listed
		cursor, pages := "", 0
		for done := false; !done; pages++ {
			page, err := w.client.List(t.Context(), ann, cursor, 2)
			if err != nil || len(page.Conversations) > 2 {
				t.Fatalf("List = %+v, %v", page, err)
			}
			got = append(got, page.Conversations...)
			cursor, done = page.Next, page.Done
		}
		var ids []string
		for _, c := range got {
			ids = append(ids, c.ID)
		}
		if want := "c3 c1 c4 c2 c0"; strings.Join(ids, " ") != want || pages != 3 {
			t.Errorf("List = %v in %d pages; want %s in 3", ids, pages, want)
		}
		if c := got[0]; c.State != StateClosed || c.Title != "" || c.Turns != 0 {
			t.Errorf("the closed one: %+v", c)
		}
		want := Listed{Info{ID: "c1", State: StateOpen, Turns: 2}, strings.Repeat("é", 80), begun.Add(5 * time.Second).UTC()}
		if got[1] != want {
			t.Errorf("the one with turns: %+v; want %+v", got[1], want)
		}

		if page, err := w.client.List(t.Context(), nil, "", 0); err != nil || len(page.Conversations) != 0 || !page.Done {
			t.Errorf("List of nobody = %+v, %v; want none", page, err)
		}
		if _, err := w.client.List(t.Context(), person("acme", ""), "", 0); err != error(ErrNotFound) {
			t.Errorf("List of an empty actor: %v; want ErrNotFound", err)
		}
	})
}

// C-17.6: a list's cursor is opaque, and a malformed one is an error.
func TestListCursor(t *testing.T) {
	w := newMemoryWorld(t)
	encode := base64.RawURLEncoding.EncodeToString
	for _, cursor := range []string{
		"!", "=", "a", encode([]byte("no-nul")), encode([]byte("a\x00b\x00c")), encode([]byte("\xff\x00b")),
		encode([]byte(strings.Repeat("a", 2000) + "\x00")), encode([]byte("a\x00b")) + "\n",
	} {
		if _, err := w.client.List(t.Context(), ann, cursor, 0); !errors.Is(err, ErrInvalidCursor) {
			t.Errorf("List from %.20q: %v; want ErrInvalidCursor", cursor, err)
		}
	}
	for _, position := range []string{"\x00", "zzz\x00zzz", "owner:\x00x"} {
		if page, err := w.client.List(t.Context(), ann, encode([]byte(position)), 0); err != nil || len(page.Conversations) > 0 {
			t.Errorf("List from %q = %+v, %v; want an empty page", position, page, err)
		}
	}
}

func FuzzListPosition(f *testing.F) {
	for _, seed := range []string{"", "YQBi", "!", "YQ=="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		position, err := listPosition(cursor)
		if err == nil && cursor != "" && base64.RawURLEncoding.EncodeToString([]byte(position)) != cursor {
			t.Errorf("listPosition(%q) = %q, which is written otherwise", cursor, position)
		}
		if err != nil && (err != error(ErrInvalidCursor) || position != "") {
			t.Errorf("listPosition(%q) = %q, %v", cursor, position, err)
		}
	})
}
