package kernel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/jsontext"
	"errors"
	"fmt"

	"github.com/parley-run/parley/identity"
)

// EffectID names an effect, such as "model" or "tool.clock".
type EffectID string

// Mode says what a crash between a step's request and its result means.
type Mode int

const (
	// Once is the default: the effect is never run a second time; the step
	// fails with [ErrOutcomeUnknown].
	Once Mode = iota
	// Repeatable effects are run again.
	Repeatable
)

// Effect is something in the world that a flow can ask for by its id.
type Effect struct {
	ID    EffectID
	Mode  Mode
	Retry Retry // Repeatable effects only

	// Run does it. The result is encoded as JSON; of an error only the code is
	// recorded (package fault). ctx ends when the execution is cancelled or the
	// runtime closes; what comes later than 5 s after that is dropped.
	// [StepFrom] tells which step this is.
	Run func(ctx context.Context, input jsontext.Value) (any, error)
}

// Retry is an effect's own policy for failures (C-6.8). The zero Retry never
// tries again.
type Retry struct {
	Attempts int // in all

	// Wait waits after the attempt-th failure (from 1), and reports whether to try
	// again. It returns soon when ctx is done; nil never tries again.
	Wait func(ctx context.Context, attempt int, err error) (again bool)
}

// Step tells an effect, or a decider, for whom it runs.
type Step struct {
	Execution string // chain id
	ID        string // of the step or decision
	Again     bool   // an earlier run of this step may have happened, in another process too
	Attempt   int    // of an effect: from 1, within this run; 0 in a decider
	Input     any    // of an effect that was started with a Canonical: its Value; nil otherwise

	activation *activation
}

// Runtime returns the runtime that the step runs on, by which an effect starts
// executions of its own.
func (s Step) Runtime() *Runtime { return s.activation.rt }

// Principal returns the recorded principal of the execution (C-4.3), and false
// where nobody started it.
func (s Step) Principal() (identity.Identity, bool) {
	if s.activation == nil || s.activation.principal == nil {
		return identity.Identity{}, false
	}
	return *s.activation.principal, true
}

type stepKey struct{}

// StepFrom returns the step on whose behalf ctx was made, and false outside of
// effects and deciders.
func StepFrom(ctx context.Context) (Step, bool) {
	step, ok := ctx.Value(stepKey{}).(Step)
	return step, ok
}

func newEffects(list []Effect) (map[EffectID]Effect, error) {
	all := make(map[EffectID]Effect, len(list))
	for _, effect := range list {
		if effect.ID == "" || effect.Run == nil {
			return nil, errors.New("an effect needs an id and a function")
		}
		if _, ok := all[effect.ID]; ok {
			return nil, fmt.Errorf("effect %q is registered twice", effect.ID)
		}
		if effect.Mode == Once && effect.Retry.Attempts > 1 {
			return nil, fmt.Errorf("effect %q runs once and cannot have retries", effect.ID)
		}
		all[effect.ID] = effect
	}
	return all, nil
}

// Canonical is a step's input that its maker has already put into the form of
// RFC 8785, so that a large one is not taken apart again. The kernel takes the
// maker's word. Value is what the JSON says, for the effect to find in its
// [Step]; neither side may change it from then on.
type Canonical struct {
	JSON  []byte
	Value any
}

// inputOf encodes a step's input, and gives its fingerprint: SHA-256 over the
// effect's id, a line feed, and the RFC 8785 form of the input.
func inputOf(effect EffectID, input any) (data jsontext.Value, hash string, err error) {
	if canonical, ok := input.(Canonical); ok {
		if len(canonical.JSON) > MaxPayloadBytes {
			return nil, "", ErrTooLarge
		}
		return canonical.JSON, hashOf(effect, canonical.JSON), nil
	}
	if data, err = encode(input); err != nil {
		return nil, "", err
	}
	canonical := data.Clone()
	if err := canonical.Canonicalize(); err != nil {
		return nil, "", fmt.Errorf("%w: no canonical form: %w", ErrPanic, err)
	}
	return data, hashOf(effect, canonical), nil
}

func hashOf(effect EffectID, canonical []byte) string {
	h := sha256.New()
	h.Write([]byte(effect))
	h.Write([]byte{'\n'})
	h.Write(canonical)
	return hex.EncodeToString(h.Sum(nil))
}

// perform runs an effect to its end: grant, attempts, waits, panics.
func (rt *Runtime) perform(ctx context.Context, effect Effect, step Step, input jsontext.Value) (out outcome) {
	if !rt.granted(step.activation.principal, effect.ID) {
		return outcome{fault: ErrDenied.Code}
	}
	for step.Attempt = 1; ; step.Attempt++ {
		value, err := runGuarded(context.WithValue(ctx, stepKey{}, step), effect, input)
		if err == nil || step.Attempt >= effect.Retry.Attempts || effect.Retry.Wait == nil || ctx.Err() != nil {
			return outcomeOf(value, err)
		}
		if !effect.Retry.Wait(ctx, step.Attempt, err) || ctx.Err() != nil {
			return outcomeOf(nil, err)
		}
	}
}

// runGuarded turns a panic, or a Goexit, of the effect into an error.
func runGuarded(ctx context.Context, effect Effect, input jsontext.Value) (value any, err error) {
	defer func() {
		if r := recover(); r != nil {
			value, err = nil, fmt.Errorf("%w: %s", ErrPanic, panicText(r))
		}
	}()
	return effect.Run(ctx, input)
}
