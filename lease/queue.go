package lease

import (
	"context"
	"strings"
	"time"

	"github.com/parley-run/parley/body"
)

// MinWait is the shortest time that a request may wait; it is at most
// [MaxLength], and [DefaultLength] where 0 is asked for (L-20.7).
const MinWait = 10 * time.Second

// Queue asks for the caller's conversation to be woken when exactly this
// incarnation has ended. The wake grants nothing: the woken one acquires like
// anyone, and may find that another was faster (L-20.3). One request a
// conversation, [MaxRequests] a resource.
//
// Errors: [ErrUnknownResource]; [ErrDenied]; [ErrStale] if the incarnation is not
// the present one; [ErrLimit]; [ErrStoreUnavailable].
func (r *Registry) Queue(ctx context.Context, caller Caller, resource Resource, of body.Incarnation, lasting time.Duration) (Request, error) {
	s, err := r.find(resource)
	if err != nil {
		return Request{}, err
	}
	if err := caller.validate(); err != nil {
		return Request{}, err
	}
	lasting, err = length(lasting, MinWait)
	if err != nil {
		return Request{}, err
	}
	granted := r.config.Wake != nil && r.granted(ctx, caller, resource, "")
	after, err := r.apply(ctx, s, enqueue{caller, granted, of, lasting})
	if err != nil {
		return Request{}, err
	}
	return after.requests[len(after.requests)-1], nil
}

// Request says how a request of the caller's conversation stands. Those that are
// over are remembered for a while.
//
// Errors: [ErrNoRequest], also for the request of another conversation.
func (r *Registry) Request(caller Caller, id string) (Request, error) {
	_, found, err := r.request(caller, id)
	return found.at(r.now().wall), err
}

// Withdraw ends a request of the caller's conversation before it wakes anybody
// (L-20.9).
//
// Errors: [ErrNoRequest], also where it is over; [ErrStoreUnavailable].
func (r *Registry) Withdraw(ctx context.Context, caller Caller, id string) error {
	s, _, err := r.request(caller, id)
	if err != nil {
		return err
	}
	_, err = r.apply(ctx, s, finish{id, Withdrawn})
	return err
}

// request finds a request by the resource in its id.
func (r *Registry) request(caller Caller, id string) (*slot, Request, error) {
	resource, _, _ := strings.Cut(id, ".")
	if s, ok := r.slots[Resource(resource)]; ok {
		if found, ok := s.state.Load().request(id); ok && found.Requester.Conversation == caller.Conversation {
			return s, found, nil
		}
	}
	return nil, Request{}, ErrNoRequest
}

// dispatch wakes those whose incarnation has ended, in the order of their
// requests. A request is spent before anybody is woken for it: a crash in
// between loses a wake and never repeats one (L-22.8). It reports whether some
// are left, whose grants could not be asked for.
func (r *Registry) dispatch(ctx context.Context, s *slot) (left bool) {
	for _, request := range s.state.Load().due() {
		if ctx.Err() != nil {
			return true
		}
		r.wake(ctx, s, request)
	}
	return len(s.state.Load().due()) > 0
}

// wake spends one request, and wakes its requester if the grant and the deadline
// still hold (L-20.5).
func (r *Registry) wake(ctx context.Context, s *slot, request Request) {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	verdict := Denied
	if r.config.Wake != nil && r.granted(ctx, request.Requester, s.resource, "") {
		verdict = Woken
	}
	if ctx.Err() != nil {
		return // nothing is known of the grant: it stays due
	}
	after, err := r.apply(ctx, s, finish{request.ID, verdict})
	if err != nil {
		return // withdrawn meanwhile, or the store failed, which was told of
	}
	if now, ok := after.request(request.ID); !ok || now.State != Woken {
		return
	}
	if err := r.config.Wake(ctx, request); err != nil {
		r.config.Log.Warn("wake of a lease request not accepted", "resource", s.resource, "request", request.ID)
	}
}
