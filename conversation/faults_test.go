package conversation_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
)

// TestEveryAppendFailsOnce: at each append of each dialogue the store fails,
// before the write and after it; the process is started again, the sender
// repeats what it was not answered, and the transcript is that of the unbroken
// run (K12, T26, T27).
func TestEveryAppendFailsOnce(t *testing.T) {
	for name, p := range plans() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := unbroken(t, p, 0)
			step := 1
			if conversation.UnderRace {
				step = 5
			}
			for k := 1; k <= len(want.batches); k += step {
				for _, written := range []bool{false, true} {
					if p.shared && written != (k%2 == 0) { // which are large: in turn
						continue
					}
					synctest.Test(t, func(t *testing.T) { failAt(t, p, want, k, written) })
				}
			}
		})
	}
}

// failAt runs the dialogue over a store that fails at the k-th append, and runs
// it again from the top in a new process.
func failAt(t *testing.T, p plan, want finished, k int, written bool) {
	inner := memory.New()
	failing := journaltest.Wrap(inner)
	if written {
		failing.PoisonAfter(k)
	} else {
		failing.PoisonBefore(k)
	}
	calls := &tally{n: map[string]int{}}
	h := build(t, p, failing, calls, 0)
	h.tolerant = true
	h.run(p)
	if h.rt.Err() == nil {
		t.Logf("append %d does not happen in this run", k)
	}
	h.rt.Close()

	h = build(t, p, journaltest.Wrap(inner), calls, 0)
	defer h.rt.Close()
	h.run(p)
	views := append(h.views(), h.transcript())
	for i, want := range append(slices.Clone(want.views), want.transcript) {
		if p.once { // see resume
			allowUnknown(want, views[i])
		}
		allowCuts(want, views[i])
		if diff := cmp.Diff(want, views[i]); diff != "" {
			t.Errorf("append %d (written %v): transcript of reader %d (-want +got):\n%s", k, written, i, diff)
		}
	}
	if h.state() != want.state || calls.n["act"] > want.calls["act"] {
		t.Errorf("append %d: state %s, the Once tool ran %d times; want %s, at most %d",
			k, h.state(), calls.n["act"], want.state, want.calls["act"])
	}
}

// gaveUp reports whether a call failed because of the store, or because of what
// did not happen after it failed.
func gaveUp(err error) bool {
	return errors.Is(err, journal.ErrPoisoned) || errors.Is(err, conversation.ErrNotFound)
}
