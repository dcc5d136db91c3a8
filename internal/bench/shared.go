package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
)

// benchShared measures turns of shared conversations beside those of one owner, and
// what a stranger can tell from how long a refusal takes: nothing (C-23.7).
func benchShared(ctx context.Context, b *bench) error {
	own, _, err := b.turnLoop(ctx, 64)
	if err != nil {
		return err
	}
	h, err := b.freshSharedHouse(ctx)
	if err != nil {
		return err
	}
	defer h.close()
	talkers := make([]*talker, 64)
	for i := range talkers {
		if talkers[i], err = h.newTalker(ctx, fmt.Sprint("talk", i)); err != nil {
			return err
		}
		defer talkers[i].stop()
	}
	rate, _, err := b.load(len(talkers), func(i int) func() error {
		return func() error { return talkers[i].turn(ctx) }
	})
	if err != nil {
		return err
	}
	b.add("whole turn of a shared conversation; 64 busy", perSecond(rate), "of one owner "+perSecond(own), fmt.Sprintf("%.2f", rate/own))
	missing, forbidden, err := refusals(ctx, h)
	if err != nil {
		return err
	}
	b.add("a stranger's refusal, conversation forbidden, p50", us(forbidden), "missing "+us(missing),
		fmt.Sprintf("%.2f (about 1)", float64(forbidden)/float64(missing)))
	return nil
}

// freshSharedHouse makes a house on an empty store whose conversations are shared.
func (b *bench) freshSharedHouse(ctx context.Context) (*house, error) {
	store, _, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	shared := &conversation.Shared{
		Service:      identity.Identity{Actor: "parley:service"},
		Participants: conversation.LogParticipants(store),
		Cleared:      func(context.Context, identity.Identity, []string) (bool, error) { return true, nil },
	}
	h, err := newHouse(store, 0, instant{}, nil, shared)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	h.shared = true
	return h, nil
}

// refusals is how long it takes to refuse a stranger, in turn, a conversation that is
// not there and one that is.
func refusals(ctx context.Context, h *house) (missing, forbidden time.Duration, err error) {
	stranger := identity.Principal{Identity: identity.Identity{Actor: "a stranger"}}
	took := map[string][]time.Duration{}
	for range 2000 {
		for _, id := range []string{"nothing", "talk1"} {
			began := time.Now()
			_, err := h.client.Status(ctx, &stranger, id)
			took[id] = append(took[id], time.Since(began))
			if !errors.Is(err, conversation.ErrNotFound) {
				return 0, 0, fmt.Errorf("the status of %q for a stranger: %w", id, err)
			}
		}
	}
	return percentile(took["nothing"], 50), percentile(took["talk1"], 50), nil
}

func us(d time.Duration) string { return fmt.Sprintf("%.1f µs", float64(d)/float64(time.Microsecond)) }
