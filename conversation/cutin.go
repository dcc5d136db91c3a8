package conversation

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/kernel"
)

// cutIn is the watch of one turn over the inbox: it fires the turn's signal when
// a message arrives that cuts it. It holds at most one subscription, which ends
// with the turn (C-14.13). A nil one never fires.
type cutIn struct {
	source       BargeInSource
	conversation string
	generation   int
	cuts         func(context.Context, Arrival) bool
	log          *slog.Logger

	mu       sync.Mutex
	arrivals Arrivals        // nil before the subscription
	alive    context.Context // as long as the subscription
	release  context.CancelFunc
	early    bool // subscribed when the message was recorded
	looked   bool // at what was waiting
	failing  bool // the last read; of one goroutine at a time
	fired    chan struct{}
	watching sync.WaitGroup
}

// open subscribes when the message of the turn is recorded, so that from then on
// nothing that lands is missed (C-14.12). ctx is the decider's.
func (c *cutIn) open(ctx context.Context) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.early = true
	c.subscribe(ctx)
}

// subscribe does so once. Where it fails the turn cannot be cut for now; the next
// checkpoint tries again.
func (c *cutIn) subscribe(ctx context.Context) {
	if c.arrivals != nil {
		return
	}
	alive, release := context.WithCancel(ctx)
	var arrivals Arrivals
	err := survive(func() (err error) {
		arrivals, err = c.source.Watch(alive, c.conversation, c.generation)
		return err
	})
	if err != nil {
		release()
		c.complain(err)
		return
	}
	c.arrivals, c.alive, c.release = arrivals, alive, release
}

// interrupts is the signal for a run of the loop, and for all else that a turn
// waits for; nil where nothing cuts turns.
func (c *cutIn) interrupts() agent.Signal {
	if c == nil {
		return nil
	}
	return c.signal
}

// signal is the turn's [agent.Signal]. A recovered turn subscribes here, if
// something of it is left to do (C-14.12). The first look is at what waits
// already. It comes when the turn's own message is known to be consumed, which it
// is not before the first effect of a turn that was not recovered: until then the
// message being answered looks like one that waits (K9).
func (c *cutIn) signal(ctx context.Context) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	step, _ := kernel.StepFrom(ctx)
	inDecider := step.Attempt == 0
	if c.looked || c.early && inDecider {
		return c.fired
	}
	if c.subscribe(ctx); c.arrivals == nil {
		return c.fired
	}
	c.looked = true
	if !c.read() {
		c.watching.Go(c.follow)
	}
	return c.fired
}

// read takes in what has arrived, and reports whether that is the end of the
// watch: the turn is cut, or over. What cannot be read now is read later, when the
// next hint comes or without one: a turn without an end must not be left without a
// way to stop it.
func (c *cutIn) read() (over bool) {
	for {
		var arrivals []Arrival
		err := survive(func() (err error) {
			arrivals, err = c.arrivals.Read(c.alive)
			return err
		})
		if c.alive.Err() != nil {
			return true
		}
		if err != nil {
			if !c.failing {
				c.complain(err)
			}
			c.failing = true
			return false
		}
		c.failing = false
		for _, arrival := range arrivals {
			if c.cuts(c.alive, arrival) {
				close(c.fired)
				return true
			}
		}
		if len(arrivals) == 0 {
			return false
		}
	}
}

// follow reads on after each hint, and now and then without one: the hint of a
// message that another process stored may not reach this one.
func (c *cutIn) follow() {
	poll := time.NewTicker(PollInterval)
	defer poll.Stop()
	for {
		select {
		case _, open := <-c.arrivals.Hint():
			if !open {
				return
			}
		case <-poll.C:
		case <-c.alive.Done():
			return
		}
		if c.read() {
			return
		}
	}
}

// end gives up the subscription. It waits until nothing of the watch is left.
func (c *cutIn) end() {
	if c == nil {
		return
	}
	c.mu.Lock()
	if c.release != nil {
		c.release()
	}
	c.mu.Unlock()
	c.watching.Wait()
}

// survive calls code of the host's, whose panic is to cost the message that is
// being recorded nothing.
func survive(call func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w in a hook of the host: %T", kernel.ErrPanic, r)
		}
	}()
	return call()
}

func (c *cutIn) complain(err error) {
	c.log.Warn("the inbox cannot be watched, a message does not cut the turn for now", "conversation", c.conversation, "error", err)
}
