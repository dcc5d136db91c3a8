package conversation

import (
	"testing"

	"github.com/parley-run/parley/kernel"
)

// C-22.7: rejected records do not count, whatever number they bear, and a run
// of 3,000 of them does not hide the turn before.
func TestStatusBehindRejections(t *testing.T) {
	w := newMemoryWorld(t)
	l := w.lay("c").said("the only turn")
	for i := range 3000 {
		l.refused()
		if i%500 == 0 {
			l.n++ // C-43.2: an old rejected record with a number
			l.record(idUser(l.n), Record{Turn: 77, Role: RoleUser, Status: StatusRejected, Reason: ReasonEditInvalid})
			l.rotate()
		}
	}
	l.flush()
	info, err := w.client.Status(t.Context(), ann, "c")
	if want := (Info{ID: "c", State: StateOpen, Turns: 1}); err != nil || info != want {
		t.Errorf("Status = %+v, %v; want %+v", info, err, want)
	}
}

// C-22.7: the look back has an end.
func TestStatusLooksBackBounded(t *testing.T) {
	w := newMemoryWorld(t)
	l := w.lay("c").said("long ago")
	for range statusPages*statusPage + 1 {
		l.refused()
	}
	l.flush()
	info, err := w.client.Status(t.Context(), ann, "c")
	if err != nil || info.Turns != 0 {
		t.Errorf("Status = %+v, %v; want 0 turns", info, err)
	}
}

// C-22.6, C-22.7: states, and a turn that has only its question yet.
func TestStatus(t *testing.T) {
	w := newMemoryWorld(t)
	ended := func(l *laid, state kernel.State) { l.event(kernel.KindEnded, "", kernel.Ended{State: state}).flush() }
	w.lay("new").flush()
	open := w.lay("open").said("one")
	open.n++
	open.record(idUser(open.n), Record{Turn: 2, Role: RoleUser, Status: StatusAccepted, Text: "two"}).noise(500).flush()
	w.lay("closed").said("one").rotate().close()
	ended(w.lay("failed"), kernel.Failed)
	ended(w.lay("cancelled").said("one"), kernel.Cancelled)
	for _, want := range []Info{
		{ID: "new", State: StateOpen, Turns: 0},
		{ID: "open", State: StateOpen, Turns: 2},
		{ID: "closed", State: StateClosed, Turns: 1},
		{ID: "failed", State: StateFailed, Turns: 0},
		{ID: "cancelled", State: StateCancelled, Turns: 1},
	} {
		if got, err := w.client.Status(t.Context(), ann, want.ID); err != nil || got != want {
			t.Errorf("Status = %+v, %v; want %+v", got, err, want)
		}
	}
}
