package main

import (
	"context"

	"github.com/parley-run/parley/client"
)

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
	t.working.Go(func() { t.outcomes <- o.do(ctx) })
}

// settle takes in the outcome of the order that was on its way.
func (t *talk) settle(err error) error {
	done := t.under.done
	t.under = nil
	return done(err)
}

// persistent asks until the server has an answer that counts.
func persistent(ask func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return client.Persist(ctx, ask) }
}
