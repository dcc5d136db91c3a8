package lease_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/sim"
	"github.com/parley-run/parley/lease"
)

// hands draws what happens in the middle of a stop: nothing, somebody else who
// recovers, acquires and acts, before or behind the guard, or no proof.
func (m *model) hands(rt *rapid.T) (f faults, quiet bool) {
	nested := func(context.Context) error {
		m.recoverBy(rt, operator, m.b.of, nil)
		m.acquireBy(rt, bob, 0)
		if m.b.state == lease.Held && m.b.owner == bob && !m.poisoned {
			g := m.h.guard(bob, m.claims[m.b.token])
			_, err := g.Do(context.Background(), sim.Touch, nil)
			if len(m.b.active) == 0 && !errors.Is(err, body.ErrPinned) { // bob's own stop may be the one that waits
				m.want(rt, "Do of a new holder", err, nil)
			}
		}
		return nil
	}
	switch rapid.SampledFrom([]string{"none", "none", "none", "before", "behind", "no proof", "forged", "slow"}).Draw(rt, "hands") {
	case "before":
		return faults{sim.BeforeGuard: nested}, false
	case "behind":
		return faults{sim.AfterGuard: nested}, false
	case "no proof":
		return faults{sim.AtCheck: func(context.Context) error { return errors.New("nobody knows") }}, false
	case "forged":
		return faults{sim.AtCheck: func(context.Context) error {
			m.forged = true
			m.h.bodies[lease.Browser].Forge(func(e body.Evidence) body.Evidence { e.Incarnation += "0"; return e })
			return nil
		}}, false
	case "slow":
		return faults{sim.AfterGuard: func(context.Context) error { time.Sleep(time.Second); return nil }}, true
	}
	return faults{}, true
}

func (m *model) release(rt *rapid.T) {
	m.pass()
	token, c, g := m.holder(rt)
	of, expected := m.b.of, m.expect(token, c)
	f, quiet := m.hands(rt)
	err := g.Release(with(f))
	m.h.bodies[lease.Browser].Forge(nil)
	m.ended(rt, "Release", of, err, lease.CauseStop)
	if expected != nil && !m.poisoned {
		m.want(rt, "Release", err, expected)
	} else if quiet && len(m.b.active) == 0 && m.b.of == of && !m.poisoned {
		m.pass()
		if m.b.state == lease.Held { // its deadline may have passed in the stop
			m.want(rt, "Release of what nothing pins", err, nil)
		}
	}
}

func (m *model) recover(rt *rapid.T) {
	m.pass()
	who := rapid.SampledFrom([]lease.Caller{operator, operator, ann, bob, native(eve)}).Draw(rt, "who")
	of := m.b.of
	if len(m.claims) > 0 && rapid.IntRange(0, 4).Draw(rt, "earlier") == 0 {
		of = m.claims[rapid.IntRange(0, len(m.claims)-1).Draw(rt, "of")].Incarnation
	}
	f, quiet := m.hands(rt)
	if quiet {
		f = nil
	}
	m.recoverBy(rt, who, of, f)
}

func (m *model) recoverBy(rt *rapid.T, who lease.Caller, of body.Incarnation, f faults) {
	m.pass()
	before := m.b
	exact := m.b.state == lease.RecoveryRequired && m.b.of == of
	may := who == operator || m.b.owner.Conversation == who.Conversation
	err := m.h.r.Recover(with(f), who, lease.Browser, of)
	m.h.bodies[lease.Browser].Forge(nil)
	m.ended(rt, "Recover", of, err, lease.CauseRecovery)
	if err == nil && (!exact || !may) {
		rt.Fatalf("Recover(%s, %s) = nil; belief before %+v", who.Conversation, of, before)
	}
	if f == nil && exact && may && len(before.active) == 0 && !m.poisoned && err != nil && !errors.Is(err, body.ErrPinned) {
		rt.Fatalf("Recover(%s, %s) = %v with nothing in the way; belief before %+v", who.Conversation, of, err, before)
	}
}

// ended holds a stop that succeeded against the reference.
func (m *model) ended(rt *rapid.T, call string, of body.Incarnation, err error, cause lease.Cause) {
	forged := m.forged
	m.forged = false
	if err != nil {
		return
	}
	if forged || m.b.of != of || len(m.b.active) > 0 || m.b.state == lease.Free {
		rt.Fatalf("%s of %s = nil; belief %+v", call, of, m.b)
	}
	if got, freed := m.lastRelease(rt); got != cause || freed != of {
		rt.Fatalf("%s of %s = nil, and the record says that %s was released by %s", call, of, freed, got)
	}
	m.b = belief{state: lease.Free}
}

