package lease

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/parley-run/parley/identity"
)

// How long a lease lasts (L-8.7).
const (
	DefaultLength = 120 * time.Second
	MinLength     = 5 * time.Second
	MaxLength     = 600 * time.Second
)

// length checks how long something is asked to last; 0 means the default.
func length(asked, least time.Duration) (time.Duration, error) {
	if asked == 0 {
		return DefaultLength, nil
	}
	if asked < least || asked > MaxLength {
		return 0, fmt.Errorf("%w: it lasts %v to %v", ErrLimit, least, MaxLength)
	}
	return asked, nil
}

// Acquire claims a free resource for the caller's conversation, for a length of
// [MinLength] to [MaxLength], 0 meaning [DefaultLength]. It takes nothing from
// anybody and queues nothing (L-19.6). The claim is durable when Acquire
// returns; if that answer is lost, nobody has the token, and the claim runs out
// and is recovered.
//
// Errors: [ErrUnknownResource], [ErrDenied], a [BusyError] which is an
// [ErrBusy], [ErrLimit], [ErrStoreUnavailable].
func (r *Registry) Acquire(ctx context.Context, caller Caller, resource Resource, lasting time.Duration) (Claim, error) {
	s, err := r.find(resource)
	if err != nil {
		return Claim{}, err
	}
	if err := caller.validate(); err != nil {
		return Claim{}, err
	}
	lasting, err = length(lasting, MinLength)
	if err != nil {
		return Claim{}, err
	}
	token := newToken()
	after, err := r.apply(ctx, s, acquire{
		caller: caller, granted: r.granted(ctx, caller, resource, ""), token: digestOf(token), length: lasting,
	})
	if err != nil {
		return Claim{}, r.offered(err)
	}
	return Claim{resource, after.claim.incarnation, token, after.claim.deadline.wall}, nil
}

// offered leaves out of a conflict what nobody can do here.
func (r *Registry) offered(err error) error {
	if busy, ok := err.(*BusyError); ok && r.config.Wake == nil {
		busy.Actions = nil
	}
	return err
}

// newToken makes a token of 256 random bits (L-5.1).
func newToken() identity.Secret {
	var raw [32]byte
	rand.Read(raw[:])
	return identity.NewSecret("lease_" + base64.RawURLEncoding.EncodeToString(raw[:]))
}

// Guard is a holder's captured context: the conversation, the resource and the
// token, by value (L-3.3). It is the only way to an effect, a renewal or an
// ordinary stop, and carries no authority by itself: everything is judged when
// it is used.
type Guard struct {
	registry *Registry
	slot     *slot
	caller   Caller
	token    digest
}

// Guard captures what a call of a holder needs. A token that is not the present
// one is found out when the guard is used.
//
// Errors: [ErrUnknownResource], [ErrDenied].
func (r *Registry) Guard(caller Caller, resource Resource, token identity.Secret) (Guard, error) {
	s, err := r.find(resource)
	if err != nil {
		return Guard{}, err
	}
	if err := caller.validate(); err != nil {
		return Guard{}, err
	}
	return Guard{r, s, caller, digestOf(token)}, nil
}

func (g Guard) fence() fence { return fence{g.caller.Conversation, g.token} }

// Renew gives the claim a new deadline, from now. A turn of the service's that has
// ended renews nothing, so a loop that nobody stops does not hold for ever. A
// renewal during whose write the old deadline passed comes too late (L-8.4).
//
// Errors: [ErrStale], [ErrExpired], [ErrRecoveryRequired], [ErrDenied],
// [ErrLimit], [ErrStoreUnavailable].
func (g Guard) Renew(ctx context.Context, lasting time.Duration) (deadline time.Time, err error) {
	lasting, err = length(lasting, MinLength)
	if err != nil {
		return time.Time{}, err
	}
	granted := g.registry.granted(ctx, g.caller, g.slot.resource, "") && !g.over(ctx)
	after, err := g.registry.apply(ctx, g.slot, renew{g.fence(), granted, g.caller.Seat, lasting})
	if err != nil {
		return time.Time{}, err
	}
	return after.claim.deadline.wall, nil
}

// over reports whether the turn that asks is known to have ended.
func (g Guard) over(ctx context.Context) bool {
	over := g.registry.config.Over
	return g.caller.Seat.Kind == Service && over != nil && over(ctx, g.caller)
}
