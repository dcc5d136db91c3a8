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

// authorize judges a caller before the runtime does (C-22.5). Its refusal is
// the bare [ErrNotFound], the same for a conversation that does not exist
// (C-23.7).
//
// The owners that it remembers only ever admit. Whoever is not admitted by
// them costs one read of the journal, whether there is such a conversation or
// not, and leaves nothing behind (C-23.8).
func (c *Client) authorize(ctx context.Context, caller *identity.Principal, id string) (*known, error) {
	if !c.able(caller) || !idPattern.MatchString(id) {
		return nil, ErrNotFound
	}
	if k, ok := c.owners.find(id); ok && k.admits(caller) {
		return k, nil
	}
	k, err := c.readOwner(ctx, id)
	if err != nil {
		return nil, err
	}
	if !k.admits(caller) {
		return nil, ErrNotFound
	}
	return c.owners.add(id, k), nil
}

// able reports whether the caller can be anybody's equal: nobody where the
// runtime does without principals, else an identity that could own something
// (C-2.5, C-2.10).
func (c *Client) able(caller *identity.Principal) bool {
	if caller == nil {
		return !c.runtime.RequiresPrincipal()
	}
	return caller.Validate() == nil
}

// readOwner reads event 0 of generation 0. Where the stamp and the principal
// that the kernel recorded disagree, the owner is in conflict, which is a
// refusal of everybody (C-23.4, C-23.5); so is an execution of another flow.
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
	if err != nil || started.Flow != c.flow {
		return nil, ErrNotFound
	}
	stamp, err := ParseStamp(started.Input)
	if err != nil || !stamp.Agrees(started.Principal) {
		return nil, ErrNotFound
	}
	return &known{owner: started.Principal}, nil
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
