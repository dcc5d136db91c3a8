package conversation_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/conversation"
)

// composed is a dialogue in which turns leave the window while runs are compacted,
// facts are recalled and replies written back.
func composed(rotate int) plan {
	return plan{
		script: `when has "tools"
  call look {}
  call look {"and":"more"}
then
  call look {"yet":"again"}
then
  call look {"once":"more"}
then
  results
otherwise
  reply`,
		beside: true,
		settings: conversation.Settings{
			RotateEveryTurns: rotate, MaxWindowTurns: 4, // with summary and facts more messages than the compaction allows
			Budget: conversation.Budget{ContextWindow: 30_000, ReserveOutputTokens: 300, MaxSummaryTokens: 200, Summarizer: "summarize"},
		},
		say: func(h *house) {
			for i, text := range []string{"one", "use tools", "three", "four", "use tools again", "six"} {
				h.ask(fmt.Sprint(i+1), text)
			}
		},
	}
}

// Budget and compaction with one effect for both: the process may die at any place
// around a summary, its cut and a compaction; each summary that is on record is not
// asked for again, and hot and cold write the same (C-11.10, C-21.2, C-21.9, K12).
func TestCrashMatrixOfBudgetAndCompaction(t *testing.T) {
	for _, rotate := range []int{0, 1} {
		t.Run(fmt.Sprint("rotate every ", rotate), func(t *testing.T) {
			t.Parallel()
			p := composed(rotate)
			want := unbroken(t, p, 0)
			if diff := cmp.Diff(want.logs, unbroken(t, p, -1).logs); diff != "" {
				t.Errorf("logs (-hot +cold):\n%s", diff)
			}
			logs := strings.Join(want.logs, "\n")
			for _, part := range []string{":summarize:outcome", ":summary", "#compact:1", "#compact:3", "#recall", "#write"} {
				if !strings.Contains(logs, part) {
					t.Errorf("the dialogue has no %s", part)
				}
			}
			for n, prefix := range places(want.batches) {
				hot := -(n % 2) // in turn
				synctest.Test(t, func(t *testing.T) { resume(t, p, want, prefix, hot) })
				if t.Failed() {
					t.Fatalf("after a prefix of %d writes", n)
				}
			}
		})
	}
}
