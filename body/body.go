// Package body is what an adapter of the agent's body is: the part that acts on
// one resource, a browser or a voice, and can see that it has stopped.
//
// Write an [Adapter], hold it against package bodytest, and hand it to the
// registry of package lease, which alone calls it. body/sim has one whose world
// is simulated, with faults on demand.
//
// An adapter promises to name the life that it speaks of, to ask before it
// touches anything, and never to guess: a call that was cut is not a call that
// has ended, and a body that is not heard of is not a body that is gone.
package body

import (
	"context"
	"encoding/json/jsontext"

	"github.com/parley-run/parley/fault"
)

// Incarnation names one life of one claim on a resource, from acquisition to
// release (L-5.6). It is never used again and is no secret; adapters only
// compare it.
type Incarnation string

// Adapter acts on one resource and sees what becomes of it. Its methods may be
// called from any number of goroutines. Each returns soon after its ctx is
// done, and leaves nothing running that would act on behalf of the call, except
// where it says so by its error.
type Adapter interface {
	// Attach hands the adapter its host, once, before anything else is called.
	// It returns at once and calls nothing of the host.
	Attach(Host)

	// Perform carries out one effect. It calls e.Begin at the last moment before
	// it touches the body, after every queue and every wait of its own, and touches
	// nothing if that refuses (L-4.2, L-8.8, L-13.3); the error then wraps that of
	// Begin. It never carries an effect out twice (L-9.6).
	//
	// A nil error says that the effect was carried out and that nothing of the
	// call acts any more. So does [ErrRefused], with no effect at all: the action or
	// its input is not acceptable, or the body says no. Any other error says that
	// the outcome is not known, a ctx that ended included. A cut call whose end is
	// observed later is told to [Host.Settled].
	Perform(ctx context.Context, e Effect) (jsontext.Value, error)

	// Stop ends what is left of one life, and touches no other. It calls guard
	// at its last remote step and touches nothing if that refuses (L-11.10). A life
	// that is over already is no error. When Stop has returned, nothing of the
	// call acts any more; whether the body has ended is not for it to say.
	Stop(ctx context.Context, of Life, guard func(context.Context) error) error

	// Check observes, and touches nothing. It returns evidence only if nothing of
	// exactly this life acts or can act again, whatever other life there is now;
	// [ErrAlive] if something does, and another error if it cannot be known. What
	// the process has forgotten is no evidence, a new process forgets everything
	// (L-11.11).
	Check(ctx context.Context, of Life) (Evidence, error)
}

// Effect is one operation that was reserved and is to be carried out.
type Effect struct {
	Incarnation Incarnation
	Operation   string // its id, never used again
	Number      int    // of the operation within the incarnation, from 1

	Action string         // what to do, a word of the adapter's
	Input  jsontext.Value // may come from a model: the adapter checks it

	// Begin asks whether the effect may begin now: whether the claim, its deadline
	// and the grants still hold. It is called once.
	Begin func(context.Context) error

	// Note puts a reference to the body on record, such as a process and its start
	// time, before the body exists or right after; Stop and Check are handed
	// the newest, also after a restart (L-3.6). It is durable when Note returns,
	// and has at most [MaxReferenceBytes].
	Note func(context.Context, jsontext.Value) error
}

// MaxReferenceBytes is the largest reference that [Effect.Note] takes.
const MaxReferenceBytes = 4 << 10

// Life is one incarnation as the registry knows it, for those who are to end
// it or to look after it.
type Life struct {
	Incarnation Incarnation
	Begun       int            // operations of it that began, or may have
	Unsettled   []string       // operations whose outcome is not known
	Reference   jsontext.Value // what was last noted, nil if nothing was
}

// Evidence says how an adapter knows that a life is over.
type Evidence struct {
	Incarnation Incarnation // exactly that one
	Proof       Proof
}

// Proof is the kind of an evidence, as the record of a release names it
// (L-16.9): one to 64 lower-case letters and underscores.
type Proof string

// The proofs that several adapters have.
const (
	ProofClosed     Proof = "closed"      // the body was seen to close
	ProofGone       Proof = "gone"        // every part of it was looked for, and there is none
	ProofNeverBegan Proof = "never_began" // no operation ever began
)

// Host is whom an adapter tells of what it observes by itself. Calls may block
// for a write of the store; they are made from goroutines of the adapter's own.
type Host interface {
	// Settled says what became of an operation whose outcome was not known: nil,
	// or [ErrRefused]. [ErrStale] says that there is no such operation to settle.
	Settled(ctx context.Context, of Incarnation, operation string, outcome error) error

	// Ended says that the body's activity of a life has ended by itself, as an
	// idle browser closes (L-13.2). last is the number of the newest operation
	// that had begun by then: where a newer one did, the evidence is out of date.
	// [ErrPinned] says that an operation, or a stop, still pins the body, or that
	// the evidence is out of date: report again when that has changed. [ErrStale]
	// says that the life is no longer on record; there is nothing more to report.
	Ended(ctx context.Context, evidence Evidence, last int) error
}

var (
	// ErrRefused says that an effect was not carried out and never will be: a
	// definite outcome.
	ErrRefused = fault.New("refused", "the body refused, nothing was done")

	// ErrUnknown says that nobody knows whether an effect was carried out, or
	// still is. It is the error of the same code of package kernel.
	ErrUnknown = fault.New("OUTCOME_UNKNOWN", "the outcome of the effect is not known")

	// ErrAlive says that something of a life still acts, or can.
	ErrAlive = fault.New("alive", "the body is still alive")

	// ErrPinned says that something must end before the body can be free.
	ErrPinned = fault.New("pinned", "something still pins the body")

	// ErrStale says that a token, an incarnation or an operation is not one of
	// the present.
	ErrStale = fault.New("stale_token", "the token or the incarnation is not the present one")
)
