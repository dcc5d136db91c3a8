package lease_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/sim"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/lease"
)

// Three conversations of three people, and the operator, who drives no
// conversation here.
var (
	ann      = caller("conv-a", "ann")
	bob      = caller("conv-b", "bob")
	eve      = caller("conv-e", "eve")
	operator = lease.Caller{Identity: identity.Identity{Actor: "op"}}
)

func caller(conversation, actor string) lease.Caller {
	return lease.Caller{
		Conversation: conversation, Identity: identity.Identity{Actor: actor},
		Seat: lease.Seat{Kind: lease.Service, ID: "turn-" + actor},
	}
}

// native is a caller whose conversation another program drives.
func native(c lease.Caller) lease.Caller {
	c.Seat = lease.Seat{Kind: lease.Native, ID: "driver"}
	return c
}

// tester is what a test and a case of the model have in common.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
	Context() context.Context
}

// house is one store with one registry after another on it, and the worlds that
// outlive them.
type house struct {
	t      tester
	inner  journal.Store
	store  *journaltest.Store
	worlds map[lease.Resource]*sim.World
	bodies map[lease.Resource]*sim.Body
	r      *lease.Registry
	log    lockedBuffer

	mu    sync.Mutex
	deny  map[string]bool // conversations that have no grant
	over  map[string]bool // conversations whose turn has ended
	wakes []string        // requests for which somebody was woken
	asked []lease.Use
	wake  func(context.Context, lease.Request) error
	grant func(lease.Use) bool
}

func newHouse(t tester) *house {
	h := &house{t: t, inner: memory.New(), worlds: map[lease.Resource]*sim.World{}, deny: map[string]bool{}, over: map[string]bool{}}
	for _, resource := range []lease.Resource{lease.Browser, lease.Voice, lease.Computer} {
		h.worlds[resource] = sim.NewWorld()
	}
	h.boot()
	t.Cleanup(func() {
		h.r.Close()
		h.lawful()
	})
	return h
}

// lawful fails on what must never happen in a world.
func (h *house) lawful() {
	h.t.Helper()
	for resource, w := range h.worlds {
		if v := w.Violations(); len(v) > 0 {
			h.t.Errorf("in the world of %s: %q", resource, v)
		}
	}
}

// boot opens a registry on the store, as a process that has just started.
func (h *house) boot() {
	h.t.Helper()
	h.store = journaltest.Wrap(h.inner)
	h.bodies = map[lease.Resource]*sim.Body{}
	config := lease.Config{
		Store: h.store, Bodies: map[lease.Resource]body.Adapter{},
		Granted: h.granted,
		Operator: func(_ context.Context, who identity.Identity) bool {
			return who == operator.Identity
		},
		Over: func(_ context.Context, holder lease.Caller) bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.over[holder.Conversation]
		},
		Wake: h.woken,
		Log:  slog.New(slog.NewTextHandler(&h.log, nil)),
	}
	for resource, w := range h.worlds {
		h.bodies[resource] = sim.New(w)
		config.Bodies[resource] = h.bodies[resource]
	}
	r, err := lease.Open(context.Background(), config)
	if err != nil {
		h.t.Fatalf("Open: %v", err)
	}
	h.r = r
}

// reboot is a clean stop and a start.
func (h *house) reboot() {
	h.t.Helper()
	h.r.Close()
	h.boot()
}

// crash is a death without a last word, and a start.
func (h *house) crash() {
	h.t.Helper()
	h.store.Before(func(int, []journal.Append) error { return errors.New("this process is dead") })
	h.r.Close()
	h.boot()
}

func (h *house) granted(_ context.Context, use lease.Use) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, use)
	if h.grant != nil {
		return h.grant(use)
	}
	return !h.deny[use.Caller.Conversation]
}

func (h *house) woken(ctx context.Context, r lease.Request) error {
	h.mu.Lock()
	h.wakes = append(h.wakes, r.Requester.Conversation+" "+string(r.Incarnation))
	wake := h.wake
	h.mu.Unlock()
	if wake == nil {
		return nil
	}
	return wake(ctx, r)
}

func (h *house) wokenSoFar() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.wakes)
}

func (h *house) set(of map[string]bool, conversation string, value bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	of[conversation] = value
}

func (h *house) acquire(c lease.Caller, resource lease.Resource) lease.Claim {
	h.t.Helper()
	claim, err := h.r.Acquire(h.t.Context(), c, resource, 0)
	if err != nil {
		h.t.Fatalf("Acquire(%s, %s) = %v", c.Conversation, resource, err)
	}
	return claim
}

func (h *house) guard(c lease.Caller, claim lease.Claim) lease.Guard {
	h.t.Helper()
	g, err := h.r.Guard(c, claim.Resource, claim.Token)
	if err != nil {
		h.t.Fatalf("Guard = %v", err)
	}
	return g
}

// hold acquires the browser and brings its body to life.
func (h *house) hold(c lease.Caller) (lease.Claim, lease.Guard) {
	h.t.Helper()
	claim := h.acquire(c, lease.Browser)
	g := h.guard(c, claim)
	if _, err := g.Do(h.t.Context(), sim.Touch, nil); err != nil {
		h.t.Fatalf("Do = %v", err)
	}
	return claim, g
}

// block leaves the browser in recovery_required, its body alive.
func (h *house) block(c lease.Caller) (lease.Claim, lease.Guard) {
	h.t.Helper()
	claim, g := h.hold(c)
	time.Sleep(lease.DefaultLength)
	synctest.Wait()
	h.wantState(lease.Browser, lease.RecoveryRequired, c.Conversation)
	return claim, g
}

func (h *house) status(resource lease.Resource) lease.Status {
	h.t.Helper()
	for _, s := range h.r.Status() {
		if s.Resource == resource {
			return s
		}
	}
	h.t.Fatalf("Status does not list %s", resource)
	return lease.Status{}
}

func (h *house) wantState(resource lease.Resource, state lease.State, owner string) {
	h.t.Helper()
	if s := h.status(resource); s.State != state || s.Owner != owner {
		h.t.Errorf("%s is %s of %q, want %s of %q", resource, s.State, s.Owner, state, owner)
	}
}

// stream renders the kinds of a resource's events.
func (h *house) stream(resource lease.Resource) (kinds []string) {
	h.t.Helper()
	events, err := h.inner.ReadRange(context.Background(), lease.StreamOf(resource), 0, 10_000, journal.Forward)
	if err != nil {
		h.t.Fatalf("ReadRange: %v", err)
	}
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func (h *house) wantStream(resource lease.Resource, want ...string) {
	h.t.Helper()
	if diff := cmp.Diff(want, h.stream(resource)); diff != "" {
		h.t.Errorf("stream of %s (-want +got):\n%s", resource, diff)
	}
}

func wantErr(t tester, call string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s = %v, want %v", call, got, want)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
