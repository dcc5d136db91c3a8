package lease

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
)

// Config is what a registry is made of. Store, Bodies and Granted are required.
// The hooks may block, on a network for one: no lock is held while they are asked.
type Config struct {
	Store  journal.Store
	Bodies map[Resource]body.Adapter // keys of 1 to 32 lower-case letters and underscores

	// Granted says whether the caller may use the resource now. It is asked when
	// something is asked for, and again right before each effect with the caller
	// that was captured then (L-4.1). Retired identities have no grant (L-27.4).
	Granted func(ctx context.Context, use Use) bool

	// Operator says whether somebody owns the agent, and so may recover any claim
	// (L-15.8). Nil: nobody.
	Operator func(ctx context.Context, who identity.Identity) bool

	// Over says whether the turn of a holder with a [Service] seat has ended
	// (L-16.2). Nil: it is never known, and the sweep frees nothing.
	Over func(ctx context.Context, holder Caller) bool

	// Wake tells the requester of a queue that an incarnation has ended (L-20.3).
	// It is called at most once for a request, whatever it returns. Nil: nobody
	// can queue.
	Wake func(ctx context.Context, r Request) error

	Log *slog.Logger // slog.Default if nil
}

// Use is what a grant is asked for.
type Use struct {
	Caller   Caller
	Resource Resource
	Action   string // of an effect, "" otherwise
}

// Registry knows who holds which part of the body. Make one with [Open]; all its
// methods may be called from any number of goroutines.
type Registry struct {
	config    Config
	resources []Resource // sorted
	slots     map[Resource]*slot
	began     time.Time // the zero of the clock that only goes on

	failure atomic.Pointer[error] // of the store: nothing is written any more

	ctx     context.Context // ends when the registry closes
	cancel  context.CancelFunc
	mu      sync.Mutex
	closing bool
	calls   sync.WaitGroup // calls that reach an adapter
	loops   sync.WaitGroup // one for each resource
}

// slot is one resource: its commands one at a time, its state for everybody.
type slot struct {
	resource Resource
	adapter  body.Adapter
	turn     chan struct{} // full while a command is decided and written
	state    atomic.Pointer[state]
	checks   atomic.Pointer[checks] // how the sweep stands
	changed  chan struct{}          // a hint for the loop, merged
}

// StreamOf names the stream of a resource. A kernel on the same store reserves the
// prefix "lease:" (K13).
func StreamOf(r Resource) string { return "lease:" + string(r) }

// now is the time on both clocks.
func (r *Registry) now() instant {
	now := time.Now()
	return instant{now.Round(0).UTC(), now.Sub(r.began)}
}

// find returns the slot of a resource (L-2.7).
func (r *Registry) find(resource Resource) (*slot, error) {
	s, ok := r.slots[resource]
	if !ok {
		return nil, ErrUnknownResource
	}
	return s, nil
}

// granted asks the hook.
func (r *Registry) granted(ctx context.Context, c Caller, resource Resource, action string) bool {
	return r.config.Granted(ctx, Use{c, resource, action}) && ctx.Err() == nil
}

// apply carries out one command: decided, durable, then true for everybody
// (L-6.1, L-7.4). It returns the state after it. A crash or an error before
// the commit leaves what was there; one after it is found by the next start.
func (r *Registry) apply(ctx context.Context, s *slot, cmd command) (state, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return state{}, ctx.Err()
	}
	if err := r.Err(); err != nil {
		return state{}, fmt.Errorf("%w: %w", ErrStoreUnavailable, err)
	}
	before, now := *s.state.Load(), r.now()
	events, refusal := decide(before, cmd, now)
	after, err := before.after(events, now.wall)
	if err != nil {
		return state{}, err
	}
	if len(events) == 0 {
		return after, refusal
	}
	if err := r.write(ctx, before, events, now.wall); err != nil {
		return state{}, err
	}
	if _, renewing := cmd.(renew); renewing && refusal == nil && r.now().passed(before.claim.deadline) {
		// The write outlasted the deadline that it was to move: others have seen it
		// pass, and nothing revives a claim (L-8.4).
		late := []event{blocked{after.claim.incarnation, Expired}}
		if err := r.write(context.WithoutCancel(ctx), after, late, now.wall); err != nil {
			return state{}, err
		}
		if after, err = after.after(late, now.wall); err != nil {
			return state{}, err
		}
		refusal = ErrExpired
	}
	s.publish(before, after)
	r.tell(before, after)
	return after, refusal
}

// write puts events on record. An error of the store leaves it unknown whether
// they are there, so nothing is written any more until a new registry has read
// what is (L-7.3).
func (r *Registry) write(ctx context.Context, s state, events []event, at time.Time) error {
	part := journal.Append{Stream: StreamOf(s.resource), Expect: s.next}
	for _, e := range events {
		if e.kind() == "" {
			continue
		}
		encoded, err := encode(e, at)
		if err != nil {
			return err
		}
		part.Events = append(part.Events, encoded)
	}
	if len(part.Events) == 0 {
		return nil
	}
	err := r.config.Store.Append(ctx, part)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()): // not even begun
		return err
	}
	if r.failure.CompareAndSwap(nil, &err) {
		r.config.Log.Error("lease registry stopped: its store failed", "resource", s.resource, "error", err)
	}
	return fmt.Errorf("%w: %w", ErrStoreUnavailable, err)
}

// publish makes a state visible, and wakes the loop where there is something in it
// for the loop: another claim, another deadline, or one that is blocked.
func (s *slot) publish(before, after state) {
	s.state.Store(&after)
	b, a := before.claim, after.claim
	if b != nil && a != nil && a.incarnation == b.incarnation && a.deadline == b.deadline && a.blocked == "" {
		return
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// tell logs what an operator may act on, in ids of the registry's own.
func (r *Registry) tell(before, after state) {
	b, a := before.claim, after.claim
	switch {
	case a != nil && a.blocked != "" && (b == nil || b.blocked == ""):
		r.config.Log.Warn("lease blocked", "resource", after.resource, "incarnation", a.incarnation, "reason", a.blocked)
	case b != nil && b.blocked != "" && a == nil:
		r.config.Log.Info("blocked lease freed", "resource", after.resource, "incarnation", b.incarnation)
	}
}

// Err returns the failure of the store, after which the registry writes nothing
// and begins nothing until it is opened again; reads go on.
func (r *Registry) Err() error {
	if err := r.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// enter admits a call that will reach an adapter, and joins its context with
// the life of the registry; leave must follow.
func (r *Registry) enter(ctx context.Context) (joined context.Context, leave func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return nil, nil, fmt.Errorf("%w: the registry is closed", ErrStoreUnavailable)
	}
	r.calls.Add(1)
	joined, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(r.ctx, cancel)
	return joined, func() {
		unhook()
		cancel()
		r.calls.Done()
	}, nil
}

// Close ends the calls that run, which puts on record what became of them, and
// the sweep (L-16.10), and returns when all are gone. It frees nothing (L-30.5),
// and closes neither the store nor an adapter.
func (r *Registry) Close() {
	r.mu.Lock()
	r.closing = true
	r.mu.Unlock()
	r.cancel()
	r.calls.Wait()
	r.loops.Wait()
}

// checkReference bounds what an adapter notes of its body.
func checkReference(reference jsontext.Value) error {
	if len(reference) > body.MaxReferenceBytes || !reference.IsValid() {
		return fmt.Errorf("%w: a reference is one JSON value of at most %d bytes", ErrLimit, body.MaxReferenceBytes)
	}
	return nil
}
