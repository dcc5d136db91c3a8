package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
)

// SSE-23: an empty log, a cursor that stands at the head, and one that lies
// beyond it: nothing is told again, and what comes is told once.
func TestSSE23StreamAtHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, test := range []struct {
			turns int
			last  string
		}{
			{0, ""}, {0, "0.0"}, {0, "0.1"}, {0, "7.7"}, {1, "of the last entry"}, {1, "of the next one"}, {1, "999999999999999.999999999999999"},
		} {
			id, last := w.start(), test.last
			if test.turns > 0 {
				w.say(id, "before")
			}
			page, err := w.client.History(t.Context(), ann, id, conversation.HistoryOptions{})
			switch {
			case err != nil:
				t.Fatal(err)
			case last == "of the last entry":
				last = page.Entries[1].Cursor.String()
			case last == "of the next one":
				last = page.Next.String()
			}
			seen, leave := w.resume(id, last)
			if got := seen.events(); !slices.Equal(got, []string{"status"}) {
				t.Errorf("behind %q: %v; want the status alone", last, got)
			}
			w.say(id, "after")
			synctest.Wait()
			leave()
			if diff := cmp.Diff([]string{"status", "message # after", "message # after"}, seen.heard()); diff != "" {
				t.Errorf("behind %q (-want +got):\n%s", last, diff)
			}
		}
	})
}

// SSE-25, SSE-33, C-30.10: a cursor is a place and nothing else. That of another
// conversation, or one from far ahead, brings no entry of another and tells no
// newer id than those of the entries.
func TestSSE25ForeignCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		long, short := w.start(), w.start()
		for i := range 20 {
			w.say(long, fmt.Sprint("secret ", i))
		}
		w.say(short, "mine")
		own := w.ids(short)
		for _, last := range append(w.ids(long), "999999999999999.0") {
			seen, leave := w.resume(short, last)
			leave()
			ids, _ := seen.messages()
			for _, id := range ids {
				if !slices.Contains(own, id) {
					t.Errorf("behind %s comes %s; its own are %v", last, id, own)
				}
			}
			if text := seen.text(); strings.Contains(text, "secret") || strings.Contains(text, long) || len(ids) == 0 && strings.Contains(text, "\nid:") {
				t.Errorf("behind %s:\n%s", last, text)
			}
		}
	})
}

// SSE-25: to come back costs the same however much lies behind.
func TestSSE25ResumeCostsTheSameAtAnyAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.start()
		cost := func() int {
			ids := w.ids(id)
			before := w.store.Counts()
			seen, leave := w.resume(id, ids[len(ids)-3])
			leave()
			if got, _ := seen.messages(); !slices.Equal(got, ids[len(ids)-2:]) {
				t.Errorf("of %d entries come %v; want the last two", len(ids), got)
			}
			return w.store.Counts().Since(before).EventsRead
		}
		say := func(turns int) {
			for i := range turns {
				w.say(id, fmt.Sprint("turn ", i))
			}
		}
		say(30) // ten generations
		young := cost()
		say(270)
		if old := cost(); old > young+journalPage {
			t.Errorf("%d events are read at an age of 300 turns, and %d at 30", old, young)
		}
	})
}

// journalPage is more than a generation of the world's conversations has events.
const journalPage = 40

// C-30.10, C-28.3, T36, T48: the words of two tenants at once reach their own
// streams and no other.
func TestTenantsWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLiveWorld(t, "when has \"apples\"\n  repeat 30 \"apple \" 10ms\notherwise\n  repeat 30 \"pear \" 10ms")
		mine := w.start()
		evil := identity.Principal{Identity: identity.Identity{Tenant: identity.Some("evil"), Actor: "ann"}}
		theirs, err := w.client.Start(t.Context(), &evil, "")
		if err != nil {
			t.Fatal(err)
		}
		seen, leave := w.resume(mine, "")
		defer leave()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		other := &tape{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.handler.ServeHTTP(other, request("GET", "/v1/conversations/"+theirs+"/events", "ann@evil", "").WithContext(ctx))
		}()
		synctest.Wait()
		for id, text := range map[string]string{mine: "apples", theirs: "pears"} {
			who := ann
			if id == theirs {
				who = &evil
			}
			if _, err := w.client.SendTurn(t.Context(), who, id, conversation.Message{Text: text}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		cancel()
		<-done
		if a, b := seen.text(), other.text(); strings.Count(a, "event: delta") != 30 || strings.Count(b, "event: delta") != 30 || strings.Contains(a, "pear") || strings.Contains(b, "apple") {
			t.Errorf("mine:\n%s\ntheirs:\n%s", a, b)
		}
	})
}
