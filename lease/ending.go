package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/parley-run/parley/body"
)

// checkLimit is how long a stop with its check may take (L-16.8).
const checkLimit = 30 * time.Second

var (
	errAnotherLife = errors.New("the evidence is of another incarnation")
	errNoProof     = errors.New("the evidence names no proof")
)

// Release is the holder's ordinary stop: it ends the body's activity and frees
// the resource, if the end is confirmed and nothing pins it (L-15.2). No stop is
// remembered for later.
//
// Errors: [ErrStale], [ErrExpired] and [ErrRecoveryRequired], after which only a
// recovery frees; a [BlockedError] which is an [ErrProofUnavailable], and the
// claim is still held; [ErrStoreUnavailable].
func (g Guard) Release(ctx context.Context) error {
	r := g.registry
	ctx, leave, err := r.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	nonce := rand.Text()
	after, err := r.apply(ctx, g.slot, stop{g.fence(), nonce})
	if err != nil {
		return err
	}
	return r.end(ctx, g.slot, nonce, after.claim.life(), func(context.Context) bool { return true })
}

// Recover ends a blocked claim of exactly this incarnation: it stops what is
// left of the body, and frees the resource if the stop-check confirms the end
// (L-15.5). The operator may ask, who needs to name no conversation, and the
// holding conversation with its present grant (L-15.8); the caller gets no lease
// by it (L-15.10).
//
// Errors: [ErrUnknownResource]; [ErrDenied]; [ErrStale] if the registry has moved
// on, before or meanwhile; a [BusyError] if the claim is held; a [BlockedError]
// which is an [ErrProofUnavailable], and the claim stays; [ErrStoreUnavailable].
func (r *Registry) Recover(ctx context.Context, caller Caller, resource Resource, of body.Incarnation) error {
	s, err := r.find(resource)
	if err != nil {
		return err
	}
	if err := caller.Identity.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrDenied, err)
	}
	ctx, leave, err := r.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	may := func(ctx context.Context) bool { return r.mayRecover(ctx, s, caller) }
	nonce := rand.Text()
	after, err := r.apply(ctx, s, recovery{of, caller, may(ctx), nonce})
	if err != nil {
		return r.offered(err)
	}
	return r.end(ctx, s, nonce, after.claim.life(), may)
}

// mayRecover says whether somebody may recover a claim, now.
func (r *Registry) mayRecover(ctx context.Context, s *slot, caller Caller) bool {
	if r.config.Operator != nil && r.config.Operator(ctx, caller.Identity) {
		return true
	}
	if c := s.state.Load().claim; c == nil || c.holder.Conversation != caller.Conversation || caller.validate() != nil {
		return false
	}
	return r.granted(ctx, caller, s.resource, "")
}

// end carries an attempt through: the stop, whose guard is asked at its last
// remote step, and the check, which alone is evidence. Authority is asked again
// after each await (L-15.7).
func (r *Registry) end(ctx context.Context, s *slot, nonce string, life body.Life, may func(context.Context) bool) error {
	limited, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	var refusal error
	_, _ = attend(func() (any, error) { // what it says is no evidence
		return nil, s.adapter.Stop(limited, life, func(ctx context.Context) error {
			if refusal = ctx.Err(); refusal == nil {
				_, refusal = r.apply(ctx, s, strike{nonce, may(ctx)})
			}
			return refusal
		})
	})
	if refusal == nil {
		refusal = r.prove(limited, s, nonce, life, may)
	}
	if refusal != nil {
		if _, err := r.apply(context.WithoutCancel(ctx), s, abandon{nonce}); err != nil {
			return err
		}
	}
	return refusal
}

// prove asks the adapter for evidence, and frees the resource by it.
func (r *Registry) prove(ctx context.Context, s *slot, nonce string, life body.Life, may func(context.Context) bool) error {
	evidence, err := attend(func() (body.Evidence, error) { return s.adapter.Check(ctx, life) })
	if err == nil && !isWord(string(evidence.Proof), 64) {
		err = errNoProof
	}
	if err != nil {
		return &BlockedError{Check: err}
	}
	granted := may(ctx)
	_, err = r.apply(context.WithoutCancel(ctx), s, confirm{nonce, granted, evidence})
	return err
}
