package lease

import (
	"fmt"
	"strings"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/fault"
)

// The errors of the registry; their codes are those of L-28.7. An outcome that
// is not known is [body.ErrUnknown].
var (
	// ErrBusy says that somebody has the resource. A [BusyError] has the details.
	ErrBusy = fault.New("busy", "the resource is taken")

	// ErrStale says that a token or an incarnation is not the present one, and
	// nothing of the one that is (L-5.7).
	ErrStale = body.ErrStale

	// ErrRecoveryRequired says that the claim is blocked until its body is proved
	// to have ended.
	ErrRecoveryRequired = fault.New("recovery_required", "the claim is blocked until its body is proved to have ended")

	// ErrExpired says that the deadline of the claim has passed: it begins
	// nothing any more, and nothing revives it (L-8.4).
	ErrExpired = fault.New("expired", "the deadline of the claim has passed")

	// ErrDenied says that the caller lacks the grant, or is not who may ask this.
	ErrDenied = fault.New("denied", "not granted")

	// ErrUnknownResource says that the agent has no such part (L-2.7).
	ErrUnknownResource = fault.New("unknown_resource", "no such resource")

	// ErrStoreUnavailable says that the registry cannot write, or was closed.
	// Nothing is freed by that (L-7.3).
	ErrStoreUnavailable = fault.New("store_unavailable", "the registry cannot write")

	// ErrProofUnavailable says that nothing proves that the body has ended, so
	// the claim stays (L-15.6). A [BlockedError] says what blocks.
	ErrProofUnavailable = fault.New("proof_unavailable", "nothing proves that the body has ended")

	// ErrLimit says that a bound is reached or an argument is outside of it.
	ErrLimit = fault.New("limit", "outside of the limits")

	// ErrNoRequest says that there is no such request of this conversation.
	ErrNoRequest = fault.New("not found", "no such request")
)

// Action is what a caller that met a conflict may do about it.
type Action string

// ActionQueue is to be woken when the present incarnation has ended (L-20).
const ActionQueue Action = "queue"

// BusyError is the typed answer to a conflict (L-19): these fields, and nothing
// else of the other conversation. It is an [ErrBusy].
type BusyError struct {
	Resource    Resource         `json:"resource"`
	Owner       string           `json:"owner,omitzero"` // conversation id; "" where the record is damaged
	State       State            `json:"state"`
	Incarnation body.Incarnation `json:"incarnation"`
	Actions     []Action         `json:"actions"` // those that the caller may use (L-19.3)
}

// Error names the resource and its state.
func (e *BusyError) Error() string { return fmt.Sprintf("%s is %s", e.Resource, e.State) }

// Is makes errors.Is(err, ErrBusy) hold.
func (e *BusyError) Is(target error) bool { return target == error(ErrBusy) }

// FaultCode returns the code of [ErrBusy].
func (e *BusyError) FaultCode() string { return ErrBusy.Code }

// BlockedError says why a stop or a recovery left the claim where it was
// (L-6.4). It is an [ErrProofUnavailable].
type BlockedError struct {
	Operations []string // that are active in this process (L-9.8)
	Stopping   bool     // another stop of the body is under way
	Check      error    // why the stop-check gave no evidence, nil if it was not asked
}

// Error says what blocks, in ids of the registry's own; what the adapter said
// may hold more, and is left to those who unwrap it.
func (e *BlockedError) Error() string {
	switch {
	case len(e.Operations) > 0:
		return "still blocked by operations: " + strings.Join(e.Operations, ", ")
	case e.Stopping:
		return "still blocked by another stop"
	}
	return "still blocked: the stop-check did not confirm an end"
}

// Is makes errors.Is(err, ErrProofUnavailable) hold, and [body.ErrPinned] where
// something pins the body.
func (e *BlockedError) Is(target error) bool {
	pinned := len(e.Operations) > 0 || e.Stopping
	return target == error(ErrProofUnavailable) || pinned && target == error(body.ErrPinned)
}

// Unwrap returns what the adapter said.
func (e *BlockedError) Unwrap() error { return e.Check }

// FaultCode returns the code of [ErrProofUnavailable].
func (e *BlockedError) FaultCode() string { return ErrProofUnavailable.Code }
