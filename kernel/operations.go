package kernel

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/parley-run/parley/journal"
)

// step is a started step.
type step struct {
	activation *activation
	id         string
	effect     Effect
	input      jsontext.Value
	ctx        context.Context
	again      bool
	launched   bool
	settled    bool
	fact       *fact
}

// settlement is the result of an effect on its way to the flow's goroutine.
type settlement struct {
	step    *step
	outcome outcome
}

// decide serves or makes the decision id.
func (a *activation) decide(c *Context, id string, source Source, decider func(context.Context) (any, error)) outcome {
	a.checkStopped()
	if f := a.facts.byID[id]; f != nil {
		a.match(id, f, factDecision, string(source), "")
		return a.serve(f)
	}
	a.checkQuiet("Decide")
	if slices.Contains(a.open, id) {
		panic(fmt.Sprintf("kernel: decision %q inside itself", id))
	}
	asked := describe(factDecision, string(source), "")
	if next, f := a.facts.next(); f != nil && (f.in == "" || f.in == a.innermost()) {
		a.diverge(next, f.String(), asked+" under id "+id) // what is on record does not lie beneath this decision
	} else if f == nil && a.rehearsal != nil {
		a.frontier("would decide " + id)
	}

	depth := len(a.open)
	a.open = append(a.open, id)
	value, err := a.runDecider(c, id, decider)
	a.open = a.open[:depth]
	a.checkStopped() // a decider that was cut decides nothing
	a.checkQuiet("the end of a decision")
	if next, f := a.facts.next(); f != nil {
		a.diverge(next, f.String(), asked+" under id "+id)
	}

	a.rehearsed("would decide " + id)

	out := outcomeOf(value, err)
	seq := a.log.add(KindDecided, id, mustEncode(Decided{Source: source, Value: out.value, Fault: out.fault, In: a.innermost()}))
	a.facts.forgetBeneath(id)
	a.facts.add(id, &fact{
		kind: factDecision, detail: string(source), in: a.innermost(),
		settled: true, seq: seq, freed: true, served: true,
	})
	return out
}

// runDecider calls a decider. A panic is its outcome; a Goexit, by which the
// Context leaves, passes through.
func (a *activation) runDecider(c *Context, id string, decider func(context.Context) (any, error)) (value any, err error) {
	defer func() {
		if r := recover(); r != nil {
			a.rt.config.Log.Error("a decider panicked", "execution", a.chain, "id", id, "panic", panicText(r))
			value, err = nil, ErrPanic
		}
	}()
	return decider(c.contextFor(Step{Execution: a.chain, ID: id}))
}

// startStep serves or asks for the step id.
func (a *activation) startStep(c *Context, id string, effectID EffectID, input any) *step {
	a.checkStopped()
	data, hash, err := inputOf(effectID, input)
	if err != nil {
		a.leave(causeStuck, fmt.Errorf("input of step %q: %w", id, err))
	}
	if slices.ContainsFunc(a.steps, func(s *step) bool { return s.id == id }) {
		panic(fmt.Sprintf("kernel: step %q was started twice", id))
	}
	effect, registered := a.rt.effects[effectID]
	if !registered {
		effect = Effect{ID: effectID, Mode: Once} // an effect that is gone can at most be served
	}
	info := Step{Execution: a.chain, ID: id}
	if canonical, ok := input.(Canonical); ok {
		info.Input = canonical.Value
	}
	s := &step{activation: a, id: id, effect: effect, input: data, ctx: c.contextFor(info)}
	if f := a.facts.byID[id]; f != nil {
		a.restart(s, f, hash)
	} else if registered || a.rehearsal != nil {
		a.request(s, hash)
	} else {
		a.leave(causeStuck, fmt.Errorf("%w: effect %q is not registered", errStuck, effectID))
	}
	a.steps = append(a.steps, s)
	return s
}

// restart takes up a step that the log knows.
func (a *activation) restart(s *step, f *fact, hash string) {
	s.fact, s.again = f, true
	switch {
	case f.settled && (f.outcome.fault == "" || s.effect.Mode == Once):
		a.match(s.id, f, factStep, string(s.effect.ID), hash)
		a.facts.met(f)
		s.settled = true
	case s.effect.Mode == Once:
		a.match(s.id, f, factStep, string(s.effect.ID), "")
		a.facts.met(f)
		a.rehearsed("would settle step " + s.id + " as unknown")
		a.record(settlement{s, outcome{fault: ErrOutcomeUnknown.Code}})
	default:
		a.match(s.id, f, factStep, string(s.effect.ID), "")
		a.facts.met(f)
	}
}

// request records that a new step is asked for.
func (a *activation) request(s *step, hash string) {
	asked := describe(factStep, string(s.effect.ID), hash)
	if next, f := a.facts.next(); f != nil {
		a.diverge(next, f.String(), asked+" under id "+s.id)
	}
	a.rehearsed("would run effect " + string(s.effect.ID) + " as step " + s.id)
	s.fact = &fact{kind: factStep, detail: string(s.effect.ID), hash: hash, in: a.innermost(), served: true}
	a.facts.add(s.id, s.fact)
	a.log.add(KindRequested, s.id, mustEncode(Requested{Effect: s.effect.ID, Hash: hash, In: s.fact.in}))
}

