package kernel

import (
	"context"
	"errors"
	"fmt"
)

// Rehearsal is what a re-run without writes came to.
type Rehearsal struct {
	Generation int
	Ended      bool   // the generation is over in the log
	Would      string // what the flow would do next, for a person; "" if it came to its end

	cut bool // it ended from outside, or failed: at a place that the flow did not choose
}

// Rehearse re-runs one generation from its log. It writes nothing and runs no
// effect: where the flow would do something new it stops, which is success.
// Only a decider whose decision was cut half way is called. A re-run that
// differs from the log is a [DivergenceError]; so is one that would go on where
// the log says that it was completed or continued. A cancelled or failed
// execution may have ended before anything that the flow would do.
func (rt *Runtime) Rehearse(ctx context.Context, chain string, generation int) (Rehearsal, error) {
	a := rt.newActivation(chain)
	a.rehearsal = &Rehearsal{Generation: generation}
	go func() {
		defer close(a.done)
		defer a.cancel()
		input, err := a.loadGeneration(ctx, generation)
		if err != nil {
			a.fail(err)
		}
		a.run(input)
	}()
	<-a.done
	switch a.cause {
	case causeFrontier:
		if a.rehearsal.Ended && !a.rehearsal.cut && a.rehearsal.Would != "" {
			return *a.rehearsal, fmt.Errorf("%w: the log is over, but the flow %s", ErrDivergence, a.rehearsal.Would)
		}
		return *a.rehearsal, nil
	case causeStuck, causeStore:
		return *a.rehearsal, a.err
	}
	return *a.rehearsal, errors.New("the re-run was cut")
}
