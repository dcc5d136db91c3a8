package gateway

import (
	"encoding/json/v2"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/conversation"
)

// C-27.6, C-27.7, C-30.9, C-29.3: an edit is a new turn that names what it edits,
// in history and on the stream alike; the old one stays. The model is told what
// it edits (C-27.8). A null is no edit.
func TestEdit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLiveWorld(t, "otherwise\n  reply")
		id := w.start()
		w.say(id, "one", "two")
		w.post(id, "/turns", `{"text":"too","editOf":3,"messageId":"m1"}`, 202)
		w.post(id, "/turns", `{"text":"too","editOf":3,"messageId":"m1"}`, 202) // T26
		synctest.Wait()
		w.post(id, "/turns", `{"text":"three","editOf":null}`, 202)
		synctest.Wait()
		var page conversation.Page
		got := w.ask(request("GET", "/v1/conversations/"+id+"/history", "ann@acme", ""))
		if err := json.Unmarshal(got.Body.Bytes(), &page); err != nil || len(page.Entries) != 8 {
			t.Fatalf("history: %s, %v; want eight entries", got.Body, err)
		}
		for i, r := range page.Entries {
			wantOf, wantTurn := 0, 0
			if i == 4 {
				wantOf, wantTurn = 3, 2
			}
			if r.EditOf != wantOf || r.EditOfTurn != wantTurn || r.Status == conversation.StatusRejected {
				t.Errorf("entry %d is %+v", i+1, r)
			}
		}
		if edit, reply := page.Entries[4], page.Entries[5]; edit.Text != "too" || edit.Turn != 3 ||
			reply.Text != "[This message edits the user's earlier message \"two\".]\ntoo" {
			t.Errorf("the edit is %+v, its answer %+v", edit, reply)
		}
		tape, leave := w.resume(id, "")
		leave()
		_, data := tape.messages()
		if history := `{"entries":[` + strings.Join(data, ",") + `],`; !strings.HasPrefix(got.Body.String(), history) {
			t.Errorf("the stream and the history differ:\n%s\n%s", history, got.Body)
		}
	})
}

// C-27.4, C-27.5: whatever is wrong with an edit, it is accepted over HTTP and
// becomes one rejected record, the same in all cases, which names nothing; the
// model hears nothing of it, and the next message is answered.
func TestEditsOfNothingAreAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLiveWorld(t, "otherwise\n  reply")
		id := w.start()
		w.say(id, "0", "1", "2", "3", "4", "5", "6") // ords 1 to 14
		wrong := []int{
			14,   // an answer
			15,   // a rejected record: that of the edit before this one
			999,  // of no record
			1, 2, // a message that has left the window, and its answer
			1<<53 - 1,
		}
		for _, ord := range wrong {
			w.post(id, "/turns", fmt.Sprintf(`{"text":"edit","editOf":%d}`, ord), 202)
			synctest.Wait()
		}
		got := w.ask(request("GET", "/v1/conversations/"+id+"/history?limit=200", "ann@acme", ""))
		var page struct {
			Entries []map[string]any `json:"entries"`
		}
		if err := json.Unmarshal(got.Body.Bytes(), &page); err != nil || len(page.Entries) != 14+len(wrong) {
			t.Fatalf("history: %s, %v; want a record of each edit", got.Body, err)
		}
		want := map[string]any{
			"turn": 0., "role": "user", "status": "rejected", "reason": "edit-invalid", "text": "edit",
			"asker": map[string]any{"tenant": "acme", "actor": "ann"},
		}
		for _, entry := range page.Entries[14:] {
			for _, own := range []string{"ord", "time", "cursor"} {
				delete(entry, own)
			}
			if diff := cmp.Diff(want, entry); diff != "" {
				t.Errorf("a record of an edit of nothing (-want +got):\n%s", diff)
			}
		}
		w.post(id, "/turns", `{"text":"7","editOf":13}`, 202)
		time.Sleep(time.Second)
		lines := w.transcript(id)
		if last, want := lines[len(lines)-1], "22 of 8 complete [This message edits the user's earlier message \"6\".]\n7"; last != want {
			t.Errorf("the last answer is %q, want %q", last, want)
		}
	})
}
