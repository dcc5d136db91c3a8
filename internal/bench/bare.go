package main

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/sqlite"
)

// syncCost times an overwrite of 4 KiB followed by fdatasync, what one durable
// write costs on this disk, and returns the p50. It is taken anew beside each
// latency: disks have moods.
func (b *bench) syncCost() (time.Duration, error) {
	file, err := os.Create(filepath.Join(b.dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	block := make([]byte, 4096)
	var samples []time.Duration
	for range 500 {
		began := time.Now()
		if _, err := file.WriteAt(block, 0); err != nil {
			return 0, err
		}
		if err := syscall.Fdatasync(int(file.Fd())); err != nil {
			return 0, err
		}
		samples = append(samples, time.Since(began))
	}
	return percentile(samples, 50), nil
}

// addLatency records the p50 of a latency beside the cost of a sync, as it was
// before and after the measurement.
func (b *bench) addLatency(what string, samples []time.Duration, before time.Duration, target string) error {
	after, err := b.syncCost()
	if err != nil {
		return err
	}
	p50, cost := percentile(samples, 50), (before+after)/2
	b.add(what, ms(p50), "overwrite + fdatasync "+ms(cost), fmt.Sprintf("%.1f × %s", float64(p50)/float64(cost), target))
	return nil
}

// open makes a store in a directory of its own.
func (b *bench) open(ctx context.Context) (*sqlite.Store, string, error) {
	dir, err := b.fresh()
	if err != nil {
		return nil, "", err
	}
	path := filepath.Join(dir, "parley.db")
	store, err := sqlite.Open(ctx, path, sqlite.Config{})
	return store, path, err
}

// fact is an event of the size that the kernel writes.
var fact = journal.Event{
	Kind: "DECIDED", ID: "conv#o1:user",
	Data: jsontext.Value(`{"source":"conversation-record","value":{"turn":1,"ord":1,"role":"user","status":"accepted","text":"hello"}}`),
}

// bareLoop lets some producers append batches of the given sizes one after
// another, each to a stream of its own, and returns rounds a second and the
// time of each round.
func (b *bench) bareLoop(ctx context.Context, producers int, sizes ...int) (float64, []time.Duration, error) {
	store, _, err := b.open(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer store.Close()
	return b.load(producers, func(i int) func() error {
		stream, next := fmt.Sprint("stream", i), journal.Seq(0)
		return func() error {
			for _, size := range sizes {
				events := make([]journal.Event, size)
				for k := range events {
					events[k] = fact
					events[k].Time = time.Now()
				}
				if err := store.Append(ctx, journal.Append{Stream: stream, Expect: next, Events: events}); err != nil {
					return err
				}
				next += journal.Seq(size)
			}
			return nil
		}
	})
}

// load runs rounds on some workers side by side for the length of a
// measurement, after a short warm-up, and returns rounds a second and the time
// of each.
func (b *bench) load(workers int, worker func(i int) func() error) (float64, []time.Duration, error) {
	rounds := make([]func() error, workers)
	for i := range rounds {
		rounds[i] = worker(i)
	}
	var (
		all     sync.WaitGroup
		mu      sync.Mutex
		samples []time.Duration
		failure atomic.Pointer[error]
	)
	began := time.Now()
	counting, until := began.Add(b.seconds/4), began.Add(b.seconds/4+b.seconds)
	for _, round := range rounds {
		all.Go(func() {
			var mine []time.Duration
			for failure.Load() == nil {
				start := time.Now()
				if start.After(until) {
					break
				}
				if err := round(); err != nil {
					failure.Store(&err)
				}
				if start.After(counting) {
					mine = append(mine, time.Since(start))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			samples = append(samples, mine...)
		})
	}
	all.Wait()
	if err := failure.Load(); err != nil {
		return 0, nil, *err
	}
	return float64(len(samples)) / b.seconds.Seconds(), samples, nil
}
