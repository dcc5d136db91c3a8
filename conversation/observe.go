package conversation

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/parley-run/parley/agent"
)

// TurnReport tells how a turn ended. It has no text and nobody's name.
type TurnReport struct {
	Status Status // of the reply: complete, interrupted or failed
	Reason Reason // of a failed one

	// Both are counted from the time at which the message was admitted, as it is on
	// record; a crash in between counts.
	FirstWords time.Duration // to the first words of the reply; 0 where none came to this process
	Took       time.Duration // to the record of the reply
}

// toldTurn tells the host of a turn whose reply is about to be recorded.
func (f *Flow) toldTurn(admitted time.Time, r Record, words *stopwatch) {
	if f.config.OnTurn == nil {
		return
	}
	told := TurnReport{Status: r.Status, Reason: r.Reason, Took: max(r.Time.Sub(admitted), 0)}
	if first := words.first.Load(); first != nil {
		told.FirstWords = max(first.Sub(admitted), time.Millisecond) // clocks may be set back
	}
	f.tell(func() { f.config.OnTurn(told) })
}

// toldRejected tells the host of a message that is rejected.
func (f *Flow) toldRejected(reason Reason) {
	if f.config.OnRejected != nil && reason != "" {
		f.tell(func() { f.config.OnRejected(reason) })
	}
}

// tell calls a hook of the host's. A panic of it costs the fact that is being
// made nothing.
func (f *Flow) tell(hook func()) {
	defer func() {
		if recover() != nil {
			f.log().Error("a hook of the conversation panicked")
		}
	}()
	hook()
}

// stopwatch notes when the first words of a turn came. It is read and written in
// effects and deciders alone.
type stopwatch struct{ first atomic.Pointer[time.Time] }

type stopwatchKey struct{}

// within puts the stopwatch into a context.
func (w *stopwatch) within(ctx context.Context) context.Context {
	return context.WithValue(ctx, stopwatchKey{}, w)
}

// timed returns a sink that notes the first words of the turn in whose scope
// they come, and gives all of them to another sink, if there is one.
func timed(other func(context.Context, agent.Delta)) func(context.Context, agent.Delta) {
	return func(ctx context.Context, d agent.Delta) {
		if w, ok := ctx.Value(stopwatchKey{}).(*stopwatch); ok && w.first.Load() == nil {
			at := time.Now()
			w.first.CompareAndSwap(nil, &at)
		}
		if other != nil {
			other(ctx, d)
		}
	}
}
