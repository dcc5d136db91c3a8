package conversation

import (
	"context"
	"errors"
	"regexp"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// idPattern is the shape of a conversation id (C-11.7). It leaves no room for a
// generation, a child or a reserved prefix.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// AuthorizeRead reports whether the caller may read the conversation, and
// nothing of it (C-22.9). caller is nil for nobody.
//
// Errors: [ErrNotFound].
func (c *Client) AuthorizeRead(ctx context.Context, caller *identity.Principal, id string) error {
	_, err := c.authorize(ctx, caller, id)
	return err
}

// access is what a caller was admitted to.
type access struct {
	*known
	roster []Participant // of a shared conversation, without its owner
	caller *identity.Principal
	host   bool // it is the host itself that asks
	client *Client
}

// by is on whose authority the runtime is called: the caller's own, or in a shared
// conversation, whose participants are nobody to the kernel, the host's (C-34.4).
func (a access) by() kernel.Caller {
	if a.shared || a.host {
		return a.client.runtime.System()
	}
	return by(a.caller)
}

// authorize judges a caller before the runtime does (C-22.5). Its refusal is
// the bare [ErrNotFound], the same for a conversation that does not exist
// (C-23.7).
//
// The conversations that it remembers only ever admit. Whoever is not admitted
// costs the same reads in the same order, whether there is such a conversation or
// not: one of the participants, where conversations may be shared, and one of the
// log. They leave nothing behind (C-23.8).
func (c *Client) authorize(ctx context.Context, caller *identity.Principal, id string) (access, error) {
	if !c.able(caller) || !idPattern.MatchString(id) {
		return access{}, ErrNotFound
	}
	a := access{caller: caller, client: c}
	k, remembered := c.owners.find(id)
	if remembered && !k.shared && k.owns(caller) {
		a.known = k
		return a, nil
	}
	var noRoster error
	if c.shared != nil {
		a.roster, noRoster = c.roster(ctx, id)
	}
	if remembered && k.shared && noRoster == nil && k.admits(caller, a.roster) {
		a.known = k
		return a, nil
	}
	k, err := c.readOwner(ctx, id)
	switch {
	case err == nil && !k.shared && k.owns(caller):
	case noRoster != nil: // it might have admitted them (C-33.11)
		return access{}, noRoster
	case err != nil:
		return access{}, err
	case !k.shared || !k.admits(caller, a.roster):
		return access{}, ErrNotFound
	}
	a.known = c.owners.add(id, k)
	return a, nil
}

// admits reports whether the caller takes part in a shared conversation.
func (k *known) admits(caller *identity.Principal, roster []Participant) bool {
	return caller != nil && (k.owns(caller) || rosterHas(roster, caller.Identity))
}

// roster reads who takes part beside the owner.
func (c *Client) roster(ctx context.Context, id string) (roster []Participant, err error) {
	err = survive(func() (err error) {
		roster, err = c.shared.Participants.Roster(ctx, id)
		return err
	})
	return roster, err
}

// able reports whether the caller can be anybody's equal: nobody where the
// runtime does without principals, else an identity that could own something
// (C-2.5, C-2.10), and not that of the service (C-34.2).
func (c *Client) able(caller *identity.Principal) bool {
	if caller == nil {
		return !c.runtime.RequiresPrincipal()
	}
	return caller.Validate() == nil && (c.shared == nil || !c.shared.isService(caller.Identity))
}

// readOwner reads event 0 of generation 0. Where the stamp and the principal
// that the kernel recorded disagree, the owner is in conflict, which is a
// refusal of everybody (C-23.4, C-23.5). So is an execution of another flow, and a
// shared conversation that the service has not started (C-34.3).
//
// Errors: [ErrNotFound].
func (c *Client) readOwner(ctx context.Context, id string) (*known, error) {
	events, err := c.runtime.Store().ReadRange(ctx, id, 0, 1, journal.Forward)
	if err != nil {
		return nil, err
	}
	if len(events) == 0 || events[0].Seq != 0 || events[0].Kind != kernel.KindStarted {
		return nil, ErrNotFound
	}
	started, err := kernel.DecodeEvent[kernel.Started](events[0])
	if err != nil {
		return nil, ErrNotFound
	}
	stamp, err := ParseStamp(started.Input)
	if err != nil {
		return nil, ErrNotFound
	}
	switch {
	case started.Flow == c.flow && stamp.Agrees(started.Principal):
		return &known{owner: stamp.Owner, since: events[0].Time}, nil
	case c.shared != nil && started.Flow == sharedFlow(c.flow) && sameAsker(started.Principal, &c.shared.Service) &&
		stamp.Owner != nil && !c.shared.isService(*stamp.Owner):
		return &known{owner: stamp.Owner, shared: true, since: events[0].Time}, nil
	}
	return nil, ErrNotFound
}

// uniform turns the runtime's own refusals into the one refusal that a caller
// may see (C-23.7).
func uniform(err error) error {
	if errors.Is(err, kernel.ErrNotFound) || errors.Is(err, kernel.ErrForbidden) {
		return ErrNotFound
	}
	return err
}

// by is the caller as the runtime takes it.
func by(caller *identity.Principal) kernel.Caller {
	if caller == nil {
		return kernel.Caller{}
	}
	return kernel.By(*caller)
}

// asker is the identity in whose name the caller sends, nil for nobody.
func asker(caller *identity.Principal) *identity.Identity {
	if caller == nil {
		return nil
	}
	return &caller.Identity
}
