package kernel

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
)

// State says how an execution stands.
type State string

const (
	Running   State = "running"   // it works, or waits for a message
	Stuck     State = "stuck"     // running, but it cannot go on with this build; see Info.Fault
	Completed State = "completed" // its flow returned an output
	Failed    State = "failed"    // its flow returned an error
	Cancelled State = "cancelled" // it was cancelled
)

// Over reports whether the state is an end.
func (s State) Over() bool { return s == Completed || s == Failed || s == Cancelled }

// Info is what a query tells of an execution: the state of its chain's newest
// generation.
type Info struct {
	ID         string // chain id
	Generation int    // the head's number
	Flow       string
	Version    string
	Principal  *identity.Identity // nil: started by nobody
	Parent     string
	Started    time.Time // of the head generation
	State      State
	Output     jsontext.Value // of a completed execution
	Fault      string         // the code of a failed or stuck one
}

// Query reports the state of the chain's head, whichever generation id names
// (C-4.8).
//
// Errors: [ErrNotFound], [ErrForbidden].
func (rt *Runtime) Query(ctx context.Context, caller Caller, id string) (Info, error) {
	chain := ChainOf(id)
	if _, err := rt.admit(ctx, OpQuery, caller, chain); err != nil {
		return Info{}, err
	}
	info, _, err := rt.info(ctx, chain)
	return info, err
}

// Wait returns the state of an execution when it is over, or stuck in this
// process.
//
// Errors: [ErrNotFound], [ErrForbidden], that of a done ctx.
func (rt *Runtime) Wait(ctx context.Context, caller Caller, id string) (Info, error) {
	chain := ChainOf(id)
	if _, err := rt.admit(ctx, OpQuery, caller, chain); err != nil {
		return Info{}, err
	}
	poll := time.NewTicker(waitPoll)
	defer poll.Stop()
	for {
		if gone := rt.goneOf(chain); gone != nil {
			select {
			case <-gone:
				continue
			case <-ctx.Done():
				return Info{}, ctx.Err()
			}
		}
		info, _, err := rt.info(ctx, chain)
		if err != nil || info.State.Over() || info.State == Stuck {
			return info, err
		}
		select {
		case <-poll.C: // another process may run it
		case <-ctx.Done():
			return info, ctx.Err()
		}
	}
}

// goneOf returns the channel that is closed when the execution's activation is
// gone, nil where it has none.
func (rt *Runtime) goneOf(chain string) <-chan struct{} {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if a := rt.hot[chain]; a != nil {
		return a.done
	}
	return nil
}

// waitPoll is how often an execution that may run elsewhere is looked at.
const waitPoll = time.Second

