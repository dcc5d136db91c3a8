package main

import (
	"context"
	"errors"
	"time"

	"github.com/parley-run/parley/client"
)

// resend is how long an order that did not get through waits.
const resend = 500 * time.Millisecond

// order is something that a talk wants of the server. Orders are carried out one
// after another, so that messages arrive as they were typed, and beside the talk,
// so that a server that is away keeps nobody from typing on.
type order struct {
	do   func(context.Context) error // asks the server; touches nothing of the talk
	done func(error) error           // takes the outcome in, on the talk's goroutine; its error ends the talk
}

// want puts an order behind the others.
func (t *talk) want(o order) { t.orders = append(t.orders, o) }

// work carries out the next order, unless one is on its way.
func (t *talk) work(ctx context.Context) {
	if t.under != nil || len(t.orders) == 0 {
		return
	}
	o := t.orders[0]
	t.orders, t.under = t.orders[1:], &o
	t.working.Go(func() { t.outcomes <- persist(ctx, o.do) })
}

// settle takes in the outcome of the order that was on its way.
func (t *talk) settle(err error) error {
	done := t.under.done
	t.under = nil
	return done(err)
}

// persist asks the server until it has an answer that counts. Whoever asks again
// must ask the same: a message keeps its id, so that it arrives once.
func persist(ctx context.Context, ask func(context.Context) error) error {
	for deadline := time.Now().Add(patience); ; {
		err := ask(ctx)
		if err == nil || !mayPass(err) || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(resend):
		}
	}
}

// mayPass reports whether an error may be gone the next time: the server is
// away, has failed, or has too much to do.
func mayPass(err error) bool {
	refused, ok := errors.AsType[*client.Error](err)
	return !ok || refused.Status >= 500 || refused.Status == 429
}
