package lease_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/sim"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/lease"
)

// looks records when the browser is checked.
func (h *house) looks() func() []time.Duration {
	var mu sync.Mutex
	var at []time.Duration
	began := time.Now()
	h.bodies[lease.Browser].On(sim.AtCheck, func(context.Context, body.Incarnation) error {
		mu.Lock()
		defer mu.Unlock()
		at = append(at, time.Since(began))
		return nil
	})
	return func() []time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return at
	}
}

// LC-45, L-16.1, L-16.8: at 5 s, then with pauses that double to 60 s, and the
// status says so; the stop-check that confirms at last frees, on record as the
// sweep's (L-16.9). The check touches nothing.
func TestLC45Sweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.set(h.over, "conv-a", true)
		claim, _ := h.block(ann)
		looks := h.looks()
		time.Sleep(4 * time.Minute)
		s := time.Second
		want := []time.Duration{5 * s, 10 * s, 20 * s, 40 * s, 80 * s, 140 * s, 200 * s} // pauses of 5, 10, 20, 40, 60, 60
		if diff := cmp.Diff(want, looks()); diff != "" {
			t.Errorf("checks after the block (-want +got):\n%s", diff)
		}
		if st := h.status(lease.Browser); st.Tries != 7 || time.Until(st.NextTry) != 20*s {
			t.Errorf("status %+v, want 7 tries and the next in 20 s", st)
		}
		h.bodies[lease.Browser].Stop(t.Context(), body.Life{Incarnation: claim.Incarnation}, func(context.Context) error { return nil })
		time.Sleep(20 * s)
		synctest.Wait()
		h.wantState(lease.Browser, lease.Free, "")
		var release struct {
			Cause    lease.Cause
			Proof    body.Proof
			Claimant lease.Caller
		}
		h.last(&release)
		if release.Cause != lease.CauseSweep || release.Proof != body.ProofGone || release.Claimant != ann {
			t.Errorf("released by %+v, want the sweep, with proof and claimant", release)
		}
	})
}

// last decodes the newest event of the browser's stream.
func (h *house) last(into any) {
	h.t.Helper()
	events, err := h.inner.ReadRange(context.Background(), lease.StreamOf(lease.Browser), 1<<40, 1, journal.Backward)
	if err != nil || len(events) != 1 {
		h.t.Fatalf("ReadRange = %v, %v", events, err)
	}
	decodeLoosely(h.t, events[0].Data, into)
}

// One test for each condition of L-16.2 that is missing, and L-16.7: the body is
// not even looked at.
func TestSweepConditions(t *testing.T) {
	for name, prepare := range map[string]func(h *house) lease.Resource{
		"the turn goes on": func(h *house) lease.Resource { h.block(ann); return lease.Browser },
		"a native driver": func(h *house) lease.Resource {
			h.set(h.over, "conv-a", true)
			h.block(native(ann))
			return lease.Browser
		},
		"no seat on record": func(h *house) lease.Resource {
			c := ann
			c.Seat = lease.Seat{}
			h.set(h.over, "conv-a", true)
			h.block(c)
			return lease.Browser
		},
		"a computer": func(h *house) lease.Resource {
			h.set(h.over, "conv-a", true)
			h.acquire(ann, lease.Computer)
			time.Sleep(lease.DefaultLength)
			return lease.Computer
		},
		"held": func(h *house) lease.Resource {
			h.set(h.over, "conv-a", true)
			if _, err := h.r.Acquire(context.Background(), ann, lease.Browser, lease.MaxLength); err != nil {
				h.t.Fatalf("Acquire = %v", err)
			}
			return lease.Browser
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t)
			resource := prepare(h)
			h.bodies[resource].On(sim.AtCheck, func(context.Context, body.Incarnation) error {
				t.Errorf("%s: the body was checked", name)
				return nil
			})
			time.Sleep(5 * time.Minute)
			if s := h.status(resource); s.State == lease.Free || s.Tries != 0 {
				t.Errorf("%s: status %+v, want occupied and no try", name, s)
			}
		})
	}
}

// With an operation live the body is not looked at; its end lets the sweep go on.
func TestSweepWaitsForOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.set(h.over, "conv-a", true)
		_, g := h.hold(ann)
		let := h.parked(sim.AfterAct)
		answer := do(t, g, sim.Touch)
		time.Sleep(lease.DefaultLength)
		looks := h.looks()
		time.Sleep(time.Minute)
		if got := looks(); len(got) > 0 {
			t.Errorf("%d checks with an operation live", len(got))
		}
		let(nil)
		<-answer
		time.Sleep(6 * time.Second)
		if got := looks(); len(got) == 0 {
			t.Error("no check after the operation ended")
		}
	})
}

