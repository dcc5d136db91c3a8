package gateway

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/kernel"
)

// SSE-13, C-30.11, C-32.12: thousands of idle streams at once all get what is said
// in their conversations, and when they leave, places, subscriptions, goroutines
// and memory are what they were.
func TestManyIdleStreams(t *testing.T) {
	many := 5_000
	if underRace {
		many = 1_000 // the detector follows some 8,000 goroutines
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ *kernel.Config, c *Config) { c.MaxStreams, c.MaxStreamsPerCaller = many, many })
		p := w.peers(t, nil)
		var ids []string
		for range many / 50 {
			ids = append(ids, w.start())
		}
		wave := func() (idle, after use) {
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			var told atomic.Int64
			for i := range many {
				two := i%2 == 1 && i < 200 // one connection of HTTP/2 has room for 250
				all.Go(func() { p.follow(ctx, t, two, ids[i%len(ids)], &told) })
			}
			synctest.Wait()
			if open, subscribed := w.open(), w.store.Counts().Subscriptions; open != many || subscribed != many {
				t.Errorf("%d streams are open, %d subscriptions live; want %d", open, subscribed, many)
			}
			time.Sleep(keepAlive + time.Second)
			idle = settled()
			before := told.Load()
			for _, id := range ids {
				w.turn(id, "hello")
			}
			synctest.Wait()
			if n := told.Load() - before; n != int64(2*many) {
				t.Errorf("%d entries were told, want %d", n, 2*many)
			}
			cancel()
			all.Wait()
			time.Sleep(time.Minute)
			p.two.CloseIdleConnections()
			if open, subscribed := w.open(), w.store.Counts().Subscriptions; open != 0 || subscribed != 0 {
				t.Errorf("%d streams and %d subscriptions are left", open, subscribed)
			}
			return idle, settled()
		}
		_, base := wave() // what Go keeps of a goroutine for the next one is no leak
		idle, after := wave()
		t.Logf("%+v before, %+v with %d idle streams and their clients, %+v after", base, idle, many, after)
		if after.goroutines != base.goroutines {
			t.Errorf("%d goroutines are left, and %d were before", after.goroutines, base.goroutines)
		}
		if grown := after.heap - base.heap; grown > 400*many {
			t.Errorf("the heap has grown by %d bytes", grown)
		}
	})
}

// use is what is in use: goroutines of the bubble, and memory of the process.
type use struct{ goroutines, heap int }

// settled is what is in use when nothing moves and all garbage is gone.
func settled() use {
	synctest.Wait()
	runtime.GC()
	runtime.GC() // pools let go in the second one
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return use{goroutines(), int(stats.HeapAlloc)}
}

// follow opens a stream and tells of its entries until ctx is done.
func (p *peers) follow(ctx context.Context, t *testing.T, two bool, id string, told *atomic.Int64) {
	r := request("GET", "http://x/v1/conversations/"+id+"/events", "ann@acme", "").WithContext(ctx)
	body, done, err := p.open(two, r, 1<<40)
	if err != nil {
		t.Error(err)
		return
	}
	defer context.AfterFunc(ctx, done)()
	for events := newReader(body); ; {
		e, err := events.next()
		if err != nil {
			return
		}
		if event(e.name) == eventMessage {
			told.Add(1)
		}
	}
}

// SSE-13: through a day's worth of lifetimes (shortened to two hours), streams that
// come back again and again cost what they did at the beginning, each as many
// goroutines.
func TestSSE13Soak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.start()
		var first use
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		const streams = 4
		base := settled()
		for range streams {
			all.Go(func() {
				for ctx.Err() == nil {
					w.gateway.ServeHTTP(&tape{}, request(http.MethodGet, "/v1/conversations/"+id+"/events?cursor=9.9", "ann@acme", "").WithContext(ctx))
				}
			})
		}
		for range 12 {
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			now := settled()
			if first == (use{}) {
				first = now
			}
			if now.goroutines != base.goroutines+streams || w.open() != streams || w.store.Counts().Subscriptions != streams {
				t.Errorf("%d goroutines, and %d before; %d streams, %d subscriptions; want %d of each more",
					now.goroutines, base.goroutines, w.open(), w.store.Counts().Subscriptions, streams)
			}
			if now.heap-first.heap > 1<<20 {
				t.Errorf("the heap has grown from %d to %d", first.heap, now.heap)
			}
			w.say(id, "still here")
		}
		cancel()
		all.Wait()
	})
}

// SSE-14, C-28.12: words without an end, to five streams, leave nothing behind but
// the records of the replies.
func TestManyWords(t *testing.T) {
	replies := 100 // of 10,000 words
	if underRace {
		replies = 5
	}
	synctest.Test(t, func(t *testing.T) {
		w := newLiveWorld(t, "otherwise\n  repeat 10000 \"w\"")
		id := w.start()
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				w.gateway.ServeHTTP(&sink{}, request(http.MethodGet, "/v1/conversations/"+id+"/events", "ann@acme", "").WithContext(ctx))
			})
		}
		w.say(id, "go")
		before := settled()
		for range replies {
			w.say(id, "go")
		}
		after := settled()
		if grown := after.heap - before.heap - replies*100_000; grown > 0 {
			t.Errorf("the heap has grown from %d to %d bytes", before.heap, after.heap)
		}
		t.Logf("%+v before, %+v after", before, after)
		cancel()
		all.Wait()
	})
}

// sink is a response that nobody reads, and that takes everything.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header {
	if s.header == nil {
		s.header = http.Header{}
	}
	return s.header
}
func (*sink) WriteHeader(int)                  {}
func (*sink) Write(p []byte) (int, error)      { return len(p), nil }
func (*sink) FlushError() error                { return nil }
func (*sink) SetWriteDeadline(time.Time) error { return nil }
