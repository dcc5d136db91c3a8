package lease

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/journal"
)

// event is what a transition comes to. It has a kind if it is put on record;
// what has none is true of this process alone.
type event interface {
	kind() string
	fold(s *state, at time.Time) error
}

// errMisfit says that an event does not follow from those before it.
var errMisfit = errors.New("an event does not follow from those before it")

// granted begins a claim. Its incarnation is the resource with the place of the
// event in the stream, which is never used again.
type granted struct {
	Holder   Caller    `json:"holder"`
	Token    digest    `json:"token"` // of it only the hash (L-7.6)
	Deadline time.Time `json:"deadline"`

	mono time.Duration // the deadline on the clock of this process
}

// renewed moves the deadline. The seat that asked last is whose end is asked for.
type renewed struct {
	Incarnation body.Incarnation `json:"incarnation"`
	Deadline    time.Time        `json:"deadline"`
	Seat        Seat             `json:"seat,omitzero"`

	mono time.Duration
}

// reserved makes an operation active, before its effect begins (L-9.1).
type reserved struct {
	Incarnation body.Incarnation `json:"incarnation"`
	Number      int              `json:"number"`
	Action      string           `json:"action"` // the adapter's word, never its input
	Seat        Seat             `json:"seat,omitzero"`
}

// noted keeps what the adapter wants to know of its body after a restart.
type noted struct {
	Incarnation body.Incarnation `json:"incarnation"`
	Number      int              `json:"number"`
	Reference   jsontext.Value   `json:"reference"`
}

// outcome is what became of an operation.
type outcome string

const (
	done     outcome = "done"
	refused  outcome = "refused"   // a definite no, nothing was done
	notBegun outcome = "not_begun" // reserved, and the effect never began (L-9.9)
	unknown  outcome = "unknown"
)

// completed ends exactly one operation, or says that its end is not known.
type completed struct {
	Incarnation body.Incarnation `json:"incarnation"`
	Number      int              `json:"number"`
	Outcome     outcome          `json:"outcome"`
}

// blocked ends the permission to begin anything; holder and incarnation stay.
type blocked struct {
	Incarnation body.Incarnation `json:"incarnation"`
	Reason      Reason           `json:"reason"`
}

// recovering is the audit of an explicit recovery, written before its stop
// begins (L-15.3).
type recovering struct {
	Incarnation body.Incarnation `json:"incarnation"`
	By          Caller           `json:"by"`
	Claimant    Caller           `json:"claimant"`
}

// Cause says on what ground a resource became free.
type Cause string

const (
	CauseStop     Cause = "stop"     // the holder's ordinary stop, confirmed
	CauseEnded    Cause = "ended"    // its adapter reported a confirmed end
	CauseReceipt  Cause = "receipt"  // the definite receipt was the end (L-10.2)
	CauseSweep    Cause = "sweep"    // the automatic sweep found it proved (L-16.9)
	CauseRecovery Cause = "recovery" // an explicit recovery found it proved
)

// released frees the resource. What is left of the queue rides along, so that
// all that a start-up needs stands behind the last event of this kind.
type released struct {
	Incarnation body.Incarnation `json:"incarnation"`
	Cause       Cause            `json:"cause"`
	Proof       body.Proof       `json:"proof,omitzero"`
	By          Caller           `json:"by,omitzero"` // of a recovery
	Claimant    Caller           `json:"claimant"`
	Requests    []Request        `json:"requests,omitempty"`
}

// queued puts a request on record; its id is made of the place of the event.
type queued struct {
	Request Request `json:"request"`
}

// spent ends a request, before anybody is woken for it (L-22.8).
type spent struct {
	ID    string       `json:"id"`
	State RequestState `json:"state"`
}

// attempted begins a try at ending the claim.
type attempted struct{ attempt attempt }

// struck says that the stop of the attempt passed its guard.
type struck struct{ nonce string }

// over ends an attempt that freed nothing.
type over struct{ nonce string }

func (granted) kind() string    { return "GRANTED" }
func (renewed) kind() string    { return "RENEWED" }
func (reserved) kind() string   { return "RESERVED" }
func (noted) kind() string      { return "NOTED" }
func (completed) kind() string  { return "COMPLETED" }
func (blocked) kind() string    { return "BLOCKED" }
func (recovering) kind() string { return "RECOVERING" }
func (released) kind() string   { return "RELEASED" }
func (queued) kind() string     { return "QUEUED" }
func (spent) kind() string      { return "SPENT" }
func (attempted) kind() string  { return "" }
func (struck) kind() string     { return "" }
func (over) kind() string       { return "" }

// maxNumber bounds the number of an operation that is read from a log.
const maxNumber = 1 << 53

func (e granted) fold(s *state, at time.Time) error {
	if s.claim != nil || e.Token == (digest{}) {
		return errMisfit
	}
	s.claim = &claim{
		incarnation: body.Incarnation(fmt.Sprintf("%s.%d", s.resource, s.next)), holder: e.Holder,
		token: e.Token, since: at, deadline: instant{e.Deadline, e.mono},
	}
	return nil
}

