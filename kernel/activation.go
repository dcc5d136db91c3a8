package kernel

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
)

// effectGrace is how long effects have to return after their context ended.
const effectGrace = 5 * time.Second

// cause says why an activation ended.
type cause int

const (
	causeNone      cause = iota
	causeSuspended       // went cold; only its log is left
	causeStopped         // cancelled, or the runtime closes
	causeLost            // another writer moved its log on
	causeStore           // the store failed
	causeStuck           // diverged, or panicked outside of a decision (K8)
	causeEnded           // the flow is over
	causeFrontier        // a rehearsal came to the end of the log, see Rehearse
)

// activation is one hot period of an execution: the goroutine that runs its
// flow, and what that goroutine knows. All fields below the line belong to it
// alone.
type activation struct {
	rt    *Runtime
	chain string

	ctx    context.Context // of deciders and effects
	cancel context.CancelFunc

	wake chan struct{} // one value: look into the inbox again
	poke chan struct{} // one value: go cold if nothing waits
	stop chan struct{} // closed under Runtime.mu: leave at once
	over chan struct{} // closed when the flow's goroutine takes no more results
	done chan struct{} // closed when goroutine and effects are gone

	taken atomic.Int64 // its inbox behind the message that it took last; -1 while the log is read

	stopping bool    // guarded by Runtime.mu: stop is closed
	ending   bool    // guarded by Runtime.mu: the end may be on record already
	parking  parking // guarded by Runtime.mu

	// ---

	principal  *identity.Identity
	parent     string
	flow       Flow
	generation int

	facts   *facts
	open    []string // decisions that are being made, innermost last
	log     logTail
	inbox   inboxReader
	settled chan settlement
	steps   []*step // started and not awaited, in order
	effects sync.WaitGroup

	cause     cause
	err       error // of causeStore and causeStuck
	rehearsal *Rehearsal
}

func (rt *Runtime) newActivation(chain string) *activation {
	ctx, cancel := context.WithCancel(context.Background())
	a := &activation{
		rt: rt, chain: chain, ctx: ctx, cancel: cancel,
		wake: make(chan struct{}, 1), poke: make(chan struct{}, 1),
		stop: make(chan struct{}), over: make(chan struct{}), done: make(chan struct{}),
		settled: make(chan settlement),
	}
	a.taken.Store(-1)
	return a
}

// main is the activation's goroutine, from the load of the log to retirement.
func (a *activation) main() {
	defer a.retire()
	input := a.wakeUp()
	for {
		input = a.run(input)
	}
}

// wakeUp reads the log and returns the input of the head generation.
func (a *activation) wakeUp() jsontext.Value {
	select {
	case a.rt.loading <- struct{}{}:
		defer func() { <-a.rt.loading }()
	case <-a.stop:
		a.leave(causeStopped, nil)
	}
	input, err := a.load(context.WithoutCancel(a.ctx))
	if err != nil {
		a.fail(err)
	}
	a.taken.Store(int64(a.inbox.last()))
	return input
}

// run runs one generation to its end and returns the carry of the next; it
// does not return when the execution is over.
func (a *activation) run(input jsontext.Value) (carry jsontext.Value) {
	defer func() {
		if r := recover(); r != nil {
			a.leave(causeStuck, fmt.Errorf("%w in flow %q: %s\n%s", ErrPanic, a.flow.Name, panicText(r), debug.Stack()))
		}
	}()
	output, err := a.flow.Run(&Context{activation: a}, input)
	var next *continueAsNew
	if errors.As(err, &next) {
		return a.continueAsNew(next.carry)
	}
	a.end(output, err)
	return nil
}

// leave ends the goroutine; deferred calls run (K2).
func (a *activation) leave(why cause, err error) {
	if a.cause == causeNone {
		a.cause, a.err = why, err
	}
	runtime.Goexit()
}

// fail leaves because of an error of the load or of the store. A log that
// cannot be read, or a fact that no event can hold, stops its own execution and
// no other.
func (a *activation) fail(err error) {
	switch {
	case errors.Is(err, journal.ErrConflict):
		a.leave(causeLost, nil)
	case errors.Is(err, ErrClosed):
		a.leave(causeStopped, nil)
	case errors.Is(err, errStuck), errors.Is(err, errDamaged), errors.Is(err, ErrNotFound), errors.Is(err, journal.ErrTooLarge):
		a.leave(causeStuck, err)
	default:
		a.leave(causeStore, err)
	}
}

// diverge leaves a re-run that asked for something other than what is on
// record. Nothing is written: what was buffered is dropped (K8).
func (a *activation) diverge(id, recorded, asked string) {
	a.leave(causeStuck, &DivergenceError{ID: id, Recorded: recorded, Asked: asked})
}

// checkStopped leaves if the activation was stopped, or has an end already:
// deferred calls of a flow that ask for facts end there.
func (a *activation) checkStopped() {
	if a.cause != causeNone {
		runtime.Goexit()
	}
	select {
	case <-a.stop:
		a.leave(causeStopped, nil)
	default:
	}
}

