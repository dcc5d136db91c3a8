package main

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/sim"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/lease"
)

const statusRate = 10_000 // reads a second beside the cycles

// benchLeases measures acquire, one effect and release, four commits, beside the
// cost of one; and the same while the status is read ten thousand times a second.
func benchLeases(ctx context.Context, b *bench) error {
	_, commits, err := b.bareLoop(ctx, 1, 1)
	if err != nil {
		return err
	}
	commit := percentile(commits, 50)
	for _, busy := range []int{1, 16} {
		rate, samples, _, err := b.leaseLoop(ctx, busy, 0)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("lease: acquire, reserve, complete, release; %d busy", busy)
		if busy == 1 {
			p50 := percentile(samples, 50)
			b.add(what+", p50", ms(p50), "one commit "+ms(commit), fmt.Sprintf("%.1f × (≤ 4)", float64(p50)/float64(commit)))
			continue
		}
		bare, _, err := b.bareLoop(ctx, busy, 1, 1, 1, 1)
		if err != nil {
			return err
		}
		b.add(what, perSecond(rate), "bare loop of the same four appends "+perSecond(bare), fmt.Sprintf("%.2f (≥ 4,000/s)", rate/bare))
	}
	rate, _, reads, err := b.leaseLoop(ctx, 16, statusRate)
	if err != nil {
		return err
	}
	b.add("the same, the status read beside it", perSecond(rate), fmt.Sprintf("%s reads", perSecond(reads)), "(≥ 10,000/s)")
	return nil
}

// leaseLoop runs whole cycles on some resources side by side, and reads the status
// at a pace meanwhile.
func (b *bench) leaseLoop(ctx context.Context, busy, pace int) (rate float64, samples []time.Duration, reads float64, err error) {
	store, _, err := b.open(ctx)
	if err != nil {
		return 0, nil, 0, err
	}
	defer store.Close()
	r, resources, err := openLeases(ctx, store, busy)
	if err != nil {
		return 0, nil, 0, err
	}
	defer r.Close()
	reading, stop := context.WithCancel(ctx)
	var reader sync.WaitGroup
	began := time.Now()
	count := 0
	if pace > 0 {
		reader.Go(func() { count = readStatus(reading, r, pace) })
	}
	caller := lease.Caller{Conversation: "bench", Identity: somebody.Identity}
	rate, samples, err = b.load(busy, func(i int) func() error {
		return func() error {
			claim, err := r.Acquire(ctx, caller, resources[i], 0)
			if err != nil {
				return err
			}
			g, err := r.Guard(caller, resources[i], claim.Token)
			if err != nil {
				return err
			}
			if _, err := g.Do(ctx, "nothing", nil); err != nil {
				return err
			}
			return g.Release(ctx)
		}
	})
	stop()
	reader.Wait()
	return rate, samples, float64(count) / time.Since(began).Seconds(), err
}

// openLeases makes a registry of some resources whose bodies cost nothing.
func openLeases(ctx context.Context, store journal.Store, count int) (*lease.Registry, []lease.Resource, error) {
	bodies := map[lease.Resource]body.Adapter{}
	var resources []lease.Resource
	for i := range count {
		resource := lease.Resource("part_" + string(rune('a'+i)))
		resources = append(resources, resource)
		bodies[resource] = weightless{sim.New(sim.NewWorld())}
	}
	r, err := lease.Open(ctx, lease.Config{
		Store: store, Bodies: bodies, Log: slog.New(slog.DiscardHandler),
		Granted: func(context.Context, lease.Use) bool { return true },
	})
	return r, resources, err
}

// weightless is a body whose effects do nothing, so that what is measured is the
// lease.
type weightless struct{ *sim.Body }

// Perform implements [body.Adapter].
func (weightless) Perform(ctx context.Context, e body.Effect) (jsontext.Value, error) {
	return jsontext.Value("null"), e.Begin(ctx)
}

// readStatus reads at a pace until ctx is done, and says how often it did.
func readStatus(ctx context.Context, r *lease.Registry, pace int) (count int) {
	for began := time.Now(); ctx.Err() == nil; {
		for due := int(time.Since(began).Seconds() * float64(pace)); count < due; count++ {
			runtime.KeepAlive(r.Status())
		}
		time.Sleep(time.Millisecond)
	}
	return count
}