func (e renewed) fold(s *state, _ time.Time) error {
	if s.exact(e.Incarnation) != nil || s.claim.blocked != "" {
		return errMisfit
	}
	s.claim.deadline = instant{e.Deadline, e.mono}
	s.claim.holder.Seat = e.Seat
	return nil
}

func (e reserved) fold(s *state, _ time.Time) error {
	if s.exact(e.Incarnation) != nil || s.claim.blocked != "" || e.Number <= s.claim.number || e.Number > maxNumber {
		return errMisfit
	}
	c := s.claim
	c.operations = append(c.operations, operation{number: e.Number})
	c.number = e.Number
	c.holder.Seat = e.Seat
	return nil
}

func (e noted) fold(s *state, _ time.Time) error {
	if s.exact(e.Incarnation) != nil || s.claim.find(e.Number) < 0 || len(e.Reference) > body.MaxReferenceBytes {
		return errMisfit
	}
	s.claim.reference = e.Reference
	return nil
}

func (e completed) fold(s *state, _ time.Time) error {
	if s.exact(e.Incarnation) != nil || s.claim.find(e.Number) < 0 {
		return errMisfit
	}
	c := s.claim
	i := c.find(e.Number)
	switch e.Outcome {
	case unknown:
		c.doubt(i)
		return nil
	case done, refused:
		c.doubt(i) // it began; its end is known now
	case notBegun:
	default:
		return errMisfit
	}
	c.operations = slices.Delete(c.operations, i, i+1)
	return nil
}

func (e blocked) fold(s *state, _ time.Time) error {
	if s.exact(e.Incarnation) != nil {
		return errMisfit
	}
	c := s.claim
	switch e.Reason {
	case Expired, Uncertain:
	case Restarted:
		c.deadToken, c.attempt = true, nil
		for i := range c.operations {
			c.doubt(i) // unresolved (L-9.5)
		}
	default:
		return errMisfit
	}
	if c.blocked == "" {
		c.blocked = e.Reason
	}
	return nil
}

func (e recovering) fold(s *state, _ time.Time) error {
	if s.exact(e.Incarnation) != nil || s.claim.blocked == "" {
		return errMisfit
	}
	return nil
}

func (e released) fold(s *state, _ time.Time) error {
	if s.exact(e.Incarnation) != nil {
		return errMisfit
	}
	s.claim, s.requests = nil, slices.Clone(e.Requests)
	return nil
}

func (e queued) fold(s *state, at time.Time) error {
	if s.exact(e.Request.Incarnation) != nil || e.Request.ID != "" {
		return errMisfit
	}
	e.Request.ID = fmt.Sprintf("%s.q%d", s.resource, s.next)
	s.requests = pruned(append(s.requests, e.Request), at)
	return nil
}

func (e spent) fold(s *state, _ time.Time) error {
	i := slices.IndexFunc(s.requests, func(r Request) bool { return r.ID == e.ID })
	if i < 0 || !s.requests[i].open() {
		return errMisfit
	}
	s.requests[i].State = e.State
	return nil
}

func (e attempted) fold(s *state, _ time.Time) error {
	a := e.attempt
	s.claim.attempt = &a
	return nil
}

func (e struck) fold(s *state, _ time.Time) error {
	s.claim.attempt.struck = true
	return nil
}

func (e over) fold(s *state, _ time.Time) error {
	s.claim.attempt = nil
	return nil
}

// encode gives an event as it stands in the stream. Its fields were bounded
// before.
func encode(e event, at time.Time) (journal.Event, error) {
	data, err := json.Marshal(e, json.Deterministic(true))
	if err != nil {
		return journal.Event{}, fmt.Errorf("encode %s: %w", e.kind(), err)
	}
	return journal.Event{Kind: e.kind(), Time: at, Data: data}, nil
}

// decode reads an event of a stream. What this release does not know, it does
// not guess: an unknown kind or field is an error, which blocks the resource
// (L-7.5). The error repeats nothing of the data.
func decode(e journal.Event) (event, error) {
	switch e.Kind {
	case granted{}.kind():
		return read[granted](e)
	case renewed{}.kind():
		return read[renewed](e)
	case reserved{}.kind():
		return read[reserved](e)
	case noted{}.kind():
		return read[noted](e)
	case completed{}.kind():
		return read[completed](e)
	case blocked{}.kind():
		return read[blocked](e)
	case recovering{}.kind():
		return read[recovering](e)
	case released{}.kind():
		return read[released](e)
	case queued{}.kind():
		return read[queued](e)
	case spent{}.kind():
		return read[spent](e)
	}
	return nil, fmt.Errorf("event %d is of no known kind", e.Seq)
}

// read decodes one kind.
func read[T event](e journal.Event) (event, error) {
	var data T
	if err := json.Unmarshal(e.Data, &data, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("event %d (%s) cannot be read", e.Seq, strings.ToLower(e.Kind))
	}
	return data, nil
}
