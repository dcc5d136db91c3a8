package kernel

import (
	"fmt"

	"github.com/parley-run/parley/fault"
)

var (
	// ErrNotFound says that no such execution exists.
	ErrNotFound = fault.New("NOT_FOUND", "no such execution")

	// ErrForbidden says that the access policy refuses the operation to the caller (C-7).
	ErrForbidden = fault.New("FORBIDDEN", "the access policy refuses this operation")

	// ErrEnded says that the execution is over and takes no message (C-4.9).
	ErrEnded = fault.New("ENDED", "the execution is over")

	// ErrInvalid says that an argument is outside its bounds; the wrapping text says which.
	ErrInvalid = fault.New("INVALID", "invalid argument")

	// ErrClosed says that the runtime was closed, or failed with its store.
	ErrClosed = fault.New("RUNTIME_CLOSED", "the runtime is closed")

	// ErrDivergence says that a re-run asked for something other than what its
	// log holds (C-4.12). A [DivergenceError] has the details.
	ErrDivergence = fault.New("DIVERGENCE", "a re-run differs from its log")

	// ErrDenied is the failure of a step whose effect the execution's principal
	// has no grant for (C-4.17).
	ErrDenied = fault.New("DENIED", "the effect is not granted")

	// ErrOutcomeUnknown is the failure of a Once step that was cut between its
	// request and its result (C-6.6).
	ErrOutcomeUnknown = fault.New("OUTCOME_UNKNOWN", "the step was cut, its outcome is unknown")

	// ErrPanic is the recorded outcome of a decider or an effect that panicked,
	// or whose result has no JSON form.
	ErrPanic = fault.New("PANIC", "a decider or an effect panicked")

	// ErrTooLarge says that a payload, a carry or a fact exceeds its limit.
	ErrTooLarge = fault.New("TOO_LARGE", "larger than the kernel takes")
)

// DivergenceError says where a re-run left its log. It is an [ErrDivergence].
type DivergenceError struct {
	ID       string // of the fact, "" at the end of the flow
	Recorded string // what the log holds there
	Asked    string // what the flow did instead
}

// Error names the place and both sides; it holds ids and hashes, no payload.
func (e *DivergenceError) Error() string {
	return fmt.Sprintf("divergence at %q: recorded %s, asked %s", e.ID, e.Recorded, e.Asked)
}

// Is makes errors.Is(err, ErrDivergence) hold.
func (e *DivergenceError) Is(target error) bool { return target == error(ErrDivergence) }

// FaultCode returns the code of [ErrDivergence].
func (e *DivergenceError) FaultCode() string { return ErrDivergence.Code }
