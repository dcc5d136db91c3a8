package lease_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/sim"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/lease"
)

// One whole life: four commits (design §8), and the stream says what happened.
func TestOneLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		before := h.store.Counts()
		claim, g := h.hold(ann)
		if err := g.Release(t.Context()); err != nil {
			t.Fatalf("Release = %v", err)
		}
		if got := h.store.Counts().Since(before).Appends; got != 4 {
			t.Errorf("appends = %d, want 4: acquire, reserve, complete, release", got)
		}
		h.wantStream(lease.Browser, "GRANTED", "RESERVED", "COMPLETED", "RELEASED")
		if claim.Incarnation != "browser.0" {
			t.Errorf("incarnation %q, want the resource with the place of the acquisition", claim.Incarnation)
		}
		h.wantState(lease.Browser, lease.Free, "")
		if next := h.acquire(bob, lease.Browser); next.Incarnation != "browser.4" {
			t.Errorf("next incarnation %q, want browser.4", next.Incarnation)
		}
	})
}

// Different resources may have different holders, and no lease implies another
// (L-2.2, L-2.3, L-2.4, L-1.4).
func TestResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.acquire(ann, lease.Browser)
		h.acquire(ann, lease.Voice)
		h.acquire(bob, lease.Computer)
		for resource, owner := range map[lease.Resource]string{lease.Browser: "conv-a", lease.Voice: "conv-a", lease.Computer: "conv-b"} {
			h.wantState(resource, lease.Held, owner)
		}
		_, err := h.r.Acquire(t.Context(), ann, "play", 0) // a key that the agent has no adapter for
		wantErr(t, "Acquire(play)", err, lease.ErrUnknownResource)
		_, err = h.r.Acquire(t.Context(), ann, "../x", 0)
		wantErr(t, "Acquire(../x)", err, lease.ErrUnknownResource)
	})
}

// LC-29, LC-36: the conflict is typed and names the owner, and nothing else of it
// (L-19.1, L-19.2). It changes nothing (L-19.6).
func TestLC29BusyNamesTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		claim, _ := h.hold(ann)
		before := h.stream(lease.Browser)
		for range 20 { // LC-34
			_, err := h.r.Acquire(t.Context(), bob, lease.Browser, 0)
			busy, ok := errors.AsType[*lease.BusyError](err)
			if !ok || !errors.Is(err, lease.ErrBusy) {
				t.Fatalf("Acquire of a held resource = %v, want a BusyError", err)
			}
			want := &lease.BusyError{
				Resource: lease.Browser, Owner: "conv-a", State: lease.Held, Incarnation: claim.Incarnation,
				Actions: []lease.Action{lease.ActionQueue},
			}
			if diff := cmp.Diff(want, busy); diff != "" {
				t.Errorf("busy (-want +got):\n%s", diff)
			}
		}
		_, err := h.r.Acquire(t.Context(), ann, lease.Browser, 0) // its own holder
		wantErr(t, "Acquire by the holder", err, lease.ErrBusy)
		if diff := cmp.Diff(before, h.stream(lease.Browser)); diff != "" {
			t.Errorf("a conflict changed the stream:\n%s", diff)
		}
	})
}

// A caller without the grant is denied, and not told that somebody is there
// (L-19.4); one without a conversation claims nothing (L-3.5).
func TestDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.set(h.deny, "conv-b", true)
		_, err := h.r.Acquire(t.Context(), bob, lease.Browser, 0)
		wantErr(t, "Acquire without the grant", err, lease.ErrDenied)
		h.acquire(ann, lease.Browser)
		_, err = h.r.Acquire(t.Context(), bob, lease.Browser, 0)
		if !errors.Is(err, lease.ErrDenied) || errors.Is(err, lease.ErrBusy) {
			t.Errorf("Acquire of a held resource without the grant = %v, want denied", err)
		}
		for _, c := range []lease.Caller{
			{},
			{Identity: ann.Identity},
			{Conversation: "conv-x"},
			{Conversation: strings.Repeat("x", 513), Identity: ann.Identity},
			{Conversation: "\xff", Identity: ann.Identity},
			{Conversation: "conv-x", Identity: ann.Identity, Seat: lease.Seat{Kind: "pane"}},
		} {
			_, err := h.r.Acquire(t.Context(), c, lease.Voice, 0)
			wantErr(t, "Acquire by nobody", err, lease.ErrDenied)
			_, err = h.r.Guard(c, lease.Voice, identity.NewSecret("x"))
			wantErr(t, "Guard of nobody", err, lease.ErrDenied)
		}
	})
}

