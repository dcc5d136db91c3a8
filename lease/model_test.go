package lease_test

import (
	"context"
	"encoding/json/v2"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/sim"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/lease"
)

// modelRounds is how often the model test makes its 250 cases: 5,000 in a plain
// run, fewer where each is slow. A round keeps within the day that rapid gives
// itself, which is virtual here.
func modelRounds() int {
	if testing.Short() || raceEnabled {
		return 1
	}
	return 20
}

// The table of L-6.4 against a reference of it, under random events: calls of
// three conversations with every token ever issued, lost answers, revoked grants,
// hands that interfere in the middle of a stop, a failing store, crashes, and
// time. Beside the registry's belief stands the world: no effect of one
// incarnation while the body of another lives, and no body that nobody has.
func TestModel(t *testing.T) {
	setFlag(t, "rapid.checks", "250")
	setFlag(t, "rapid.steps", "80")
	for range modelRounds() {
		synctest.Test(t, func(t *testing.T) { rapid.Check(bubble{t}, oneCase) })
	}
}

// oneCase is a random history.
func oneCase(rt *rapid.T) {
	m := newModel(rt)
	defer m.h.r.Close()
	rt.Repeat(map[string]func(*rapid.T){
		"acquire": m.acquire, "renew": m.renew, "act": m.act, "finish": m.finish,
		"release": m.release, "recover": m.recover, "idle": m.idle, "settle": m.settle,
		"sleep": m.sleep, "crash": m.crash, "stop the service": m.restart, "break the store": m.breakStore,
		"": m.check,
	})
	for _, id := range slices.Sorted(maps.Keys(m.open)) {
		m.end(id, nil)
	}
}

// bubble hides the methods of a test that a bubble forbids.
type bubble struct{ testing.TB }

func setFlag(t *testing.T, name, value string) {
	t.Helper()
	old := flag.Lookup(name).Value.String()
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { flag.Set(name, old) })
}

// belief is the reference: what the table says of the browser.
type belief struct {
	state     lease.State
	owner     lease.Caller
	of        body.Incarnation
	token     int // place in the model's tokens, -1 where it is dead
	deadline  time.Time
	expired   bool            // the reason, as far as it matters
	active    map[string]bool // operations that run
	uncertain map[string]bool
}

// model is one case.
type model struct {
	rt       *rapid.T
	h        *house
	w        *sim.World
	b        belief
	claims   []lease.Claim // every one ever issued
	open     map[string]*running
	poisoned bool
	broken   int    // times
	forged   bool   // the evidence that was given last
	fault    string // what a hook saw and must not be
}

// running is an effect that has begun and not ended.
type running struct {
	of     body.Incarnation
	end    chan error
	answer chan error
}

func newModel(rt *rapid.T) *model {
	h := newHouse(rt)
	m := &model{rt: rt, h: h, w: h.worlds[lease.Browser], open: map[string]*running{}}
	m.b = belief{state: lease.Free}
	m.hook()
	return m
}

// faults are what happens in a call of the adapter, handed along in its ctx.
type faults map[sim.Point]func(context.Context) error

type faultsKey struct{}

func (m *model) hook() {
	for point := sim.BeforeBegin; point <= sim.AtCheck; point++ {
		m.h.bodies[lease.Browser].On(point, func(ctx context.Context, of body.Incarnation) error {
			if point == sim.AfterGuard || point == sim.AfterStop {
				m.stopping(of)
			}
			if f, ok := ctx.Value(faultsKey{}).(faults); ok && f[point] != nil {
				return f[point](ctx)
			}
			return nil
		})
	}
}

// stopping judges a stop that was let through: while it acts, the claim is there
// and nothing else acts.
func (m *model) stopping(of body.Incarnation) {
	if s := m.h.status(lease.Browser); s.Incarnation != of || s.Operations > 0 {
		m.fault = fmt.Sprintf("a stop of %s acts while %+v", of, s)
	}
}

func with(f faults) context.Context { return context.WithValue(context.Background(), faultsKey{}, f) }

func (m *model) caller(rt *rapid.T) lease.Caller {
	return rapid.SampledFrom([]lease.Caller{ann, bob, native(eve)}).Draw(rt, "caller")
}

