package agent

import (
	"context"
	"sync"
)

// Signal interrupts a run of the loop from outside (C-10.7): the channel that it
// returns is closed when the run is to end. It is asked at each checkpoint and
// for each model call that happens, with the context of that decider or effect,
// and never on a replay, so that whoever stands behind it may begin to look when
// it is asked first. It may be asked from several goroutines.
type Signal func(ctx context.Context) <-chan struct{}

// fired reports whether the run is to end.
func (s Signal) fired(ctx context.Context) bool {
	return s != nil && isClosed(s(ctx))
}

// InterruptedError says that a run was interrupted (C-10.10).
type InterruptedError struct {
	Partial string // what the model had said in the run; may be empty
}

// Error names what happened.
func (e *InterruptedError) Error() string { return "the run was interrupted" }

// FaultCode is the wire code.
func (e *InterruptedError) FaultCode() string { return "AGENT_INTERRUPTED" }

type signalKey struct{}

// Within puts the signal into the contexts of effects, where the model calls and the
// summarizers that are made in them find it. Run does so for its own.
func (s Signal) Within(ctx context.Context) context.Context {
	return context.WithValue(ctx, signalKey{}, s)
}

// signalFrom returns the signal of the run that an effect serves, nil where
// there is none.
func signalFrom(ctx context.Context) Signal {
	s, _ := ctx.Value(signalKey{}).(Signal)
	return s
}

// merged returns a context that ends with the parent and with the signal
// (C-14.14), the channel that tells the one from the other, and a function that
// gives all of it back.
func (s Signal) merged(parent context.Context) (ctx context.Context, interrupted <-chan struct{}, release func()) {
	ctx, cancel := context.WithCancel(parent)
	if s == nil {
		return ctx, nil, cancel
	}
	interrupted = s(parent)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-interrupted:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, interrupted, func() {
		cancel()
		watching.Wait()
	}
}

// isClosed reports whether a channel that carries nothing is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
