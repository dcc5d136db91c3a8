package bodytest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/parley-run/parley/body"
)

// alive: L-15.6; a check touches nothing.
func alive(t *testing.T, s *trial) {
	_, life := s.must(t, "x.1", s.Act)
	for range 3 {
		s.living(t, s.Adapter, life)
	}
}

// neverBegan: a claim whose holder did nothing can be recovered.
func neverBegan(t *testing.T, s *trial) {
	s.over(t, s.Adapter, body.Life{Incarnation: "x.1"})
}

// refusedStop: the guard stands at the last step (L-11.10, notes finding 2).
func refusedStop(t *testing.T, s *trial) {
	_, life := s.must(t, "x.1", s.Act)
	if asked, _ := s.stop(t, life, errNo); asked != 1 {
		t.Errorf("the guard was asked %d times, want once", asked)
	}
	s.living(t, s.Adapter, life)
}

func stops(t *testing.T, s *trial) {
	_, life := s.must(t, "x.1", s.Act)
	if asked, err := s.stop(t, life, nil); asked != 1 || err != nil {
		t.Errorf("Stop asked its guard %d times and returned %v, want once and nil", asked, err)
	}
	s.over(t, s.Adapter, life)
}

func stopsTwice(t *testing.T, s *trial) {
	_, life := s.must(t, "x.1", s.Act)
	for range 2 {
		if _, err := s.stop(t, life, nil); err != nil {
			t.Errorf("Stop = %v", err)
		}
		s.over(t, s.Adapter, life)
	}
}

// stopsNoOther: a late stop of a former life leaves its successor alone (LC-53).
func stopsNoOther(t *testing.T, s *trial) {
	_, first := s.must(t, "x.1", s.Act)
	if _, err := s.stop(t, first, nil); err != nil {
		t.Errorf("Stop = %v", err)
	}
	s.over(t, s.Adapter, first)
	_, second := s.must(t, "x.2", s.Act)
	_, _ = s.stop(t, first, nil) // an error or none, the successor lives
	s.living(t, s.Adapter, second)
}

// checksNoOther: a life that is over stays over while another one lives.
func checksNoOther(t *testing.T, s *trial) {
	_, first := s.must(t, "x.1", s.Act)
	if _, err := s.stop(t, first, nil); err != nil {
		t.Errorf("Stop = %v", err)
	}
	_, second := s.must(t, "x.2", s.Act)
	s.over(t, s.Adapter, first)
	s.living(t, s.Adapter, second)
}

// reopened: the empty memory of a new process is no evidence (L-11.11, LC-64),
// and what outlived the old one can be stopped by the new one.
func reopened(t *testing.T, s *trial) {
	if s.Reopen == nil {
		t.Skip("this body cannot outlive its process")
	}
	_, life := s.must(t, "x.1", s.Act)
	again := s.Reopen(t)
	again.Attach(s.host)
	if s.Alive("x.1") {
		s.living(t, again, life)
	}
	if err := again.Stop(t.Context(), life, func(context.Context) error { return nil }); err != nil {
		t.Errorf("Stop by the new process = %v", err)
	}
	s.over(t, again, life)
}

// idleClose: L-13.2. A report that something pins is made again.
func idleClose(t *testing.T, s *trial) {
	if s.Idle == nil {
		t.Skip("this body does not close by itself")
	}
	_, life := s.must(t, "x.1", s.Act)
	s.host.refuse(1)
	if err := s.Idle(t.Context(), "x.1"); err != nil {
		t.Errorf("the idle close = %v, want it taken at the second report", err)
	}
	if evidence := <-s.host.ended; evidence.Incarnation != "x.1" || evidence.Proof == "" {
		t.Errorf("reported %+v, want the exact life and a proof", evidence)
	}
	if got := s.host.last(); got != s.n {
		t.Errorf("the report has seen operations up to %d, want %d", got, s.n)
	}
	s.over(t, s.Adapter, life)
}

// spyHost takes reports, and refuses some.
type spyHost struct {
	mu       sync.Mutex
	refusals int
	seen     int
	ended    chan body.Evidence
}

func (h *spyHost) refuse(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refusals = n
}

func (h *spyHost) last() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen
}

// Settled implements [body.Host].
func (h *spyHost) Settled(context.Context, body.Incarnation, string, error) error { return nil }

// Ended implements [body.Host].
func (h *spyHost) Ended(_ context.Context, evidence body.Evidence, last int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refusals > 0 {
		h.refusals--
		return errors.Join(body.ErrPinned)
	}
	h.seen = last
	h.ended <- evidence
	return nil
}
