package agent

import (
	"log/slog"
	"time"
)

// ModelCall is a call of a model that has ended: one attempt, so that a call
// which is tried again is told of each time.
type ModelCall struct {
	// Err is nil after a whole reply, a model's InterruptedError after one that was
	// cut from outside, else what went wrong: one of the model's errors, or that of
	// the context where the execution stops. Its text may hold what a vendor said.
	Err error

	Took time.Duration
}

// tellOf tells the hook, if there is one, of a call that began at a time and has
// ended. A hook that panics stops nothing.
func tellOf(hook func(ModelCall), log *slog.Logger, began time.Time, err error) {
	if hook == nil {
		return
	}
	defer func() {
		if recover() != nil {
			log.Error("the hook of model calls panicked")
		}
	}()
	hook(ModelCall{Err: err, Took: time.Since(began)})
}
