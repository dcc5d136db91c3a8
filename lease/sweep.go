package lease

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/parley-run/parley/body"
)

// The pauses between two checks of one claim (L-16.1, L-16.8).
const (
	minPause = 5 * time.Second
	maxPause = 60 * time.Second
)

// checks is how the sweep of one claim stands.
type checks struct {
	of    body.Incarnation
	tries int
	next  time.Time
}

// pause is how long to wait after so many checks that confirmed nothing.
func pause(tries int) time.Duration {
	wait := minPause
	for range tries - 1 {
		if wait *= 2; wait >= maxPause {
			return maxPause
		}
	}
	return wait
}

// loop does for one resource what nobody asks for: it notices deadlines, wakes
// those who wait, and checks blocked claims. boot is the claim that was there at
// the start, if any.
func (r *Registry) loop(s *slot, boot *claim) {
	for r.ctx.Err() == nil {
		wait := time.Duration(-1)
		if r.Err() == nil {
			left := r.dispatch(r.ctx, s)
			if wait = r.attendTo(s, boot); left && (wait < 0 || wait > minPause) {
				wait = minPause
			}
		}
		if !s.pausing(r.ctx, wait) {
			return
		}
	}
}

// pausing waits for a change, or some time where it is not negative; false means
// that the registry closes.
func (s *slot) pausing(ctx context.Context, wait time.Duration) bool {
	var passed <-chan time.Time
	if wait >= 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		passed = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-s.changed:
	case <-passed:
	}
	return true
}

// attendTo looks at the claim, and says when to look again. A claim that was
// there at the start is checked at once, another one after the first pause.
func (r *Registry) attendTo(s *slot, boot *claim) time.Duration {
	now := time.Now()
	c := s.state.Load().claim
	switch {
	case c == nil:
		s.checks.Store(&checks{})
		return -1
	case c.blocked == "":
		if left := r.now().until(c.deadline); left > 0 {
			return left
		}
		_, _ = r.apply(r.ctx, s, expire{}) // a failing store was told of
		return 0
	case !r.sweeps(s, c):
		return -1
	}
	k := *s.checks.Load()
	if k.of != c.incarnation {
		k = checks{of: c.incarnation, next: now.Add(minPause)}
		if boot != nil && boot.incarnation == c.incarnation {
			k.next = now
		}
	}
	if !now.Before(k.next) {
		switch r.check(s, c) {
		case checked:
			k.tries++
			k.next = time.Now().Add(pause(k.tries))
		case notAdmitted:
			k.next = time.Now().Add(minPause)
		}
	}
	s.checks.Store(&k)
	return max(time.Until(k.next), 0)
}

// until is how long the deadline is away, by the clock that is nearer to it.
func (i instant) until(deadline instant) time.Duration {
	return min(deadline.wall.Sub(i.wall), deadline.mono-i.mono)
}

// sweeps reports whether the sweep may ever look at a claim: computer claims, and
// those of a holder who is missing or whom a native driver owns, are for an
// explicit recovery (L-16.3, L-16.7).
func (r *Registry) sweeps(s *slot, c *claim) bool {
	return s.resource != Computer && c.blocked != Damaged && c.holder.Seat.Kind == Service && r.config.Over != nil
}

// verdict is what became of one look of the sweep.
type verdict int

const (
	notAdmitted verdict = iota // a condition of L-16.2 is missing, the body was not looked at
	checked                    // it was, and the claim stays
)

// check is one automatic check. It stops nothing: it looks, and all conditions
// must still hold afterwards, for exactly this incarnation (L-16.4).
func (r *Registry) check(s *slot, c *claim) verdict {
	over := func(ctx context.Context) bool { return r.config.Over(ctx, c.holder) && ctx.Err() == nil }
	limited, cancel := context.WithTimeout(r.ctx, checkLimit)
	defer cancel()
	if !over(limited) {
		return notAdmitted
	}
	nonce := rand.Text()
	after, err := r.apply(limited, s, sweep{c.incarnation, nonce})
	if err != nil {
		return notAdmitted
	}
	if r.prove(limited, s, nonce, after.claim.life(), over) != nil {
		_, _ = r.apply(context.WithoutCancel(limited), s, abandon{nonce}) // a failing store was told of
	}
	return checked
}
