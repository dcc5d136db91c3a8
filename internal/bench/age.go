package main

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-run/parley/conversation"
)

// benchAge measures turns of one conversation as it grows old: one may cut in, and
// its words can be followed, as in the server. The thousandth costs what the tenth
// did.
func benchAge(ctx context.Context, b *bench) error {
	h, err := b.freshLiveHouse(ctx, instant{}, conversation.NewHub(conversation.HubConfig{}))
	if err != nil {
		return err
	}
	defer h.close()
	t, err := h.newTalker(ctx, "old")
	if err != nil {
		return err
	}
	defer t.stop()
	var first time.Duration
	turns := 0
	for _, age := range []int{10, 100, 1000} {
		for ; turns < age; turns++ {
			if err := t.turn(ctx); err != nil {
				return err
			}
		}
		before, err := b.syncCost()
		if err != nil {
			return err
		}
		var samples []time.Duration
		for range 50 {
			began := time.Now()
			if err := t.turn(ctx); err != nil {
				return err
			}
			samples = append(samples, time.Since(began))
			turns++
		}
		took := percentile(samples, 50)
		if first == 0 {
			first = took
		}
		b.add(fmt.Sprintf("a turn at %d turns of age, p50 of 50", age), ms(took),
			"overwrite + fdatasync "+ms(before), fmt.Sprintf("%.2f of that at 10", float64(took)/float64(first)))
	}
	return nil
}
