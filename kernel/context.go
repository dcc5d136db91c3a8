package kernel

import (
	"context"
	"encoding/json/jsontext"
	"fmt"

	"github.com/parley-run/parley/identity"
)

// Context is how a flow meets the world. It is not a context.Context, so that
// doing I/O in a flow does not compile. An operation on a stopped execution
// (cancelled, gone cold, diverged, its runtime closed) does not return: the
// goroutine ends, and its deferred calls run.
type Context struct {
	activation *activation
	decorate   func(context.Context) context.Context
}

// With returns a Context of the same execution whose deciders and effects see
// their context.Context decorated.
func (c *Context) With(decorate func(context.Context) context.Context) *Context {
	outer := c.decorate
	return &Context{activation: c.activation, decorate: func(ctx context.Context) context.Context {
		if outer != nil {
			ctx = outer(ctx)
		}
		return decorate(ctx)
	}}
}

// Execution returns the chain id of the execution.
func (c *Context) Execution() string { return c.activation.chain }

// Generation returns the number of the generation, from 0.
func (c *Context) Generation() int { return c.activation.generation }

// Principal returns the recorded principal (C-4.3), and false where nobody
// started the execution.
func (c *Context) Principal() (identity.Identity, bool) {
	if c.activation.principal == nil {
		return identity.Identity{}, false
	}
	return *c.activation.principal, true
}

// Decide records one value under id and serves it from then on (C-6.1). The
// decider is called only while no value is on record; a crash between call and
// record calls it again. It may use the Context: what is recorded beneath it
// is met again by a re-run only until the decision itself is on record
// (C-6.14). An error is recorded as its fault code; a panic as [ErrPanic].
//
// The value is decoded from its recorded form even when it is new. It is
// durable before the next effect begins or the execution waits, and not before
// Decide returns.
func (c *Context) Decide[T any](id string, source Source, decide func(context.Context) (T, error)) (T, error) {
	out := c.activation.decide(c, id, source, func(ctx context.Context) (any, error) { return decide(ctx) })
	var value T
	err := out.decode(&value)
	return value, err
}

// Execute runs the effect as a step and returns its result: a Start and an
// Await.
func (c *Context) Execute[T any](id string, effect EffectID, input any) (T, error) {
	return c.Start[T](id, effect, input).Await()
}

// Start asks for a step without waiting for it. Until the started steps are
// awaited a flow may only start more. Their requests are durable before the
// first of their effects begins (C-6.5).
//
// A result on record is served, a failure only if the effect is Once; what was
// cut is run again, or fails with [ErrOutcomeUnknown], as the effect's mode
// says (C-6.6, C-6.7). A denial is [ErrDenied].
func (c *Context) Start[T any](id string, effect EffectID, input any) *Pending[T] {
	return &Pending[T]{step: c.activation.startStep(c, id, effect, input)}
}

// Pending is a step that was started.
type Pending[T any] struct{ step *step }

// Await waits for the step's result.
func (p *Pending[T]) Await() (T, error) {
	out := p.step.activation.await(p.step)
	var value T
	err := out.decode(&value)
	return value, err
}

// Load brings back what the flow needs and its log need not hold: something that
// is the same whenever it is asked for, such as what stands in another log.
// Nothing of it is recorded, and each run of the flow loads it again. An error
// leaves the execution stuck until its next wake.
func (c *Context) Load[T any](load func(context.Context) (T, error)) T {
	a := c.activation
	a.checkStopped()
	a.checkQuiet("Load")
	value, err := load(c.contextFor(Step{Execution: a.chain}))
	a.checkStopped()
	if err != nil {
		a.leave(causeStuck, fmt.Errorf("load: %w", err))
	}
	return value
}

// Receive returns the payload of the topic's next message, and waits for one
// if there is none (C-5.6 to C-5.10). The payload is hostile JSON of at most
// [MaxPayloadBytes]; neither sender nor message id comes with it.
func (c *Context) Receive(topic string) jsontext.Value {
	return c.activation.receive(topic)
}

// contextFor is what a decider or an effect of this Context sees.
func (c *Context) contextFor(step Step) context.Context {
	step.activation = c.activation
	ctx := context.WithValue(c.activation.ctx, stepKey{}, step)
	if c.decorate != nil {
		ctx = c.decorate(ctx)
	}
	return ctx
}

// panicText describes a recovered value without the text of anybody: runtime
// errors are the program's own, anything else is named by its type.
func panicText(r any) string {
	if err, ok := r.(interface {
		error
		RuntimeError()
	}); ok {
		return err.Error()
	}
	return fmt.Sprintf("panic with a %T", r)
}
