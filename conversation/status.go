package conversation

import (
	"context"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// State says how a conversation stands (C-22.6).
type State string

const (
	StateOpen      State = "open"
	StateClosed    State = "closed"
	StateFailed    State = "failed" // its body failed, or cannot go on with this build
	StateCancelled State = "cancelled"
)

func stateOf(state kernel.State) State {
	switch state {
	case kernel.Running:
		return StateOpen
	case kernel.Completed:
		return StateClosed
	case kernel.Cancelled:
		return StateCancelled
	}
	return StateFailed
}

// Info is what a status tells.
type Info struct {
	ID    string `json:"id"`
	State State  `json:"state"`
	Turns int    `json:"turns"` // the number of the newest accepted turn; 0 before the first

	Shared bool `json:"shared"` // others may take part
}

// How far back the newest accepted record is sought (C-22.7).
const (
	statusPage  = 100
	statusPages = 50
)

// Status reports how the conversation stands.
//
// Errors: [ErrNotFound].
func (c *Client) Status(ctx context.Context, caller *identity.Principal, id string) (Info, error) {
	info, a, err := c.query(ctx, caller, id)
	if err != nil {
		return Info{}, err
	}
	turns, err := c.turns(ctx, info)
	return Info{ID: id, State: stateOf(info.State), Turns: turns, Shared: a.shared}, err
}

// turns seeks the newest accepted turn backward. Rejected records do not count,
// whatever number an old one bears (C-43.2).
func (c *Client) turns(ctx context.Context, info kernel.Info) (int, error) {
	s := c.scan(info, access{known: new(known)}, journal.Backward, statusPages*DefaultMaxScan)
	if err := s.start(ctx, nil); err != nil {
		return 0, err
	}
	s.block = 32 // the last turn is seldom further away
	turns, seen := 0, 0
	err := s.walk(ctx, func(r Record) bool {
		seen++
		if r.Status != StatusRejected {
			turns = r.Turn
		}
		return turns == 0 && seen < statusPages*statusPage
	})
	return turns, err
}
