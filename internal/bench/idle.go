package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

const idleCount = 10_000

// benchIdle opens ten thousand conversations and measures how long that takes,
// and what each costs in memory and on the disk, hot and cold.
func benchIdle(ctx context.Context, b *bench) error {
	for _, hot := range []int{2 * idleCount, -1} {
		if err := b.idle(ctx, hot); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) idle(ctx context.Context, hot int) error {
	h, err := b.freshHouse(ctx, hot, instant{})
	if err != nil {
		return err
	}
	before := memory()
	began := time.Now()
	if err := openMany(ctx, h, idleCount); err != nil {
		return err
	}
	took := time.Since(began)
	each := float64(memory()-before) / idleCount
	if err := h.close(); err != nil {
		return err
	}
	info, err := os.Stat(h.path)
	if err != nil {
		return err
	}
	if hot < 0 {
		b.add("an idle conversation, cold, memory", fmt.Sprintf("%.0f bytes", max(each, 0)), "", "(0)")
		return nil
	}
	b.add("10,000 conversations opened", fmt.Sprintf("%.2f s", took.Seconds()), "", "(≤ 3 s)")
	b.add("an idle conversation, hot, memory", fmt.Sprintf("%.1f KiB", each/1024), "", "(≤ 16 KiB)")
	b.add("a new conversation, disk", fmt.Sprintf("%.2f KiB", float64(info.Size())/idleCount/1024), "", "(≤ 2.5 KiB)")
	return nil
}

func openMany(ctx context.Context, h *house, count int) error {
	work := make(chan int)
	var all sync.WaitGroup
	var mu sync.Mutex
	var failure error
	for range 64 {
		all.Go(func() {
			for i := range work {
				if _, err := h.client.Start(ctx, &somebody, fmt.Sprint("idle", i)); err != nil {
					mu.Lock()
					failure = err
					mu.Unlock()
				}
			}
		})
	}
	for i := range count {
		work <- i
	}
	close(work)
	all.Wait()
	for h.rt.Stats().Busy > 0 { // until every one waits for its first message
		time.Sleep(time.Millisecond)
	}
	return failure
}

// memory is what the process holds in heap and stacks, after collection.
func memory() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}
