package lease

import (
	"time"

	"github.com/parley-run/parley/body"
)

// Status is how one resource stands, for whoever may look (L-28.8): no token, no
// actor, no name, no text.
type Status struct {
	Resource    Resource         `json:"resource"`
	State       State            `json:"state"`
	Owner       string           `json:"owner,omitzero"` // conversation id of holder or claimant
	Incarnation body.Incarnation `json:"incarnation,omitzero"`
	Since       time.Time        `json:"since,omitzero"`
	Deadline    time.Time        `json:"deadline,omitzero"`
	Operations  int              `json:"operations"` // that are active
	Reason      Reason           `json:"reason,omitzero"`
	Tries       int              `json:"tries,omitzero"`   // of the sweep, so far
	NextTry     time.Time        `json:"nextTry,omitzero"` // of the sweep; zero where it leaves the claim alone
}

// Status says how every resource of the agent stands, in the order of their
// keys. It is a pure read: it waits for nothing, writes nothing, and notices no
// deadline for anybody else, though it shows one that has passed.
func (r *Registry) Status() []Status {
	now := r.now()
	all := make([]Status, 0, len(r.resources))
	for _, resource := range r.resources {
		s := r.slots[resource]
		all = append(all, s.state.Load().status(now, *s.checks.Load()))
	}
	return all
}

func (s state) status(now instant, k checks) Status {
	c := s.claim
	if c == nil {
		return Status{Resource: s.resource, State: Free}
	}
	status := Status{
		Resource: s.resource, State: s.standing(now), Owner: c.holder.Conversation, Incarnation: c.incarnation,
		Since: c.since, Deadline: c.deadline.wall, Operations: len(c.active()), Reason: c.blocked,
	}
	if status.State == RecoveryRequired && status.Reason == "" {
		status.Reason = Expired
	}
	if k.of == c.incarnation && c.blocked != "" {
		status.Tries, status.NextTry = k.tries, k.next.Round(0).UTC()
	}
	return status
}
