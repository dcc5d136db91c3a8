package agent

import (
	"cmp"
	"context"
	"errors"

	"github.com/parley-run/parley/fault"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
	"github.com/parley-run/parley/tool"
)

// perform makes one call within its time. Whatever becomes of it is a value, so
// that a re-run is served it and takes the same way; the error behind it is for
// the operator.
func (d Definition) perform(
	ctx context.Context, id kernel.EffectID, mode kernel.Mode, origin taint.Origin, run func(context.Context) (Result, error),
) Did {
	call, cancel := context.WithTimeout(ctx, cmp.Or(d.ToolTimeout, DefaultToolTimeout))
	defer cancel()
	answer := make(chan Result, 1)
	err := guarded(call, func() error {
		result, err := run(call)
		answer <- result
		return err
	})
	if err == nil {
		result := <-answer
		text := cut(scrub(result.Text), resultCut)
		return Did{Text: taint.Tainted(text, cmp.Or(result.Origin, origin)), Failed: result.Failed}
	}
	if ctx.Err() != nil { // the execution stops here; what is recorded comes of the next run
		return failed(mode, err, false)
	}
	step, _ := kernel.StepFrom(ctx)
	d.log().Warn("a tool failed", "effect", string(id), "execution", step.Execution, "step", step.ID, "code", fault.CodeOf(err))
	Report(ctx, id, err)
	return failed(mode, err, errors.Is(call.Err(), context.DeadlineExceeded))
}

// failed is what the model is told of a call that ended with an error. One that
// was cut in the middle may have acted (T59).
func failed(mode kernel.Mode, err error, late bool) Did {
	late = late || errors.Is(err, context.DeadlineExceeded)
	switch {
	case errors.Is(err, tool.ErrAbsent):
		return told(tellAbsent)
	case mode == kernel.Once && (late || errors.Is(err, kernel.ErrOutcomeUnknown)):
		return told(tellUnknown)
	case late:
		return told(tellTimeout)
	}
	return told(tellFailed)
}
