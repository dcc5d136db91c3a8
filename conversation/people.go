package conversation

import (
	"context"
	"slices"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// Participants are the people of a conversation as one of them sees them.
type Participants struct {
	Participants []Participant `json:"participants"`     // the owner first, then in the order of their coming
	Manages      bool          `json:"manages,omitzero"` // the caller may add and remove others, and close
}

// Participants lists who takes part (C-33.12). A conversation of one owner has its
// owner, and nobody manages it.
//
// Errors: [ErrNotFound].
func (c *Client) Participants(ctx context.Context, caller *identity.Principal, id string) (Participants, error) {
	a, err := c.authorize(ctx, caller, id)
	if err != nil {
		return Participants{}, err
	}
	people := Participants{Participants: []Participant{}}
	if a.owner != nil {
		people.Participants = append(people.Participants, Participant{Identity: *a.owner, Since: a.since, Owner: true})
	}
	if a.shared {
		people.Participants = append(people.Participants, a.roster...)
		people.Manages = c.shared.manages(ctx, caller.Identity, a.owner, id)
	}
	return people, nil
}

// AddParticipant lets somebody take part in a shared conversation, from their next
// request on. Adding one who does changes nothing (C-33.12).
//
// Errors: [ErrNotFound], [ErrForbidden] for a participant who does not manage the
// conversation, and where it is not shared; [ErrInvalidParticipant],
// [ErrTooManyParticipants].
func (c *Client) AddParticipant(ctx context.Context, caller *identity.Principal, id string, who identity.Identity) error {
	a, err := c.managed(ctx, caller, id)
	if err != nil {
		return err
	}
	if who.Validate() != nil || c.shared.isService(who) {
		return ErrInvalidParticipant
	}
	if who == *a.owner {
		return nil
	}
	return c.shared.Participants.Update(ctx, id, func(roster []Participant) (*Change, error) {
		at := now()
		switch {
		case !a.stands(roster):
			return nil, ErrNotFound
		case rosterHas(roster, who):
			return nil, nil
		case len(roster)+1 >= MaxParticipants: // with the owner
			return nil, ErrTooManyParticipants
		}
		return &Change{
			Who: who, Added: true, By: caller.Identity,
			Roster: append(slices.Clone(roster), Participant{Identity: who, Since: at}),
			Rows:   []journal.Row{kernel.ListRow(who, c.flow, id, at)},
		}, nil
	})
}

// RemoveParticipant ends somebody's part in a shared conversation: their next
// request is refused, their open streams bring no further entry (C-37.10), and what
// they have in the queue is rejected (C-39.3). Removing one who takes no part
// changes nothing. The owner stays.
//
// Errors: those of AddParticipant; [ErrOwnerStays].
func (c *Client) RemoveParticipant(ctx context.Context, caller *identity.Principal, id string, who identity.Identity) error {
	a, err := c.managed(ctx, caller, id)
	if err != nil {
		return err
	}
	if who == *a.owner {
		return ErrOwnerStays
	}
	return c.shared.Participants.Update(ctx, id, func(roster []Participant) (*Change, error) {
		switch {
		case !a.stands(roster):
			return nil, ErrNotFound
		case !rosterHas(roster, who):
			return nil, nil
		}
		row := kernel.ListRow(who, c.flow, id, time.Now())
		row.Delete = true
		return &Change{
			Who: who, By: caller.Identity, Rows: []journal.Row{row},
			Roster: slices.DeleteFunc(slices.Clone(roster), func(p Participant) bool { return p.Identity == who }),
		}, nil
	})
}

// managed admits who may change the set (C-33.4).
func (c *Client) managed(ctx context.Context, caller *identity.Principal, id string) (access, error) {
	a, err := c.authorize(ctx, caller, id)
	switch {
	case err != nil:
		return access{}, err
	case !a.shared || !c.shared.manages(ctx, caller.Identity, a.owner, id):
		return access{}, ErrForbidden
	}
	return a, nil
}

// stands reports whether the caller still takes part as the roster is now.
func (a access) stands(roster []Participant) bool { return a.admits(a.caller, roster) }
