package main

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
)

var somebody = identity.Principal{Identity: identity.Identity{Actor: "bench"}}

// benchKernel measures a message, one step, and the wait for the next message.
func benchKernel(ctx context.Context, b *bench) error {
	for _, busy := range []int{1, 64} {
		bare, _, err := b.bareLoop(ctx, busy, 2, 1)
		if err != nil {
			return err
		}
		before, err := b.syncCost()
		if err != nil {
			return err
		}
		rate, samples, err := b.kernelLoop(ctx, busy)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("kernel: message, step, wait; %d busy", busy)
		b.add(what, perSecond(rate), fmt.Sprintf("bare two-commit loop %s", perSecond(bare)), fmt.Sprintf("%.2f (≥ 0.4 with 64 busy)", rate/bare))
		if busy == 1 {
			if err := b.addLatency("the same, p50", samples, before, "(≤ 4.5)"); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) kernelLoop(ctx context.Context, busy int) (rate float64, samples []time.Duration, err error) {
	store, _, err := b.open(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer store.Close()
	ready := make([]chan struct{}, busy)
	for i := range ready {
		ready[i] = make(chan struct{}, 1)
	}
	rt, err := kernel.New(kernel.Config{
		Store:    store,
		Features: []kernel.Feature{kernel.Inbox, kernel.Continuations},
		Effects: []kernel.Effect{{
			ID: "echo", Mode: kernel.Repeatable,
			Run: func(_ context.Context, in jsontext.Value) (any, error) { return in, nil },
		}},
		Flows: []kernel.Flow{{Name: "loop", Version: "1", Run: func(c *kernel.Context, input jsontext.Value) (any, error) {
			var i int
			if err := json.Unmarshal(input, &i); err != nil {
				return nil, err
			}
			for k := range 100 {
				if _, err := c.Execute[jsontext.Value](fmt.Sprint("step", k), "echo", c.Receive("in")); err != nil {
					return nil, err
				}
				ready[i] <- struct{}{}
			}
			return nil, kernel.ContinueAsNew(i)
		}}},
	})
	if err != nil {
		return 0, nil, err
	}
	defer rt.Close()
	caller := kernel.By(somebody)
	for i := range busy {
		if _, _, err := rt.Start(ctx, caller, kernel.StartRequest{Flow: "loop", ID: fmt.Sprint("x", i), Input: i}); err != nil {
			return 0, nil, err
		}
	}
	return b.load(busy, func(i int) func() error {
		n := 0
		return func() error {
			n++
			if err := rt.Send(ctx, caller, fmt.Sprint("x", i), "in", jsontext.Value(`"hello"`), fmt.Sprint(n)); err != nil {
				return err
			}
			<-ready[i]
			return nil
		}
	})
}