// L-6.6: of 64 who acquire at once exactly one wins, and the others are told who.
func TestOneWinner(t *testing.T) {
	h := newHouse(t)
	var mu sync.Mutex
	var won []lease.Claim
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			claim, err := h.r.Acquire(t.Context(), bob, lease.Browser, 0)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, claim)
			} else if busy, ok := errors.AsType[*lease.BusyError](err); !ok || busy.Owner != "conv-b" {
				t.Errorf("Acquire = %v, want busy with the winner", err)
			}
		})
	}
	all.Wait()
	if len(won) != 1 {
		t.Errorf("%d winners, want 1", len(won))
	}
}

// LC-4, LC-7, LC-23, LC-39: a token of an earlier incarnation, of another
// conversation, or an id in its place, is good for nothing and changes nothing
// (L-5.3, L-5.7, ABA).
func TestLC4StaleTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		first, old := h.hold(ann)
		if err := old.Release(t.Context()); err != nil {
			t.Fatalf("Release = %v", err)
		}
		second, _ := h.hold(ann) // the same conversation again
		before := h.stream(lease.Browser)
		for name, g := range map[string]lease.Guard{
			"the token of before":        old,
			"another's conversation":     h.guard(bob, second),
			"no token":                   h.guard(ann, lease.Claim{Resource: lease.Browser}),
			"an id in its place":         h.guard(ann, lease.Claim{Resource: lease.Browser, Token: identity.NewSecret(string(second.Incarnation))}),
			"the token, cut by a letter": h.guard(ann, lease.Claim{Resource: lease.Browser, Token: identity.NewSecret(second.Token.Reveal()[:20])}),
			"another resource":           h.guard(ann, lease.Claim{Resource: lease.Voice, Token: second.Token}),
		} {
			_, err := g.Do(t.Context(), sim.Touch, nil)
			wantErr(t, "Do with "+name, err, lease.ErrStale)
			_, err = g.Renew(t.Context(), 0)
			wantErr(t, "Renew with "+name, err, lease.ErrStale)
			wantErr(t, "Release with "+name, g.Release(t.Context()), lease.ErrStale)
		}
		if diff := cmp.Diff(before, h.stream(lease.Browser)); diff != "" {
			t.Errorf("a stale token changed the stream:\n%s", diff)
		}
		if first.Token.Reveal() == second.Token.Reveal() || len(second.Token.Reveal()) < 43 {
			t.Error("tokens repeat, or hold less than 256 bits (L-5.1)")
		}
	})
}

// LC-17, LC-18: a heartbeat a nanosecond after the deadline revives nothing (L-8.4), one
// just before it does. A lease that was lost is a typed error.
func TestLC17RenewAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		_, g := h.hold(ann)
		time.Sleep(lease.DefaultLength - time.Nanosecond)
		until, err := g.Renew(t.Context(), lease.MinLength)
		if err != nil || time.Until(until) != lease.MinLength {
			t.Fatalf("Renew just before the deadline = %v, %v", until, err)
		}
		time.Sleep(lease.MinLength)
		for range 3 {
			_, err = g.Renew(t.Context(), 0)
			wantErr(t, "Renew at the deadline", err, lease.ErrExpired)
		}
		_, err = g.Do(t.Context(), sim.Touch, nil)
		wantErr(t, "Do after the deadline", err, lease.ErrExpired)
		wantErr(t, "Release after the deadline", g.Release(t.Context()), lease.ErrExpired)
		h.wantState(lease.Browser, lease.RecoveryRequired, "conv-a")
		if got := len(h.worlds[lease.Browser].Acts()); got != 1 {
			t.Errorf("%d acts, want 1", got)
		}
	})
}

// LC-57: a renewal whose own write outlasts the deadline comes too late: others
// have seen the deadline pass.
func TestLC57SlowRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		_, g := h.hold(ann)
		h.store.At(1, func() { time.Sleep(2 * lease.DefaultLength) })
		_, err := g.Renew(t.Context(), 0)
		wantErr(t, "Renew over a slow store", err, lease.ErrExpired)
		h.wantState(lease.Browser, lease.RecoveryRequired, "conv-a")
		_, err = g.Do(t.Context(), sim.Touch, nil)
		wantErr(t, "Do after it", err, lease.ErrExpired)
	})
}

