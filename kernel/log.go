package kernel

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
)

// logBlock is how many events of a log are read at once.
const logBlock = 256

// errStuck marks what keeps an execution from running though its log is whole.
var errStuck = errors.New("the execution is stuck")

// StreamOf names the log of one generation of a chain (C-4.6).
func StreamOf(chain string, generation int) string {
	if generation == 0 {
		return chain
	}
	return chain + "~" + strconv.Itoa(generation)
}

// ChainOf returns the chain that an execution id belongs to, whichever
// generation it names.
func ChainOf(id string) string {
	chain, _, _ := strings.Cut(id, "~")
	return chain
}

// checkID validates an id that a caller chose (C-4.4, C-4.5).
func (rt *Runtime) checkID(id string) error {
	switch {
	case id == "" || len(id) > MaxIDBytes || !utf8.ValidString(id):
		return fmt.Errorf("%w: an execution id has 1 to %d bytes of UTF-8", ErrInvalid, MaxIDBytes)
	case strings.Contains(id, "~") || strings.Contains(id, "::"):
		return fmt.Errorf("%w: an execution id contains neither ~ nor :: anywhere", ErrInvalid)
	}
	for _, prefix := range append([]string{"inbox:", "__parley_"}, rt.config.Reserved...) {
		if strings.HasPrefix(id, prefix) {
			return fmt.Errorf("%w: the prefix of this execution id is reserved", ErrInvalid)
		}
	}
	return nil
}

// HeadGeneration returns the number of the chain's newest generation, and
// false if there is no such chain. Generations are not walked: it gallops up
// and bisects, O(log G) point reads (C-17.10).
func HeadGeneration(ctx context.Context, store journal.Store, chain string) (generation int, ok bool, err error) {
	exists := func(g int) bool {
		if err != nil {
			return false
		}
		var found bool
		_, found, err = store.HeadOf(ctx, StreamOf(chain, g))
		return found
	}
	if !exists(0) {
		return 0, false, err
	}
	low, high := 0, 1 // low exists
	for exists(high) {
		low, high = high, high*2
	}
	for high-low > 1 && err == nil {
		if mid := low + (high-low)/2; exists(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low, true, err
}

// readStarted reads event 0 of a generation. A stream whose event 0 is no
// start is no execution (K13).
func readStarted(ctx context.Context, store journal.Store, chain string, generation int) (Started, journal.Event, error) {
	events, err := store.ReadRange(ctx, StreamOf(chain, generation), 0, 1, journal.Forward)
	if err != nil {
		return Started{}, journal.Event{}, err
	}
	if len(events) == 0 || events[0].Seq != 0 || events[0].Kind != KindStarted {
		return Started{}, journal.Event{}, ErrNotFound
	}
	started, err := DecodeEvent[Started](events[0])
	return started, events[0], err
}

// OwnerOf returns the principal that started the chain, nil where nobody did,
// and the input that it was started with: event 0 of generation 0.
func OwnerOf(ctx context.Context, store journal.Store, chain string) (*identity.Identity, jsontext.Value, error) {
	started, _, err := readStarted(ctx, store, chain, 0)
	return started.Principal, started.Input, err
}

// load reads the head generation's log and makes the activation ready to run.
// It returns the flow's input.
func (a *activation) load(ctx context.Context) (jsontext.Value, error) {
	store := a.rt.config.Store
	generation, ok, err := HeadGeneration(ctx, store, a.chain)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: no log", errStuck)
	}
	input, err := a.loadGeneration(ctx, generation)
	if err == nil && a.parent != "" {
		err = a.checkParent(ctx)
	}
	return input, err
}

// checkParent ends the child of a cancelled parent: the process died between
// the end of the parent and that of the child (K11).
func (a *activation) checkParent(ctx context.Context) error {
	_, last, err := a.rt.head(ctx, a.parent)
	if err != nil || last.Kind != KindEnded {
		return err
	}
	ended, err := DecodeEvent[Ended](last)
	if err != nil || ended.State != Cancelled {
		return err
	}
	info, next, err := a.rt.info(ctx, a.chain)
	if err != nil {
		return err
	}
	children, err := a.rt.children(ctx, a.chain)
	if err != nil {
		return err
	}
	if err := a.rt.endAsCancelled(ctx, info, next, children); err != nil {
		return err
	}
	for _, child := range children { // one that is hot already would not look at its parent
		if err := a.rt.cancelTree(ctx, child); err != nil && !errors.Is(err, ErrClosed) {
			a.rt.config.Log.Warn("cancel a child", "execution", child, "error", err) // its mark is left
		}
	}
	a.leave(causeEnded, nil)
	return nil
}

// loadGeneration reads one generation's log.
func (a *activation) loadGeneration(ctx context.Context, generation int) (jsontext.Value, error) {
	started, _, err := readStarted(ctx, a.rt.config.Store, a.chain, generation)
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("%w: event 0 is no start", errStuck)
	} else if err != nil {
		return nil, err
	}
	flow, ok := a.rt.flows.version(started.Flow, started.Version)
	if !ok {
		return nil, fmt.Errorf("%w: flow %q version %q is not registered", errStuck, started.Flow, started.Version)
	}
	a.flow, a.principal, a.parent, a.generation = flow, started.Principal, started.Parent, generation
	a.facts = newFacts()
	a.inbox = newInboxReader(started)
	a.log = logTail{stream: StreamOf(a.chain, generation), next: 1}
	return started.Input, a.loadFacts(ctx)
}

// isOver leaves because of the last event of a generation, or notes it for a
// rehearsal.
func (a *activation) isOver(ctx context.Context, last journal.Event) error {
	switch {
	case a.rehearsal != nil && last.Kind == KindContinued:
		a.rehearsal.Ended = true
	case a.rehearsal != nil:
		ended, err := DecodeEvent[Ended](last)
		a.rehearsal.Ended, a.rehearsal.cut = true, ended.State != Completed
		return err
	case last.Kind == KindContinued: // meanwhile, by a rival: what we were woken for is ours all the same
		_, found, err := a.rt.config.Store.HeadOf(ctx, StreamOf(a.chain, a.generation+1))
		if err == nil && !found {
			err = fmt.Errorf("%w: generation %d was continued, and there is no next", errDamaged, a.generation)
		}
		if err != nil {
			return err
		}
		a.leave(causeLost, nil)
	default:
		a.rt.settleMark(a.chain, journal.AtEnd) // the end took it; a message that met the end set it again
		a.leave(causeEnded, nil)
	}
	return nil
}

// loadFacts reads the rest of the log, block by block.
func (a *activation) loadFacts(ctx context.Context) error {
	for {
		events, err := a.rt.config.Store.ReadRange(ctx, a.log.stream, a.log.next, logBlock, journal.Forward)
		if err != nil {
			return err
		}
		for _, event := range events {
			if event.Seq != a.log.next {
				return fmt.Errorf("%w: the log has a gap before event %d", errStuck, event.Seq)
			}
			a.log.next++
			if event.Kind == KindEnded || event.Kind == KindContinued {
				return a.isOver(ctx, event)
			}
			consumed, err := a.facts.load(event)
			if err != nil {
				return fmt.Errorf("%w: %w", errStuck, err)
			}
			if consumed != nil {
				a.inbox.consume(*consumed)
			}
		}
		if len(events) < logBlock {
			return nil
		}
	}
}
