package lease

import (
	"bytes"
	"crypto/subtle"
	"encoding/json/jsontext"
	"fmt"
	"slices"
	"time"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/journal"
)

// state is all that is known of one resource. A state that has been published
// is never changed; [state.after] makes the next one.
type state struct {
	resource Resource
	next     journal.Seq // where the stream ends
	claim    *claim      // nil: free
	requests []Request   // of the queue, in the order in which they were made
}

// claim is one life of one claim.
type claim struct {
	incarnation body.Incarnation
	holder      Caller // and claimant, through recovery
	token       digest
	deadToken   bool // it ended with the process that gave it out (L-5.4)
	since       time.Time
	deadline    instant
	blocked     Reason // "" while held
	operations  []operation
	number      int // of the newest operation
	begun       int // operations that began, or may have
	newest      int // the number of the newest of them
	reference   jsontext.Value
	attempt     *attempt // a stop or a check that runs; not on record
}

// operation is one that was reserved and is not over.
type operation struct {
	number    int
	uncertain bool // it does not run in this process, and nobody knows what became of it
}

// attempt is one try at ending the claim. It pins the body from the moment at
// which its stop passed its guard: whatever ends the claim meanwhile, the stop
// may still land, and must not land on a successor.
type attempt struct {
	nonce  string
	cause  Cause
	by     Caller // nobody for the sweep's
	struck bool   // its stop passed the guard
}

// id names an operation of the claim.
func (c *claim) id(number int) string { return fmt.Sprintf("%s.%d", c.incarnation, number) }

// active lists the operations that run in this process.
func (c *claim) active() (ids []string) {
	for _, op := range c.operations {
		if !op.uncertain {
			ids = append(ids, c.id(op.number))
		}
	}
	return ids
}

// find returns the place of an operation, -1 where it is over or never was.
func (c *claim) find(number int) int {
	return slices.IndexFunc(c.operations, func(op operation) bool { return op.number == number })
}

// doubt says that an operation began, or may have, and does not run any more.
func (c *claim) doubt(i int) {
	op := &c.operations[i]
	if !op.uncertain {
		op.uncertain = true
		c.begun++
		c.newest = max(c.newest, op.number)
	}
}

// life is the claim as its adapter is told of it.
func (c *claim) life() body.Life {
	life := body.Life{Incarnation: c.incarnation, Begun: c.begun, Reference: bytes.Clone(c.reference)}
	for _, op := range c.operations {
		if op.uncertain {
			life.Unsettled = append(life.Unsettled, c.id(op.number))
		}
	}
	return life
}

// standing is the state of the resource at a moment: a deadline that has passed
// has passed, whoever noticed.
func (s state) standing(now instant) State {
	switch {
	case s.claim == nil:
		return Free
	case s.claim.blocked != "" || now.passed(s.claim.deadline):
		return RecoveryRequired
	}
	return Held
}

// fence is what the holder shows: who it is, and the token.
type fence struct {
	conversation string
	token        digest
}

// holds judges a fence against a state in which the deadline is settled. A wrong
// token learns nothing of the holder (L-5.7), whatever the state is.
func (s state) holds(f fence) error {
	c := s.claim
	switch {
	case c == nil, c.deadToken, c.holder.Conversation != f.conversation,
		subtle.ConstantTimeCompare(c.token[:], f.token[:]) != 1:
		return ErrStale
	case c.blocked == Expired:
		return ErrExpired
	case c.blocked != "":
		return ErrRecoveryRequired
	}
	return nil
}

// exact judges an incarnation. A damaged record has none.
func (s state) exact(of body.Incarnation) error {
	if s.claim == nil || s.claim.blocked == Damaged || s.claim.incarnation != of {
		return ErrStale
	}
	return nil
}

// pinned says what must end before the resource can be free (L-9.4), nil if
// nothing must. The stop of the attempt with the nonce does not count: it has
// returned.
func (s state) pinned(nonce string) error {
	if active := s.claim.active(); len(active) > 0 {
		return &BlockedError{Operations: active}
	}
	if a := s.claim.attempt; a != nil && a.struck && a.nonce != nonce {
		return &BlockedError{Stopping: true}
	}
	return nil
}

// clone copies what folding an event may change.
func (s state) clone() state {
	s.requests = slices.Clone(s.requests)
	if s.claim != nil {
		c := *s.claim
		c.operations = slices.Clone(c.operations)
		if c.attempt != nil {
			a := *c.attempt
			c.attempt = &a
		}
		s.claim = &c
	}
	return s
}

// after is the state after some events of one moment. It fails on an event that
// does not fit, which the table never makes.
func (s state) after(events []event, at time.Time) (state, error) {
	s = s.clone()
	for _, e := range events {
		if err := e.fold(&s, at); err != nil {
			return state{}, err
		}
		if e.kind() != "" {
			s.next++
		}
	}
	return s, nil
}