// LC-6, LC-22, LC-55, LC-59: time never frees, and the status says what blocks
// (L-6.5, L-8.6). A status read notices nothing for anybody (notes finding 4).
func TestLC6TimeNeverFrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		claim, _ := h.hold(ann)
		time.Sleep(24 * time.Hour)
		s := h.status(lease.Browser)
		if s.State != lease.RecoveryRequired || s.Reason != lease.Expired || s.Owner != "conv-a" || s.Incarnation != claim.Incarnation {
			t.Errorf("Status after a day = %+v, want recovery_required of the same incarnation, expired", s)
		}
		if want := claim.Deadline.Add(-lease.DefaultLength); !s.Since.Equal(want) || !s.Deadline.Equal(claim.Deadline) { // LC-19: it shows its age
			t.Errorf("since %v until %v, want %v until %v", s.Since, s.Deadline, want, claim.Deadline)
		}
		_, err := h.r.Acquire(t.Context(), bob, lease.Browser, 0)
		busy, _ := errors.AsType[*lease.BusyError](err)
		if busy == nil || busy.State != lease.RecoveryRequired {
			t.Errorf("Acquire after a day = %v, want busy, recovery_required", err)
		}
	})
}

// LC-19: a loop whose turn has ended does not renew for ever.
func TestLC19RenewNeedsALiveTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		_, g := h.hold(ann)
		h.set(h.over, "conv-a", true)
		_, err := g.Renew(t.Context(), 0)
		wantErr(t, "Renew of a turn that has ended", err, lease.ErrDenied)
		h.set(h.over, "conv-a", false)
		h.set(h.deny, "conv-a", true)
		_, err = g.Renew(t.Context(), 0)
		wantErr(t, "Renew without the grant", err, lease.ErrDenied)
	})
}

func TestLengths(t *testing.T) { // L-8.7
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		for _, d := range []time.Duration{-1, time.Nanosecond, lease.MinLength - 1, lease.MaxLength + 1} {
			_, err := h.r.Acquire(t.Context(), ann, lease.Browser, d)
			wantErr(t, "Acquire for "+d.String(), err, lease.ErrLimit)
		}
		claim, err := h.r.Acquire(t.Context(), ann, lease.Browser, lease.MaxLength)
		if err != nil || time.Until(claim.Deadline) != lease.MaxLength {
			t.Errorf("Acquire for ten minutes = %v, %v", claim.Deadline, err)
		}
		_, err = h.guard(ann, claim).Renew(t.Context(), time.Second)
		wantErr(t, "Renew for a second", err, lease.ErrLimit)
	})
}

// A ctx that ends writes nothing and fails nothing but its call.
func TestCancelledCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := h.r.Acquire(ctx, ann, lease.Browser, 0); err == nil {
			t.Error("Acquire under a ctx that is done = nil")
		}
		_, g := h.hold(ann)
		if _, err := g.Do(ctx, sim.Touch, nil); err == nil || errors.Is(err, body.ErrUnknown) {
			t.Errorf("Do under a ctx that is done = %v, want an error that is no unknown outcome", err)
		}
		h.wantState(lease.Browser, lease.Held, "conv-a")
		if err := h.r.Err(); err != nil {
			t.Errorf("Err = %v", err)
		}
	})
}

// LC-35, LC-50: a turn's end releases nothing; the lease spans the burst, and a later
// turn of the conversation goes on with its token (L-1.6, L-1.7). Each call is
// judged with the turn that it was captured in (L-3.3, L-3.4).
func TestLC50TurnEndNeverReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		claim, _ := h.hold(ann)
		h.set(h.over, "conv-a", true)
		time.Sleep(lease.DefaultLength - time.Second)
		h.wantState(lease.Browser, lease.Held, "conv-a")
		h.set(h.over, "conv-a", false)
		later := ann
		later.Seat.ID = "turn-2"
		g := h.guard(later, claim)
		if _, err := g.Do(t.Context(), sim.Touch, nil); err != nil {
			t.Errorf("Do in a later turn = %v", err)
		}
		if last := h.asked[len(h.asked)-1]; last.Caller != later {
			t.Errorf("the grant was asked for %+v, want the later turn", last.Caller)
		}
		if _, err := g.Renew(t.Context(), 0); err != nil {
			t.Errorf("Renew in a later turn = %v", err)
		}
	})
}
