package main

import (
	"context"
	"fmt"
	"time"
)

// benchTurns measures whole turns of conversations with a model of no latency:
// from the send to the durable answer.
func benchTurns(ctx context.Context, b *bench) error {
	for _, busy := range []int{1, 64, 256} {
		bare, _, err := b.bareLoop(ctx, busy, 1, 5, 2)
		if err != nil {
			return err
		}
		before, err := b.syncCost()
		if err != nil {
			return err
		}
		rate, samples, err := b.turnLoop(ctx, busy)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("whole turn; %d busy", busy)
		b.add(what, perSecond(rate), fmt.Sprintf("bare loop of the same three appends %s", perSecond(bare)), fmt.Sprintf("%.2f (≥ 0.55 with 64 busy)", rate/bare))
		if busy == 1 {
			if err := b.addLatency("the same, p50", samples, before, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) turnLoop(ctx context.Context, busy int) (rate float64, samples []time.Duration, err error) {
	h, err := b.freshHouse(ctx, 0, instant{})
	if err != nil {
		return 0, nil, err
	}
	defer h.close()
	talkers := make([]*talker, busy)
	for i := range talkers {
		if talkers[i], err = h.newTalker(ctx, fmt.Sprint("talk", i)); err != nil {
			return 0, nil, err
		}
		defer talkers[i].stop()
	}
	return b.load(busy, func(i int) func() error {
		return func() error { return talkers[i].turn(ctx) }
	})
}

// benchWake measures what a cold wake adds: from the send to the moment at which
// the model is asked, in a generation with some turns behind it, cold and hot.
func benchWake(ctx context.Context, b *bench) error {
	for _, turns := range []int{1, 10, 99} {
		cold, err := b.wakeLoop(ctx, turns, -1)
		if err != nil {
			return err
		}
		hot, err := b.wakeLoop(ctx, turns, 0)
		if err != nil {
			return err
		}
		b.add(fmt.Sprintf("send until the model is asked, %d turns behind it, cold, p50", turns), ms(cold),
			"hot "+ms(hot), fmt.Sprintf("%s for the wake (≤ 10 ms at 99)", ms(cold-hot)))
	}
	return nil
}

func (b *bench) wakeLoop(ctx context.Context, turns, hot int) (time.Duration, error) {
	asked := make(chan time.Time, 1)
	h, err := b.freshHouse(ctx, hot, instant{asked: func() {
		select {
		case asked <- time.Now():
		default:
		}
	}})
	if err != nil {
		return 0, err
	}
	defer h.close()
	var samples []time.Duration
	for sample := range 20 {
		t, err := h.newTalker(ctx, fmt.Sprint("wake", sample))
		if err != nil {
			return 0, err
		}
		for range turns {
			if err := t.turn(ctx); err != nil {
				return 0, err
			}
			<-asked
		}
		began := time.Now()
		if err := t.turn(ctx); err != nil {
			return 0, err
		}
		samples = append(samples, (<-asked).Sub(began))
		t.stop()
	}
	return percentile(samples, 50), nil
}