// retire runs when the goroutine leaves, whatever the reason: effects are
// cancelled and waited for, late results dropped, and the runtime forgets the
// activation.
func (a *activation) retire() {
	if r := recover(); r != nil { // a bug of the kernel itself; the log is whole, the next wake tries again
		a.cause, a.err = causeStuck, fmt.Errorf("%w in the kernel: %s\n%s", ErrPanic, panicText(r), debug.Stack())
	}
	close(a.over)
	a.cancel()
	a.waitEffects()
	a.rt.retired(a)
}

// waitEffects gives effects their grace. One that never returns is left behind
// with a warning; its result goes nowhere.
func (a *activation) waitEffects() {
	if len(a.steps) == 0 {
		return
	}
	gone := make(chan struct{})
	go func() { a.effects.Wait(); close(gone) }()
	timer := time.NewTimer(effectGrace)
	defer timer.Stop()
	select {
	case <-gone:
	case <-timer.C:
		a.rt.config.Log.Warn("an effect outlives its execution", "execution", a.chain)
	}
}

// continueAsNew ends the generation and lays the first event of the next, in
// one write with the rest of the buffer.
func (a *activation) continueAsNew(carry any) jsontext.Value {
	a.checkFinished("ContinueAsNew")
	data, err := encode(carry)
	if err != nil || len(data) > MaxCarryBytes {
		a.leave(causeStuck, fmt.Errorf("%w: carry of flow %q", ErrTooLarge, a.flow.Name))
	}
	flow, ok := a.rt.flows.newest(a.flow.Name)
	if !ok {
		a.leave(causeStuck, fmt.Errorf("%w: flow %q is not registered", errStuck, a.flow.Name))
	}
	if a.rehearsal != nil {
		a.leave(causeFrontier, nil)
	}
	started := Started{
		Flow: flow.Name, Version: flow.Version, Principal: a.principal, Parent: a.parent,
		Input: data, Cursors: a.inbox.cursors, Window: a.inbox.windows(),
	}
	a.log.add(KindContinued, "", nil)
	next := journal.Append{
		Stream: StreamOf(a.chain, a.generation+1),
		Events: []journal.Event{{Kind: KindStarted, Time: now(), Data: mustEncode(started)}},
	}
	if err := a.flush(next); err != nil {
		a.fail(err)
	}
	a.generation++
	a.flow = flow
	a.facts = newFacts()
	a.inbox.received = map[string]int{}
	a.log = logTail{stream: next.Stream, next: 1}
	return data
}

// end records the end of the execution and leaves.
func (a *activation) end(output any, failure error) {
	a.checkFinished("the end of the flow")
	if a.rehearsal != nil {
		a.leave(causeFrontier, nil)
	}
	ended := Ended{State: Completed}
	if failure != nil {
		ended.State = Failed
		ended.Fault = outcomeOf(nil, failure).fault
		a.rt.config.Log.Warn("execution failed", "execution", a.chain, "code", ended.Fault)
	} else if out := outcomeOf(output, nil); out.fault != "" {
		ended.State, ended.Fault = Failed, out.fault
	} else {
		ended.Output = out.value
	}
	a.log.add(KindEnded, "", mustEncode(ended))
	a.log.rows = append(a.log.rows, endRows(a.principal, a.chain, a.parent, a.flow.Name, ended.State)...)
	a.rt.mu.Lock()
	a.ending = true // before a reader can know of the end: what they send then is refused
	a.rt.mu.Unlock()
	if err := a.flush(); err != nil {
		a.fail(err)
	}
	a.leave(causeEnded, nil)
}

// checkFinished is the last check of a generation: everything on record was
// asked for, and no step is outstanding.
func (a *activation) checkFinished(what string) {
	a.checkStopped()
	if len(a.steps) > 0 {
		a.leave(causeStuck, fmt.Errorf("%w: %s while a step is not awaited", ErrPanic, what))
	}
	if id, f := a.facts.next(); f != nil {
		a.diverge(id, f.String(), what)
	}
}

// flush makes everything in the buffer durable, with more writes beside it.
func (a *activation) flush(more ...journal.Append) error {
	if len(a.log.buffer) == 0 && len(more) == 0 {
		return nil
	}
	batch := append([]journal.Append{a.log.write()}, more...)
	if err := a.rt.config.Store.Append(context.WithoutCancel(a.ctx), batch...); err != nil {
		return err
	}
	a.log.written()
	return nil
}

// fence flushes, and leaves if that fails: nothing that a flow does after a
// fence rests on facts that are not durable.
func (a *activation) fence() {
	if err := a.flush(); err != nil {
		a.fail(err)
	}
}

// logTail is the end of a generation's log: where it stands on the disk, and
// the facts that wait to be written. One append is in flight at a time (K1),
// since the flow's goroutine makes them itself.
type logTail struct {
	stream string
	next   journal.Seq // durable
	buffer []journal.Event
	rows   []journal.Row
}

// add puts an event into the buffer and returns its sequence.
func (l *logTail) add(kind, id string, data []byte) journal.Seq {
	l.buffer = append(l.buffer, journal.Event{Kind: kind, ID: id, Time: now(), Data: data})
	return l.next + journal.Seq(len(l.buffer)) - 1
}

func (l *logTail) write() journal.Append {
	return journal.Append{Stream: l.stream, Expect: l.next, Events: l.buffer, Rows: l.rows}
}

func (l *logTail) written() {
	l.next += journal.Seq(len(l.buffer))
	l.buffer, l.rows = nil, nil
}
