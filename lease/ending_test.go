package lease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/sim"
	"github.com/parley-run/parley/lease"
)

// LC-60, LC-25: an end that is not confirmed keeps the claim as it was, and the
// holder may try again.
func TestLC60UnconfirmedEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		_, g := h.hold(ann)
		b := h.bodies[lease.Browser]
		cause := errors.New("nobody answers")
		b.On(sim.AtCheck, func(context.Context, body.Incarnation) error { return cause })
		err := g.Release(t.Context())
		wantErr(t, "Release without proof", err, lease.ErrProofUnavailable)
		wantErr(t, "Release without proof", err, cause)
		if strings.Contains(err.Error(), "nobody answers") {
			t.Errorf("the error repeats what the adapter said: %v", err)
		}
		h.wantState(lease.Browser, lease.Held, "conv-a")
		b.On(sim.AtCheck, nil)
		for name, forge := range map[string]func(body.Evidence) body.Evidence{
			"another life": func(e body.Evidence) body.Evidence { e.Incarnation = "browser.9"; return e },
			"no life":      func(e body.Evidence) body.Evidence { e.Incarnation = ""; return e },
			"no proof":     func(e body.Evidence) body.Evidence { e.Proof = ""; return e },
			"a long story": func(e body.Evidence) body.Evidence { e.Proof = "I saw it with my own eyes"; return e },
		} {
			b.Forge(forge)
			wantErr(t, "Release with evidence of "+name, g.Release(t.Context()), lease.ErrProofUnavailable)
			h.wantState(lease.Browser, lease.Held, "conv-a")
		}
		b.Forge(nil)
		if err := g.Release(t.Context()); err != nil {
			t.Errorf("Release = %v", err)
		}
	})
}

// While a stop is under way nothing begins, and no second stop.
func TestStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		_, g := h.hold(ann)
		let := h.parked(sim.BeforeGuard)
		answer := make(chan error, 1)
		go func() { answer <- g.Release(t.Context()) }()
		synctest.Wait()
		_, err := g.Do(t.Context(), sim.Touch, nil)
		wantErr(t, "Do in a stop", err, body.ErrPinned)
		wantErr(t, "a second Release", g.Release(t.Context()), body.ErrPinned)
		let(nil)
		wantErr(t, "Release", <-answer, nil)
	})
}

// An ordinary stop whose last step comes after the deadline does not touch the
// body (L-8.8); from then on it takes a recovery.
func TestStopPastTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		_, g := h.hold(ann)
		h.bodies[lease.Browser].On(sim.BeforeGuard, func(context.Context, body.Incarnation) error {
			time.Sleep(lease.DefaultLength)
			return nil
		})
		err := g.Release(t.Context())
		if !errors.Is(err, lease.ErrExpired) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Release past the deadline = %v, want expired", err)
		}
		if !h.worlds[lease.Browser].IsAlive("browser.0") {
			t.Error("the stop touched the body after the deadline")
		}
		h.wantState(lease.Browser, lease.RecoveryRequired, "conv-a")
	})
}

// LC-21, L-15: who may recover, of what, and what it takes.
func TestLC21Recover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		claim, _ := h.hold(ann)
		err := h.r.Recover(t.Context(), operator, lease.Browser, claim.Incarnation)
		wantErr(t, "Recover of a held claim", err, lease.ErrBusy)
		time.Sleep(lease.DefaultLength)
		recover := func(who lease.Caller, of body.Incarnation) error {
			return h.r.Recover(t.Context(), who, lease.Browser, of)
		}
		wantErr(t, "Recover by a stranger", recover(bob, claim.Incarnation), lease.ErrDenied)
		wantErr(t, "Recover by nobody", recover(lease.Caller{Conversation: "conv-a"}, claim.Incarnation), lease.ErrDenied)
		wantErr(t, "Recover of another incarnation", recover(operator, "browser.9"), lease.ErrStale)
		wantErr(t, "Recover of no incarnation", recover(operator, ""), lease.ErrStale)
		h.set(h.deny, "conv-a", true)
		wantErr(t, "Recover by the holder without the grant", recover(ann, claim.Incarnation), lease.ErrDenied)
		h.set(h.deny, "conv-a", false)
		h.wantState(lease.Browser, lease.RecoveryRequired, "conv-a")
		if err := recover(ann, claim.Incarnation); err != nil {
			t.Errorf("Recover by the holder = %v", err)
		}
		h.wantState(lease.Browser, lease.Free, "") // L-15.10: it gives no lease
		wantErr(t, "Recover of what is free", recover(operator, claim.Incarnation), lease.ErrStale)
		h.wantStream(lease.Browser, "GRANTED", "RESERVED", "COMPLETED", "BLOCKED", "RECOVERING", "RELEASED")
	})
}

