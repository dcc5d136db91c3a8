package conversation

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// edit sends an edit of the record with the ord.
func (s *stage) edit(ord int, text string) {
	s.t.Helper()
	s.sent++
	id := fmt.Sprint("m", s.sent)
	b := newBody(KindUser, "talk", asker(s.owner), id, time.Now())
	b.Text, b.EditOf = text, &ord
	s.sendAs(s.owner, s.keys.seal(b), id)
}

const humming = "otherwise\n  say \"hm\""

// An edit is a new turn. Its record shows what was typed and names what it edits;
// the model sees, inside the fence, which message that was, in this turn and in
// later ones (C-27.1, C-27.6 to C-27.9). It works across a rotation (C-27.14), and
// an edit can be edited: what is quoted is what was typed.
func TestEdit(t *testing.T) {
	stages(t, humming, func(t *testing.T, s *stage) {
		s.say("pay 5")
		s.hear(2)
		s.edit(1, "pay 6")
		s.hear(4)
		s.edit(3, "pay 7")
		s.hear(6)
		wantTranscript(t, s,
			"1/1 user accepted pay 5", "1/2 assistant complete hm",
			"2/3 user accepted pay 6", "2/4 assistant complete hm",
			"3/5 user accepted pay 7", "3/6 assistant complete hm")
		for _, r := range s.records() {
			wantOf, wantTurn := 0, 0
			if r.Role == RoleUser && r.Turn > 1 {
				wantOf, wantTurn = r.Ord-2, r.Turn-1
			}
			if r.EditOf != wantOf || r.EditOfTurn != wantTurn {
				t.Errorf("record %d edits %d of turn %d, want %d of turn %d", r.Ord, r.EditOf, r.EditOfTurn, wantOf, wantTurn)
			}
		}
		sent := s.model.all()
		var got []string
		for _, m := range sent[len(sent)-1].Messages {
			if m.Role == model.User {
				got = append(got, m.Text)
			}
		}
		want := []string{
			"pay 5",
			"[This message edits the user's earlier message \"pay 5\".]\npay 6",
			"[This message edits the user's earlier message \"pay 6\".]\npay 7",
		}
		for i := range want {
			want[i] = taint.Fence(taint.Tainted(want[i], taint.OriginUser))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the model's view (-want +got):\n%s", diff)
		}
	})
}

// Whatever an edit names but an accepted user turn of the window is one and the
// same rejection, of which the model sees nothing (C-27.3 to C-27.5).
func TestInvalidEdits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, humming)
		s.config.Settings.MaxWindowTurns = 2
		for i := range 4 {
			s.say(fmt.Sprint("turn ", i+1)) // user records 1, 3, 5, 7
			s.hear(2*i + 2)
		}
		s.send(encoded(t, "garbage"), "") // record 9
		s.hear(9)
		for name, ord := range map[string]int{
			"a reply": 8, "a rejection": 9, "nothing": 77, "a turn that has left the window": 1, "itself": 10,
		} {
			before := len(s.transcript())
			calls := len(s.model.all())
			s.edit(ord, "instead")
			s.quiet()
			records := s.records()
			got := records[len(records)-1]
			if len(records) != before+1 || len(s.model.all()) != calls {
				t.Fatalf("an edit of %s: %d records after %d, %d model calls after %d", name, len(records), before, len(s.model.all()), calls)
			}
			got.Ord, got.Time = 0, time.Time{}
			if got.Asker == nil || *got.Asker != ann.Identity {
				t.Errorf("an edit of %s is rejected with the asker %v", name, got.Asker)
			}
			got.Asker = nil
			want := Record{Role: RoleUser, Status: StatusRejected, Reason: ReasonEditInvalid, Text: "instead"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("an edit of %s (-want +got):\n%s", name, diff)
			}
		}
		s.edit(3, "instead") // the window, and the one turn whose eviction is pending
		if lines := s.quiet(); !strings.HasSuffix(lines[len(lines)-2], "user accepted instead") {
			t.Errorf("an edit within the window: %q", lines[len(lines)-2:])
		}
	})
}

// The quote has at most 500 code points (C-27.8).
func TestEditQuotesABeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, humming)
		s.say(strings.Repeat("ü", 501))
		s.hear(2)
		s.edit(1, "shorter")
		s.hear(4)
		sent := s.model.all()
		last := sent[len(sent)-1].Messages
		want := taint.Fence(taint.Tainted("[This message edits the user's earlier message \""+strings.Repeat("ü", 500)+"\".]\nshorter", taint.OriginUser))
		if got := last[len(last)-1].Text; got != want {
			t.Errorf("the prompt is %q", got)
		}
	})
}