// await waits until the step is settled, recording the results that come in
// meanwhile. Results are durable at the latest when the flow waits again.
func (a *activation) await(s *step) outcome {
	a.checkStopped()
	for !s.settled {
		a.launch()
		select {
		case result := <-a.settled:
			a.record(result)
		case <-a.stop:
			a.leave(causeStopped, nil)
		}
	}
	a.steps = slices.DeleteFunc(a.steps, func(other *step) bool { return other == s })
	return a.serve(s.fact)
}

// launch begins the effects of the started steps, after a fence (C-6.5).
func (a *activation) launch() {
	a.fence()
	for _, s := range a.steps {
		if s.launched || s.settled {
			continue
		}
		s.launched = true
		a.rehearsed("would run effect " + string(s.effect.ID) + " again as step " + s.id)
		a.effects.Add(1)
		go a.perform(s)
	}
}

// perform is an effect's goroutine.
func (a *activation) perform(s *step) {
	defer a.effects.Done()
	out := outcome{fault: ErrPanic.Code} // stays if the effect calls Goexit
	defer func() {
		if r := recover(); r != nil { // of the host's own: Granted, or Retry.Wait
			a.rt.config.Log.Error("a step panicked", "execution", a.chain, "id", s.id, "panic", panicText(r))
		}
		select {
		case a.settled <- settlement{s, out}:
		case <-a.over:
		}
	}()
	info, _ := StepFrom(s.ctx)
	info.Again = s.again
	out = a.rt.perform(s.ctx, s.effect, info, s.input)
}

// record puts a result into the log. What an effect returned after its context
// ended is no result: the step was cut.
func (a *activation) record(r settlement) {
	a.checkStopped()
	r.step.settled = true
	seq := a.log.add(KindSettled, r.step.id, mustEncode(Settled{Value: r.outcome.value, Fault: r.outcome.fault, In: r.step.fact.in}))
	r.step.fact.settle(r.outcome, seq)
}

// receive serves or waits for the topic's next message.
func (a *activation) receive(topic string) jsontext.Value {
	a.checkStopped()
	a.checkQuiet("Receive")
	if len(a.open) > 0 {
		panic("kernel: Receive inside a decision")
	}
	id := a.inbox.nextID(topic)
	if f := a.facts.byID[id]; f != nil {
		a.match(id, f, factConsumed, topic, "")
		return a.serve(f).value
	}
	if next, f := a.facts.next(); f != nil {
		a.diverge(next, f.String(), describe(factConsumed, topic, ""))
	}
	a.rehearsed("waits for a message on " + topic)
	for {
		consumed, ok, err := a.inbox.next(a, topic)
		if err != nil {
			a.fail(err)
		}
		if ok {
			seq := a.log.add(KindConsumed, id, mustEncode(consumed))
			a.inbox.consume(consumed)
			a.taken.Store(int64(consumed.Cursor))
			a.facts.add(id, &fact{kind: factConsumed, detail: topic, settled: true, seq: seq, freed: true, served: true})
			return consumed.Message.Payload
		}
		a.fence()
		a.park()
	}
}

// park waits hot, or goes cold for good.
func (a *activation) park() {
	a.rt.parked(a)
	for {
		select {
		case <-a.wake:
			a.inbox.unread = true
			a.rt.unparked(a)
			return
		case <-a.poke:
			if a.rt.suspend(a) {
				a.leave(causeSuspended, nil)
			}
		case <-a.stop:
			a.leave(causeStopped, nil)
		}
	}
}

// match leaves with a divergence unless the ask is the recorded one. An empty
// hash is not compared.
func (a *activation) match(id string, f *fact, kind factKind, detail, hash string) {
	if f.kind != kind || f.detail != detail || (hash != "" && f.hash != hash) {
		a.diverge(id, f.String(), describe(kind, detail, hash))
	}
}

// serve gives the outcome of a fact. Its bytes are let go after the first
// time, so that a hot execution does not hold its whole log; asked again, they
// are read back.
func (a *activation) serve(f *fact) outcome {
	a.facts.met(f)
	if !f.freed {
		out := f.outcome
		f.outcome, f.freed = outcome{fault: out.fault}, true
		return out
	}
	a.fence()
	out, err := a.reread(f)
	if err != nil {
		a.fail(err)
	}
	return out
}

// reread fetches a fact's outcome from the log.
func (a *activation) reread(f *fact) (outcome, error) {
	events, err := a.rt.config.Store.ReadRange(context.WithoutCancel(a.ctx), a.log.stream, f.seq, 1, journal.Forward)
	if err != nil {
		return outcome{}, err
	}
	if len(events) == 0 || events[0].Seq != f.seq {
		return outcome{}, errors.New("a recorded fact is missing from the journal")
	}
	again := newFacts()
	again.byID[events[0].ID] = &fact{kind: factStep} // for a result, whose request is elsewhere
	if _, err := again.load(events[0]); err != nil {
		return outcome{}, err
	}
	return again.byID[events[0].ID].outcome, nil
}

// checkQuiet guards the order of facts: between starting and awaiting steps a
// flow only starts more (K7).
func (a *activation) checkQuiet(what string) {
	if len(a.steps) > 0 {
		panic("kernel: " + what + " while a step is not awaited")
	}
}

// innermost is the decision that is being made, "" where there is none.
func (a *activation) innermost() string {
	if len(a.open) == 0 {
		return ""
	}
	return a.open[len(a.open)-1]
}

// rehearsed ends a rehearsal that would do something new.
func (a *activation) rehearsed(would string) {
	if a.rehearsal != nil {
		a.frontier(would)
	}
}

func (a *activation) frontier(would string) {
	a.rehearsal.Would = would
	a.cause = causeFrontier
	runtime.Goexit()
}