// All conditions stay fenced across the check (L-16.4): a turn that is seen to go
// on again, or a claim that was replaced, is not freed by it.
func TestSweepIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.set(h.over, "conv-a", true)
		claim, _ := h.block(ann)
		let := h.parked(sim.AtCheck)
		time.Sleep(6 * time.Second) // a check is under way
		h.bodies[lease.Browser].On(sim.AtCheck, nil)
		if err := h.r.Recover(t.Context(), operator, lease.Browser, claim.Incarnation); err != nil {
			t.Fatalf("Recover beside the sweep = %v (L-15.9)", err)
		}
		claim = h.acquire(bob, lease.Browser)
		let(nil)
		synctest.Wait()
		if s := h.status(lease.Browser); s.State != lease.Held || s.Incarnation != claim.Incarnation {
			t.Errorf("status %+v, want the new claim, untouched by the old check", s)
		}
		time.Sleep(lease.DefaultLength)
		h.set(h.over, "conv-b", true)
		h.bodies[lease.Browser].On(sim.AtCheck, func(context.Context, body.Incarnation) error {
			h.set(h.over, "conv-b", false)
			return nil
		})
		time.Sleep(time.Minute)
		h.wantState(lease.Browser, lease.RecoveryRequired, "conv-b")
	})
}

// LC-20, LC-26, LC-38, LC-64: a kill, and a clean stop, in each state: nothing is free
// that was not, no token is good any more, holder and incarnation are kept, and
// nothing happens in the world (L-30). What is gone in fact is found gone at once
// (L-16.1).
func TestLC20Restart(t *testing.T) {
	for how, restart := range map[string]func(*house){"kill": (*house).crash, "clean stop": (*house).reboot} {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t)
			held, g := h.hold(ann)
			let := h.parked(sim.AfterAct)
			answer := do(t, g, sim.Touch)
			other := h.acquire(bob, lease.Voice)
			_ = let
			acts := len(h.worlds[lease.Browser].Acts())
			restart(h)
			wantErr(t, "the operation that was cut", <-answer, body.ErrUnknown)
			for _, s := range h.r.Status() {
				switch s.Resource {
				case lease.Browser:
					if s.State != lease.RecoveryRequired || s.Owner != "conv-a" || s.Incarnation != held.Incarnation || s.Operations != 0 {
						t.Errorf("%s: %+v, want recovery_required of the same", how, s)
					}
				case lease.Voice:
					if s.State != lease.RecoveryRequired || s.Reason != lease.Restarted {
						t.Errorf("%s: %+v, want recovery_required, restarted", how, s)
					}
				case lease.Computer:
					if s.State != lease.Free {
						t.Errorf("%s: %+v, want free", how, s)
					}
				}
			}
			for _, c := range []struct {
				claim lease.Claim
				who   lease.Caller
			}{{held, ann}, {other, bob}} {
				_, err := h.guard(c.who, c.claim).Renew(t.Context(), 0)
				wantErr(t, "Renew after the restart", err, lease.ErrStale)
				_, err = h.guard(c.who, c.claim).Do(t.Context(), sim.Touch, nil)
				wantErr(t, "Do after the restart", err, lease.ErrStale)
				wantErr(t, "Release after the restart", h.guard(c.who, c.claim).Release(t.Context()), lease.ErrStale)
			}
			if got := len(h.worlds[lease.Browser].Acts()); got != acts {
				t.Errorf("%d acts after the restart, want %d (L-30.4)", got, acts)
			}
			h.set(h.over, "conv-b", true)
			h.reboot()
			synctest.Wait()
			h.wantState(lease.Voice, lease.Free, "") // nothing ever began, checked at boot
			h.wantState(lease.Browser, lease.RecoveryRequired, "conv-a")
			if err := h.r.Recover(t.Context(), ann, lease.Browser, held.Incarnation); err != nil {
				t.Errorf("Recover after the restart = %v", err)
			}
		})
	}
}

// The registry stops with the service: the sweep, and calls that run (L-16.10,
// LC-16), and refuses what comes later.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		_, g := h.hold(ann)
		answer := do(t, g, sim.Hang)
		h.r.Close()
		wantErr(t, "Do that was cut by the end", <-answer, body.ErrUnknown)
		_, err := g.Do(t.Context(), sim.Touch, nil)
		wantErr(t, "Do after Close", err, lease.ErrStoreUnavailable)
		wantErr(t, "Release after Close", g.Release(t.Context()), lease.ErrStoreUnavailable)
		h.wantStream(lease.Browser, "GRANTED", "RESERVED", "COMPLETED", "RESERVED", "COMPLETED", "BLOCKED")
	})
}

// A second registry on the same store makes the first one fail, and nothing of
// the first is believed (L-1.2, LC-2).
func TestTwoRegistries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		_, g := h.hold(ann)
		first := h.r
		h.boot()
		_, err := g.Do(t.Context(), sim.Touch, nil)
		wantErr(t, "Do by the first", err, lease.ErrStoreUnavailable)
		if !errors.Is(first.Err(), journal.ErrConflict) {
			t.Errorf("Err of the first = %v, want the conflict", first.Err())
		}
		if got := len(h.worlds[lease.Browser].Acts()); got != 1 {
			t.Errorf("%d acts, want 1", got)
		}
		first.Close()
	})
}
