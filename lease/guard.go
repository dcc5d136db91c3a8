package lease

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/parley-run/parley/body"
)

// MaxInputBytes is the largest input of an effect.
const MaxInputBytes = 1 << 20

// Do carries out one effect on the holder's body: it reserves an operation,
// durably (L-9.1), lets the adapter begin it if everything still holds then
// (L-4.2), and puts its exact outcome on record. It runs the effect at most once.
// While it runs, the operation pins the claim.
//
// Action is the adapter's word for what to do, 1 to 64 lower-case letters and
// underscores; input may come from a model, and has at most [MaxInputBytes].
//
// A nil error and [body.ErrRefused] are definite. [body.ErrUnknown] says that
// nobody knows, and that the claim is blocked until somebody does. Other errors
// say that nothing began: [ErrStale], [ErrExpired], [ErrRecoveryRequired],
// [ErrDenied], [ErrLimit], a [BlockedError] while a stop is under way,
// [ErrStoreUnavailable], that of a ctx that ended, or the adapter's own.
func (g Guard) Do(ctx context.Context, action string, input jsontext.Value) (jsontext.Value, error) {
	if !isWord(action, 64) {
		return nil, fmt.Errorf("%w: an action has 1 to 64 lower-case letters and underscores", ErrLimit)
	}
	if len(input) > MaxInputBytes {
		return nil, fmt.Errorf("%w: an input has at most %d bytes", ErrLimit, MaxInputBytes)
	}
	r := g.registry
	ctx, leave, err := r.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	after, err := r.apply(ctx, g.slot, reserve{
		fence: g.fence(), granted: r.granted(ctx, g.caller, g.slot.resource, action), action: action, seat: g.caller.Seat,
	})
	if err != nil {
		return nil, err
	}
	op := &permit{guard: g, of: after.claim.incarnation, number: after.claim.number, action: action}
	result, err := attend(func() (jsontext.Value, error) {
		return g.slot.adapter.Perform(ctx, body.Effect{
			Incarnation: op.of, Operation: after.claim.id(op.number), Number: op.number,
			Action: action, Input: input, Begin: op.begin, Note: op.note,
		})
	})
	return op.complete(ctx, result, err)
}

// permit is one reserved operation on its way.
type permit struct {
	guard  Guard
	of     body.Incarnation
	number int
	action string
	asked  atomic.Bool
	begun  atomic.Bool
}

// begin is what the adapter asks at the last moment. The grants are asked for
// the captured caller; then fence, deadline and operation are judged in one
// step, and the operation itself keeps the claim from ending before the effect.
func (p *permit) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g := p.guard
	if !p.asked.CompareAndSwap(false, true) {
		return ErrStale // an effect begins at most once (L-9.6)
	}
	granted := g.registry.granted(ctx, g.caller, g.slot.resource, p.action)
	if _, err := g.registry.apply(ctx, g.slot, begin{g.fence(), granted, p.of, p.number}); err != nil {
		return err
	}
	p.begun.Store(true)
	return nil
}

// note puts the adapter's reference on record, whatever became of the call.
func (p *permit) note(ctx context.Context, reference jsontext.Value) error {
	if err := checkReference(reference); err != nil {
		return err
	}
	_, err := p.guard.registry.apply(context.WithoutCancel(ctx), p.guard.slot, note{p.of, p.number, reference.Clone()})
	return err
}

// complete puts the outcome on record, and says it to the caller once it is
// durable (L-7.4). What is not on record is not known.
func (p *permit) complete(ctx context.Context, result jsontext.Value, err error) (jsontext.Value, error) {
	became := p.outcome(err)
	_, failed := p.guard.registry.apply(context.WithoutCancel(ctx), p.guard.slot, complete{of: p.of, number: p.number, outcome: became})
	switch {
	case failed != nil:
		return nil, fmt.Errorf("%w: %w", body.ErrUnknown, failed)
	case became == unknown && err == nil:
		return nil, fmt.Errorf("%w: the adapter did not ask before it acted", body.ErrUnknown)
	case became == unknown:
		return nil, fmt.Errorf("%w: %w", body.ErrUnknown, err)
	case err != nil:
		return nil, err
	}
	return result, nil
}

// outcome judges what the adapter returned. What it says without having asked
// to begin counts for nothing, unless it says that it did nothing (L-9.9).
func (p *permit) outcome(err error) outcome {
	switch begun := p.begun.Load(); {
	case !begun && err != nil:
		return notBegun
	case begun && err == nil:
		return done
	case begun && errors.Is(err, body.ErrRefused):
		return refused
	}
	return unknown
}

// errPanicked says that an adapter panicked, and not over what.
var errPanicked = errors.New("the adapter panicked")

// attend calls an adapter. A panic of it is an error that proves nothing.
func attend[T any](call func() (T, error)) (result T, err error) {
	defer func() {
		if recover() != nil {
			err = errPanicked
		}
	}()
	return call()
}