// expect is the error that the table has for a holder's call.
func (m *model) expect(token int, c lease.Caller) error {
	switch {
	case m.b.state == lease.Free || token != m.b.token || m.b.owner.Conversation != c.Conversation:
		return lease.ErrStale
	case m.b.state == lease.Held:
		return nil
	case m.b.expired:
		return lease.ErrExpired
	}
	return lease.ErrRecoveryRequired
}

// pass notices the deadline in the reference.
func (m *model) pass() {
	if m.b.state == lease.Held && !time.Now().Before(m.b.deadline) {
		m.b.state, m.b.expired = lease.RecoveryRequired, true
	}
}

func (m *model) want(rt *rapid.T, call string, got, want error) {
	if m.poisoned {
		want = lease.ErrStoreUnavailable
	}
	if !errors.Is(got, want) {
		rt.Fatalf("%s = %v, want %v; belief %+v", call, got, want, m.b)
	}
}

func (m *model) acquire(rt *rapid.T) {
	m.acquireBy(rt, m.caller(rt), rapid.SampledFrom([]time.Duration{0, lease.MinLength, lease.MaxLength}).Draw(rt, "for"))
}

func (m *model) acquireBy(rt *rapid.T, c lease.Caller, lasting time.Duration) {
	m.pass()
	claim, err := m.h.r.Acquire(context.Background(), c, lease.Browser, lasting)
	if m.b.state != lease.Free && !m.poisoned {
		busy, ok := errors.AsType[*lease.BusyError](err)
		if !ok || busy.Owner != m.b.owner.Conversation || busy.Incarnation != m.b.of || busy.State != m.b.state {
			rt.Fatalf("Acquire = %v, want busy with %+v", err, m.b)
		}
		return
	}
	m.want(rt, "Acquire", err, nil)
	if err != nil {
		return
	}
	m.claims = append(m.claims, claim)
	m.b = belief{
		state: lease.Held, owner: c, of: claim.Incarnation, token: len(m.claims) - 1, deadline: claim.Deadline,
		active: map[string]bool{}, uncertain: map[string]bool{},
	}
}

// holder draws any token ever issued, and who shows it.
func (m *model) holder(rt *rapid.T) (token int, c lease.Caller, g lease.Guard) {
	if len(m.claims) == 0 {
		rt.Skip("no token was ever issued")
	}
	token = rapid.IntRange(0, len(m.claims)-1).Draw(rt, "token")
	if rapid.IntRange(0, 2).Draw(rt, "newest") > 0 {
		token = len(m.claims) - 1
	}
	c = m.caller(rt)
	if rapid.IntRange(0, 3).Draw(rt, "owner") > 0 && m.b.owner.Conversation != "" {
		c = m.b.owner
	}
	return token, c, m.h.guard(c, m.claims[token])
}

func (m *model) renew(rt *rapid.T) {
	m.pass()
	token, c, g := m.holder(rt)
	deadline, err := g.Renew(context.Background(), rapid.SampledFrom([]time.Duration{0, lease.MinLength}).Draw(rt, "for"))
	expected := m.expect(token, c)
	if over := m.h.over[c.Conversation] && c.Seat.Kind == lease.Service; over && expected == nil {
		expected = lease.ErrDenied // a turn that has ended
	}
	m.want(rt, "Renew", err, expected)
	if err == nil {
		m.b.deadline = deadline
	}
}

// act performs one effect: to its end, with some fault, or until finish.
func (m *model) act(rt *rapid.T) {
	m.pass()
	token, c, g := m.holder(rt)
	kind := rapid.SampledFrom([]string{"touch", "refuse", "lost", "revoked", "late", "long"}).Draw(rt, "kind")
	if kind == "long" && len(m.open) == 3 {
		kind = "touch"
	}
	action, f := sim.Touch, faults{}
	var late time.Duration
	switch kind {
	case "refuse":
		action = sim.Refuse
	case "lost":
		f[sim.AfterAct] = func(context.Context) error { return errors.New("connection reset") }
	case "revoked":
		f[sim.BeforeBegin] = func(context.Context) error { m.h.set(m.h.deny, c.Conversation, true); return nil }
	case "late":
		late = time.Until(m.b.deadline)
		f[sim.BeforeBegin] = func(context.Context) error { time.Sleep(late); return nil }
	case "long":
		m.long(rt, token, c, g)
		return
	}
	expected := m.expect(token, c)
	_, err := g.Do(with(f), action, nil)
	m.h.set(m.h.deny, c.Conversation, false)
	if expected != nil || m.poisoned {
		m.want(rt, "Do", err, expected)
		return
	}
	switch kind {
	case "touch":
		m.want(rt, "Do", err, nil)
	case "refuse":
		m.want(rt, "Do that the body refuses", err, body.ErrRefused)
	case "lost":
		m.want(rt, "Do with a lost answer", err, body.ErrUnknown)
		m.doubt(string(m.b.of))
	case "revoked":
		m.want(rt, "Do with a grant that is revoked", err, lease.ErrDenied)
	case "late":
		m.want(rt, "Do that begins at the deadline", err, lease.ErrExpired)
		m.pass()
	}
}

