package metrics

import (
	"context"
	"errors"

	"github.com/parley-run/parley/model"
)

// What calls of a model come to, beside its failures.
const (
	outcomeWhole       = "whole"       // a whole reply
	outcomeInterrupted = "interrupted" // somebody cut in, or stopped it
	outcomeStopped     = "stopped"     // the server stopped, or the conversation
)

// modelFailures are the failures of a model, in the words of a label.
var modelFailures = []struct {
	err     error
	outcome string
}{
	{model.ErrCut, "cut"},
	{model.ErrMalformed, "malformed"},
	{model.ErrRefused, "refused"},
	{model.ErrUnavailable, "unavailable"},
	{model.ErrRateLimited, "rate-limited"},
	{model.ErrOverflow, "overflow"},
	{model.ErrTimeout, "timeout"},
	{context.Canceled, outcomeStopped},
}

// modelOutcomes are all values of the label.
var modelOutcomes = func() []string {
	all := []string{outcomeWhole, outcomeInterrupted, other}
	for _, failure := range modelFailures {
		all = append(all, failure.outcome)
	}
	return all
}()

// outcomeOf says what a call came to. Nothing of the error's text is in it.
func outcomeOf(err error) string {
	if err == nil {
		return outcomeWhole
	}
	if _, ok := errors.AsType[*model.InterruptedError](err); ok {
		return outcomeInterrupted
	}
	for _, failure := range modelFailures {
		if errors.Is(err, failure.err) {
			return failure.outcome
		}
	}
	return other
}
