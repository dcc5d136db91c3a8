package lease

import (
	"fmt"
	"time"

	"github.com/parley-run/parley/body"
)

// RequestState says how a request of the queue stands.
type RequestState string

const (
	Waiting   RequestState = "waiting"
	Woken     RequestState = "woken"     // its requester was woken, or was about to be when the process died
	Withdrawn RequestState = "withdrawn" // by its requester
	Lapsed    RequestState = "lapsed"    // its deadline passed first
	Denied    RequestState = "denied"    // its requester had lost the right to use the resource
)

// Request is a conversation's wish to be told when an incarnation has ended
// (L-20.1). It runs nothing and hands nothing over.
type Request struct {
	ID          string           `json:"id,omitzero"`
	Requester   Caller           `json:"requester"`
	Resource    Resource         `json:"resource"`
	Incarnation body.Incarnation `json:"incarnation"` // the end of this one, and of no later (L-20.6)
	Deadline    time.Time        `json:"deadline"`
	State       RequestState     `json:"state"`
}

// Bounds of the queue (L-20.7).
const (
	MaxRequests  = 32 // open ones of a resource
	keptRequests = 32 // that are over, for those who ask what became of them
)

// open reports whether the request may still wake somebody.
func (r Request) open() bool { return r.State == Waiting }

// at is the request as it stands at a moment.
func (r Request) at(now time.Time) Request {
	if r.open() && !now.Before(r.Deadline) {
		r.State = Lapsed
	}
	return r
}

// pruned drops the oldest of those requests that are over, and notes which have
// lapsed. The order of the others stays (L-20.8).
func pruned(requests []Request, now time.Time) (kept []Request) {
	over := 0
	for _, r := range requests {
		if !r.at(now).open() {
			over++
		}
	}
	for _, r := range requests {
		r = r.at(now)
		if !r.open() && over > keptRequests {
			over--
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

// mayQueue says why a conversation cannot queue now.
func (s state) mayQueue(conversation string, now instant) error {
	open := 0
	for _, r := range s.requests {
		if r = r.at(now.wall); !r.open() {
			continue
		}
		if open++; r.Requester.Conversation == conversation && r.Incarnation == s.claim.incarnation {
			return fmt.Errorf("%w: the conversation has an open request", ErrLimit)
		}
	}
	if open >= MaxRequests {
		return fmt.Errorf("%w: %d requests are open", ErrLimit, MaxRequests)
	}
	return nil
}

// busy is the answer to a conflict, with what the caller may do about it.
func (s state) busy(caller Caller, now instant) *BusyError {
	c := s.claim
	answer := &BusyError{Resource: s.resource, Owner: c.holder.Conversation, State: s.standing(now), Incarnation: c.incarnation}
	if c.blocked != Damaged && s.mayQueue(caller.Conversation, now) == nil {
		answer.Actions = append(answer.Actions, ActionQueue)
	}
	return answer
}

// enqueue puts a request against the present incarnation on record.
type enqueue struct {
	caller  Caller
	granted bool
	of      body.Incarnation
	length  time.Duration
}

func (cmd enqueue) on(s state, now instant) ([]event, error) {
	switch {
	case !cmd.granted:
		return nil, ErrDenied
	case s.exact(cmd.of) != nil:
		return nil, ErrStale
	}
	if err := s.mayQueue(cmd.caller.Conversation, now); err != nil {
		return nil, err
	}
	return []event{queued{Request{
		Requester: cmd.caller, Resource: s.resource, Incarnation: cmd.of,
		Deadline: now.wall.Add(cmd.length), State: Waiting,
	}}}, nil
}

// finish ends an open request, once: it has lapsed where its deadline passed first.
type finish struct {
	id    string
	state RequestState
}

func (cmd finish) on(s state, now instant) ([]event, error) {
	r, ok := s.request(cmd.id)
	if !ok || !r.open() {
		return nil, ErrNoRequest
	}
	if r = r.at(now.wall); !r.open() {
		return []event{spent{cmd.id, r.State}}, nil
	}
	return []event{spent{cmd.id, cmd.state}}, nil
}

// request finds a request by its id.
func (s state) request(id string) (Request, bool) {
	for _, r := range s.requests {
		if r.ID == id {
			return r, true
		}
	}
	return Request{}, false
}

// due lists the open requests whose incarnation has ended, in their order. A new
// holder inherits none (L-20.6).
func (s state) due() (requests []Request) {
	for _, r := range s.requests {
		if r.open() && s.exact(r.Incarnation) != nil {
			requests = append(requests, r)
		}
	}
	return requests
}