// doubt: an operation of the present claim is uncertain.
func (m *model) doubt(id string) {
	m.pass()
	if m.b.state == lease.Held {
		m.b.state = lease.RecoveryRequired
	}
	m.b.uncertain[id] = true
}

// long begins an effect that goes on until it is told to end.
func (m *model) long(rt *rapid.T, token int, c lease.Caller, g lease.Guard) {
	expected := m.expect(token, c)
	op := &running{of: m.b.of, end: make(chan error, 1), answer: make(chan error, 1)}
	f := faults{sim.AfterAct: func(ctx context.Context) error {
		select {
		case err := <-op.end:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	go func() {
		_, err := g.Do(with(f), sim.Touch, nil)
		op.answer <- err
	}()
	synctest.Wait()
	if expected != nil || m.poisoned {
		m.want(rt, "Do", <-op.answer, expected)
		return
	}
	acts := m.w.Acts()
	id := acts[len(acts)-1]
	m.open[id], m.b.active[id] = op, true
}

// end ends a long effect with an answer.
func (m *model) end(id string, answer error) error {
	op := m.open[id]
	delete(m.open, id)
	op.end <- answer
	return <-op.answer
}

func (m *model) finish(rt *rapid.T) {
	m.pass()
	ids := slices.Sorted(maps.Keys(m.open))
	if len(ids) == 0 {
		rt.Skip("nothing runs")
	}
	id := rapid.SampledFrom(ids).Draw(rt, "operation")
	op := m.open[id]
	var answer error
	if rapid.Bool().Draw(rt, "lost") {
		answer = errors.New("connection reset")
	}
	err := m.end(id, answer)
	switch {
	case m.poisoned:
		m.want(rt, "Do", err, body.ErrUnknown)
	case op.of != m.b.of:
		rt.Fatalf("operation %s outlived its claim; belief %+v", id, m.b)
	case answer == nil:
		m.want(rt, "Do", err, nil)
		delete(m.b.active, id)
	default:
		m.want(rt, "Do", err, body.ErrUnknown)
		delete(m.b.active, id)
		m.doubt(id)
	}
}

// sleep lets time pass: a moment, to the very deadline, or long.
func (m *model) sleep(rt *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{1, time.Second, 7 * time.Second, 130 * time.Second, -1, 0}).Draw(rt, "d")
	if left := time.Until(m.b.deadline); d <= 0 && left > 0 {
		d += left // a nanosecond before it, or exactly then
	}
	m.h.set(m.h.over, rapid.SampledFrom([]string{"conv-a", "conv-b"}).Draw(rt, "whose"), rapid.Bool().Draw(rt, "turn is over"))
	time.Sleep(max(d, 0))
	synctest.Wait()
	m.pass()
}

// lastRelease reads how the browser became free.
func (m *model) lastRelease(rt *rapid.T) (cause lease.Cause, of body.Incarnation) {
	events, err := m.h.inner.ReadRange(context.Background(), lease.StreamOf(lease.Browser), 1<<40, 8, journal.Backward)
	if err != nil {
		rt.Fatal(err)
	}
	for _, e := range events {
		if e.Kind == "RELEASED" {
			var release struct {
				Cause       lease.Cause
				Incarnation body.Incarnation
			}
			if err := json.Unmarshal(e.Data, &release, json.MatchCaseInsensitiveNames(true)); err != nil {
				rt.Fatal(err)
			}
			return release.Cause, release.Incarnation
		}
	}
	return "", ""
}