// info reports the state of the head, and up to where its log was read: who
// writes because of it expects that.
func (rt *Runtime) info(ctx context.Context, chain string) (Info, journal.Seq, error) {
	generation, last, err := rt.head(ctx, chain)
	if err != nil {
		return Info{}, 0, err
	}
	started, first, err := readStarted(ctx, rt.config.Store, chain, generation)
	if err != nil {
		return Info{}, 0, err
	}
	info := Info{
		ID: chain, Generation: generation, Flow: started.Flow, Version: started.Version,
		Principal: started.Principal, Parent: started.Parent, Started: first.Time, State: Running,
	}
	if last.Kind == KindEnded {
		ended, err := DecodeEvent[Ended](last)
		if err != nil {
			return Info{}, 0, err
		}
		info.State, info.Output, info.Fault = ended.State, ended.Output, ended.Fault
		return info, last.Seq + 1, nil
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if err, ok := rt.stuck[chain]; ok {
		info.State, info.Fault = Stuck, outcomeOf(nil, err).fault
	}
	return info, last.Seq + 1, nil
}

// head finds the newest generation and its last event, which is never that of
// a generation that was continued meanwhile.
func (rt *Runtime) head(ctx context.Context, chain string) (int, journal.Event, error) {
	generation, ok, err := HeadGeneration(ctx, rt.config.Store, chain)
	if err != nil {
		return 0, journal.Event{}, err
	}
	if !ok {
		return 0, journal.Event{}, ErrNotFound
	}
	for ; ; generation++ {
		stream := StreamOf(chain, generation)
		next, _, err := rt.config.Store.HeadOf(ctx, stream)
		if err != nil {
			return 0, journal.Event{}, err
		}
		events, err := rt.config.Store.ReadRange(ctx, stream, next-1, 1, journal.Backward)
		if err != nil {
			return 0, journal.Event{}, err
		}
		if len(events) == 0 {
			return 0, journal.Event{}, errors.New("the journal has lost the end of a log")
		}
		if events[0].Kind != KindContinued {
			return generation, events[0], nil
		}
	}
}

// isOver reports whether the execution has ended. A hot one that is not about to
// has not.
func (rt *Runtime) isOver(ctx context.Context, chain string) (bool, error) {
	rt.mu.Lock()
	a := rt.hot[chain]
	hot := a != nil && !a.ending
	rt.mu.Unlock()
	if hot {
		return false, nil
	}
	_, last, err := rt.head(ctx, chain)
	return last.Kind == KindEnded, err
}

// Cancel ends the execution and its children for good (C-4.9, C-4.10). What
// runs is cut; effects get 5 s. A cancelled execution accepts no message and
// never runs again. Cancelling one that is over changes nothing.
//
// Errors: [ErrNotFound], [ErrForbidden], [ErrClosed].
func (rt *Runtime) Cancel(ctx context.Context, caller Caller, id string) error {
	chain := ChainOf(id)
	if _, err := rt.admit(ctx, OpCancel, caller, chain); err != nil {
		return err
	}
	// From here on nobody's going away may stop it half way.
	return rt.cancelTree(context.WithoutCancel(ctx), chain)
}

// cancelTree ends the execution, then its children. The children's work marks
// ride in the write that ends it, so that a crash in between leaves them to
// the next start-up. Where it fails, the execution that it stopped goes on.
func (rt *Runtime) cancelTree(ctx context.Context, chain string) error {
	children, err := rt.cancelOne(ctx, chain)
	if err != nil {
		rt.wake(chain)
		return err
	}
	var failures []error
	for _, child := range children {
		failures = append(failures, rt.cancelTree(ctx, child))
	}
	return errors.Join(failures...)
}

// cancelOne ends the execution and returns its children.
func (rt *Runtime) cancelOne(ctx context.Context, chain string) (children []string, err error) {
	for {
		rt.halt(chain)
		info, next, err := rt.info(ctx, chain)
		if err != nil {
			return nil, err
		}
		if children, err = rt.children(ctx, chain); err != nil || info.State.Over() {
			return children, err
		}
		err = rt.endAsCancelled(ctx, info, next, children)
		if err == nil {
			return children, nil
		}
		if !errors.Is(err, journal.ErrConflict) { // it was woken, and moved on
			return nil, fmt.Errorf("cancel: %w", err)
		}
	}
}

// children lists the executions that are children of the chain.
func (rt *Runtime) children(ctx context.Context, chain string) ([]string, error) {
	var children []string
	err := rt.eachRow(ctx, spaceChild+chain, func(key string) error {
		children = append(children, key)
		return nil
	})
	return children, err
}

// halt stops the execution's activation, if it has one, and waits until it is
// gone.
func (rt *Runtime) halt(chain string) {
	rt.mu.Lock()
	a := rt.hot[chain]
	if a != nil {
		rt.stopLocked(a)
	}
	rt.mu.Unlock()
	if a != nil {
		<-a.done
	}
}

// endAsCancelled writes the end behind what info was read from, and nowhere
// else: behind an end it would undo it, behind a rotation end nothing.
func (rt *Runtime) endAsCancelled(ctx context.Context, info Info, next journal.Seq, children []string) error {
	rows := endRows(info.Principal, info.ID, info.Parent, info.Flow, Cancelled)
	for _, child := range children {
		rows = append(rows, workRow(child))
	}
	return rt.append(ctx, journal.Append{
		Stream: StreamOf(info.ID, info.Generation), Expect: next, Rows: rows,
		Events: []journal.Event{{Kind: KindEnded, Time: now(), Data: mustEncode(Ended{State: Cancelled})}},
	})
}