// idle closes the body by itself, of any incarnation.
func (m *model) idle(rt *rapid.T) {
	if len(m.claims) == 0 {
		rt.Skip("no claim was ever made")
	}
	of := m.claims[rapid.IntRange(0, len(m.claims)-1).Draw(rt, "of")].Incarnation
	if rapid.Bool().Draw(rt, "the present one") && m.b.of != "" {
		of = m.b.of
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err := m.h.bodies[lease.Browser].Idle(ctx, of)
	m.ended(rt, "the report of an idle close", of, err, lease.CauseEnded)
	m.pass()
}

// settle reports an outcome late, of an operation that is uncertain or is not.
func (m *model) settle(rt *rapid.T) {
	ids := slices.Sorted(maps.Keys(m.b.active))
	for _, id := range ids { // what runs is ended by its own completion alone
		err := m.h.bodies[lease.Browser].Settle(context.Background(), m.b.of, id, nil)
		m.want(rt, "Settled of an active operation", err, lease.ErrStale)
	}
	if len(m.claims) > 0 && m.claims[0].Incarnation != m.b.of {
		err := m.h.bodies[lease.Browser].Settle(context.Background(), m.claims[0].Incarnation, string(m.claims[0].Incarnation)+".1", nil)
		m.want(rt, "Settled of an earlier incarnation", err, lease.ErrStale)
	}
}

// crash: the process dies without a last word. What ran is unresolved.
func (m *model) crash(rt *rapid.T) {
	m.h.crash()
	m.rebooted(rt)
}

// restart is a clean stop: what runs is cut, and put on record as unknown.
func (m *model) restart(rt *rapid.T) {
	m.h.reboot()
	m.rebooted(rt)
}

func (m *model) rebooted(rt *rapid.T) {
	m.hook()
	for id, op := range m.open {
		if err := <-op.answer; err == nil {
			rt.Fatalf("Do of %s = nil, and the service stopped in the middle", id)
		}
		delete(m.open, id)
	}
	if m.b.state != lease.Free {
		m.b.state, m.b.token, m.b.active = lease.RecoveryRequired, -1, map[string]bool{}
	}
	synctest.Wait()
	s := m.h.status(lease.Browser)
	if s.State == lease.Held {
		rt.Fatalf("the browser is held after a restart: %+v", s) // I6
	}
	if m.poisoned { // the write that failed is there, or not
		m.adopt(s)
	}
	m.poisoned = false
}

// adopt takes over what the record says after a write of unknown outcome.
func (m *model) adopt(s lease.Status) {
	m.b = belief{state: s.State, of: s.Incarnation, token: -1, active: map[string]bool{}, uncertain: map[string]bool{}}
	m.b.owner = caller(s.Owner, "ann")
	for _, c := range []lease.Caller{ann, bob, native(eve)} {
		if c.Conversation == s.Owner {
			m.b.owner = c
		}
	}
}

// breakStore makes the next write fail, with or without its bytes.
func (m *model) breakStore(rt *rapid.T) {
	if rapid.IntRange(0, 5).Draw(rt, "really") > 0 {
		rt.Skip("the store holds")
	}
	if rapid.Bool().Draw(rt, "bytes survive") {
		m.h.store.PoisonAfter(1)
	} else {
		m.h.store.PoisonBefore(1)
	}
	m.broken++
	somebody := caller(fmt.Sprint("conv-", m.broken), "ann")
	_, err := m.h.r.Acquire(context.Background(), somebody, lease.Browser, 0)
	if m.b.state != lease.Free && !m.poisoned { // nothing had to be written for that
		_, err = m.h.r.Queue(context.Background(), somebody, lease.Browser, m.b.of, 0)
	}
	m.poisoned = true
	m.want(rt, "a write over a failing store", err, lease.ErrStoreUnavailable)
}

// swept: the automatic sweep freed the browser, on the ground that it needs.
func (m *model) swept(rt *rapid.T) {
	cause, of := m.lastRelease(rt)
	if cause != lease.CauseSweep || of != m.b.of || m.b.state != lease.RecoveryRequired || len(m.b.active) > 0 ||
		m.b.owner.Seat.Kind != lease.Service || m.w.IsAlive(of) {
		rt.Fatalf("the browser became free by %s of %s; belief %+v, body alive: %t", cause, of, m.b, m.w.IsAlive(of))
	}
	m.b = belief{state: lease.Free}
}

// check compares after each step: the registry with the reference, and both with
// the world.
func (m *model) check(rt *rapid.T) {
	synctest.Wait()
	m.pass()
	if v := m.w.Violations(); len(v) > 0 || m.fault != "" {
		rt.Fatalf("the world: %q %s", v, m.fault)
	}
	s := m.h.status(lease.Browser)
	if !m.poisoned && s.State == lease.Free && m.b.state != lease.Free {
		m.swept(rt)
	}
	if s.State != m.b.state || s.Owner != m.b.owner.Conversation || s.Incarnation != m.b.of || s.Operations != len(m.b.active) {
		rt.Fatalf("status %+v; belief %+v", s, m.b)
	}
	for _, alive := range m.w.Alive() {
		if s.State == lease.Free || s.Incarnation != alive {
			rt.Fatalf("the body of %s lives, and the browser is %s of %s", alive, s.State, s.Incarnation)
		}
	}
}