// Recovery that waits at its last step while another one recovers, and somebody
// else acquires, touches nothing of the successor (notes finding 2, L-11.10,
// LC-53).
func TestLC53LateRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		claim, _ := h.block(ann)
		b := h.bodies[lease.Browser]
		let := h.parked(sim.BeforeGuard)
		first := make(chan error, 1)
		go func() { first <- h.r.Recover(t.Context(), ann, lease.Browser, claim.Incarnation) }()
		synctest.Wait()
		b.On(sim.BeforeGuard, nil)
		if err := h.r.Recover(t.Context(), operator, lease.Browser, claim.Incarnation); err != nil {
			t.Fatalf("the second Recover = %v", err)
		}
		next, _ := h.hold(bob)
		b.On(sim.AfterGuard, func(context.Context, body.Incarnation) error {
			t.Error("a late stop was let through at its last step")
			return nil
		})
		let(nil)
		wantErr(t, "the first Recover", <-first, lease.ErrStale)
		h.wantState(lease.Browser, lease.Held, "conv-b")
		if !h.worlds[lease.Browser].IsAlive(next.Incarnation) {
			t.Error("a late recovery ended the body of the next holder")
		}
	})
}

// A stop that has passed its guard pins the body: nothing frees it before that
// stop has returned, whoever tries (notes finding 2).
func TestStruckStopPins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		claim, _ := h.block(ann)
		let := h.parked(sim.AfterGuard)
		first := make(chan error, 1)
		go func() { first <- h.r.Recover(t.Context(), ann, lease.Browser, claim.Incarnation) }()
		synctest.Wait()
		err := h.r.Recover(t.Context(), operator, lease.Browser, claim.Incarnation)
		wantErr(t, "a second Recover", err, body.ErrPinned)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantErr(t, "the report of an idle close", h.bodies[lease.Browser].Idle(ctx, claim.Incarnation), body.ErrPinned)
		h.wantState(lease.Browser, lease.RecoveryRequired, "conv-a")
		let(nil)
		wantErr(t, "the first Recover", <-first, nil)
	})
}

// The authority is asked again after each await (L-15.7).
func TestRecoverAuthorityIsAskedAgain(t *testing.T) {
	for name, at := range map[string]sim.Point{"before the stop": sim.BeforeGuard, "before the release": sim.AtCheck} {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t)
			claim, _ := h.block(ann)
			h.bodies[lease.Browser].On(at, func(context.Context, body.Incarnation) error {
				h.set(h.deny, "conv-a", true)
				return nil
			})
			err := h.r.Recover(t.Context(), ann, lease.Browser, claim.Incarnation)
			wantErr(t, "Recover with a grant revoked "+name, err, lease.ErrDenied)
			h.wantState(lease.Browser, lease.RecoveryRequired, "conv-a")
		})
	}
}

// L-13.2: an idle close is a confirmed close, in held and in recovery_required, and
// is refused while an operation pins the body; the host reports again (LC-49).
func TestLC49IdleClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		_, g := h.hold(ann)
		let := h.parked(sim.BeforeBegin)
		answer := do(t, g, sim.Touch)
		idle := make(chan error, 1)
		go func() { idle <- h.bodies[lease.Browser].Idle(t.Context(), "browser.0") }()
		time.Sleep(time.Second)
		h.wantState(lease.Browser, lease.Held, "conv-a")
		let(errors.New("no browser")) // the call did not begin
		<-answer
		if err := <-idle; err != nil {
			t.Errorf("the idle close = %v, want it taken once nothing pins", err)
		}
		h.wantState(lease.Browser, lease.Free, "")

		h.bodies[lease.Browser].On(sim.BeforeBegin, nil)
		claim, _ := h.block(bob)
		wantErr(t, "the report of an earlier life", h.bodies[lease.Browser].Idle(t.Context(), "browser.0"), lease.ErrStale)
		if err := h.bodies[lease.Browser].Idle(t.Context(), claim.Incarnation); err != nil {
			t.Errorf("the idle close of a blocked claim = %v", err)
		}
		h.wantState(lease.Browser, lease.Free, "")
	})
}

// An end that was observed before a newer operation began is out of date (race
// 14): that operation brought the body to life again.
func TestOutdatedReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		_, g := h.hold(ann)
		let := h.parked(sim.BeforeBegin)
		answer := do(t, g, sim.Touch)
		idle := make(chan error, 1)
		go func() { idle <- h.bodies[lease.Browser].Idle(t.Context(), "browser.0") }()
		synctest.Wait()
		let(nil) // it begins, on a new page
		wantErr(t, "Do", <-answer, nil)
		wantErr(t, "the idle close", <-idle, body.ErrPinned)
		h.wantState(lease.Browser, lease.Held, "conv-a")
	})
}
