package lease

import (
	"encoding/json/jsontext"
	"fmt"
	"time"

	"github.com/parley-run/parley/body"
)

// command is one thing that is asked of one resource. Its rows of the table are
// its method on, a pure function: the events that it comes to in a state whose
// deadline is settled, or why it is refused, which changes nothing. What a hook
// had to say, grants for one, was asked before and is a field.
type command interface {
	on(s state, now instant) ([]event, error)
}

// maxOperations is how many operations of a claim may be active at once.
const maxOperations = 64

// decide is the table of L-6.4. The passing of the deadline is settled first,
// whatever is asked, so that nothing revives a claim (L-8.4): a refused command
// may have that event too. Stopping, checking and recovering are refinements
// within the three states, see attempt.go.
func decide(s state, cmd command, now instant) ([]event, error) {
	if restart, ok := cmd.(restart); ok {
		return restart.on(s, now)
	}
	events, err := expire{}.on(s, now)
	if err != nil {
		return nil, err
	}
	if s, err = s.after(events, now.wall); err != nil {
		return nil, err
	}
	more, err := cmd.on(s, now)
	return append(events, more...), err
}

// expire: held, the deadline passes: recovery_required, holder and incarnation
// kept. Time alone never leads to free (L-6.5).
type expire struct{}

func (expire) on(s state, now instant) ([]event, error) {
	if c := s.claim; c != nil && c.blocked == "" && now.passed(c.deadline) {
		return []event{blocked{c.incarnation, Expired}}, nil
	}
	return nil, nil
}

// restart: held, the service restarts: recovery_required, the token is invalid.
// recovery_required: unchanged, the token is invalid.
type restart struct{}

func (restart) on(s state, _ instant) ([]event, error) {
	c := s.claim
	if c == nil || c.deadToken && len(c.active()) == 0 {
		return nil, nil
	}
	return []event{blocked{c.incarnation, Restarted}}, nil
}

// acquire: free: held, with a new incarnation and token. Otherwise: busy, for
// the holder too. Who lacks the grant is denied and told nothing else (L-19.4).
type acquire struct {
	caller  Caller
	granted bool
	token   digest
	length  time.Duration
}

func (cmd acquire) on(s state, now instant) ([]event, error) {
	switch {
	case !cmd.granted:
		return nil, ErrDenied
	case s.claim != nil:
		return nil, s.busy(cmd.caller, now)
	}
	end := now.add(cmd.length)
	return []event{granted{cmd.caller, cmd.token, end.wall, end.mono}}, nil
}

// renew: held, the token matches: a later deadline. Otherwise: refused.
type renew struct {
	fence   fence
	granted bool
	seat    Seat
	length  time.Duration
}

func (cmd renew) on(s state, now instant) ([]event, error) {
	if err := s.holds(cmd.fence); err != nil {
		return nil, err
	}
	if !cmd.granted {
		return nil, ErrDenied
	}
	end := now.add(cmd.length)
	return []event{renewed{s.claim.incarnation, end.wall, cmd.seat, end.mono}}, nil
}

// reserve: held, token, conversation and grants match: the operation is active.
// Otherwise, and while a stop is under way: refused.
type reserve struct {
	fence   fence
	granted bool
	action  string
	seat    Seat
}

func (cmd reserve) on(s state, _ instant) ([]event, error) {
	if err := s.holds(cmd.fence); err != nil {
		return nil, err
	}
	c := s.claim
	switch {
	case !cmd.granted:
		return nil, ErrDenied
	case c.attempt != nil:
		return nil, &BlockedError{Stopping: true}
	case s.resource == DiscordMouth && len(c.operations) > 0, len(c.operations) >= maxOperations:
		return nil, fmt.Errorf("%w: too many operations at once", ErrLimit)
	}
	return []event{reserved{c.incarnation, c.number + 1, cmd.action, cmd.seat}}, nil
}

// begin asks once more, as the effect is about to begin: everything that reserve
// asked still holds, and the operation is the one that was reserved (L-4.2,
// L-8.8). The active operation keeps the claim from ending between this and the
// effect.
type begin struct {
	fence   fence
	granted bool
	of      body.Incarnation
	number  int
}

func (cmd begin) on(s state, _ instant) ([]event, error) {
	if err := s.holds(cmd.fence); err != nil {
		return nil, err
	}
	i := s.claim.find(cmd.number)
	switch {
	case !cmd.granted:
		return nil, ErrDenied
	case s.exact(cmd.of) != nil || i < 0 || s.claim.operations[i].uncertain:
		return nil, ErrStale
	}
	return nil, nil
}

// note keeps the adapter's reference to its body.
type note struct {
	of        body.Incarnation
	number    int
	reference jsontext.Value
}

func (cmd note) on(s state, _ instant) ([]event, error) {
	if s.exact(cmd.of) != nil || s.claim.find(cmd.number) < 0 {
		return nil, ErrStale
	}
	return []event{noted{cmd.of, cmd.number, cmd.reference}}, nil
}

// complete: in held and in recovery_required alike, the exact operation: gone, or
// uncertain, which leads to recovery_required at once. A completion of another
// one, and a second one, change nothing (L-9.2, L-9.3). Where the definite
// receipt is the end, the resource is free (L-10.2).
type complete struct {
	of       body.Incarnation
	number   int
	outcome  outcome
	observed bool // by the adapter itself, of an operation that runs no more
}

func (cmd complete) on(s state, now instant) ([]event, error) {
	if s.exact(cmd.of) != nil {
		return nil, ErrStale
	}
	c := s.claim
	i := c.find(cmd.number)
	if i < 0 || c.operations[i].uncertain && cmd.outcome == unknown || cmd.observed && !c.operations[i].uncertain {
		return nil, ErrStale
	}
	events := []event{completed{c.incarnation, cmd.number, cmd.outcome}}
	stopping := c.attempt != nil && c.attempt.struck
	switch {
	case cmd.outcome == unknown && c.blocked == "":
		events = append(events, blocked{c.incarnation, Uncertain})
	case s.resource == DiscordMouth && cmd.outcome != unknown && cmd.outcome != notBegun && !stopping:
		events = append(events, s.release(CauseReceipt, proofReceipt, Caller{}, now))
	}
	return events, nil
}

// proofReceipt is the proof of a lease whose one operation was answered for.
const proofReceipt body.Proof = "receipt"
