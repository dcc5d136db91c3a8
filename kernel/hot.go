package kernel

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/parley-run/parley/journal"
)

const (
	sweepEvery = time.Second // how often work marks of idle executions are cleared
	sweepBatch = 256         // how many at once
	maxStuck   = 4096        // how many stuck executions are remembered
)

// idleList orders the parked activations, least recently used first.
type idleList struct{ list.List }

// parking is an activation's place among the parked ones.
type parking struct {
	element *list.Element
	since   time.Time
	head    journal.Seq // its inbox was read up to here
	clean   bool        // its work mark was cleared for that head, or is to stay
}

// wake lets an execution look into its inbox, starting its activation if it is
// cold. It is called after the commit of what there is to see.
func (rt *Runtime) wake(chain string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if a := rt.hot[chain]; a != nil {
		select {
		case a.wake <- struct{}{}:
		default: // it is told already
		}
		return
	}
	rt.activateLocked(chain)
}

func (rt *Runtime) activateLocked(chain string) {
	if rt.closing {
		return
	}
	a := rt.newActivation(chain)
	rt.hot[chain] = a
	rt.running.Go(a.main)
}

// parked puts the activation among the idle ones and sends the least recently
// used cold if there are too many hot.
func (rt *Runtime) parked(a *activation) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	select {
	case <-a.poke: // left from an earlier time
	default:
	}
	a.parking = parking{element: rt.idle.PushBack(a), since: time.Now(), head: a.inbox.head, clean: a.keepsMark()}
	if len(rt.hot) > max(rt.config.Hot, 0) {
		coldest := rt.idle.Front().Value.(*activation)
		rt.unparkLocked(coldest)
		coldest.poke <- struct{}{}
	}
}

// unparked takes the activation from the idle ones.
func (rt *Runtime) unparked(a *activation) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.unparkLocked(a)
}

func (rt *Runtime) unparkLocked(a *activation) {
	if a.parking.element != nil {
		rt.idle.Remove(a.parking.element)
		a.parking.element = nil
	}
}

// suspend decides under the lock whether a parked activation may go cold: not
// if something woke it.
func (rt *Runtime) suspend(a *activation) bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return len(a.wake) == 0 && !a.stopping
}

// stopLocked tells an activation to leave at once.
func (rt *Runtime) stopLocked(a *activation) {
	if !a.stopping {
		a.stopping = true
		close(a.stop)
		a.cancel()
	}
}

// retired forgets an activation that has left, and starts the next one if the
// execution has something to do.
func (rt *Runtime) retired(a *activation) {
	if a.cause == causeSuspended && !a.keepsMark() {
		rt.settleMark(a.chain, a.parking.head)
	}
	switch a.cause {
	case causeStuck:
		rt.config.Log.Error("execution is stuck", "execution", a.chain, "error", a.err)
	case causeStore:
		rt.fail(a.err)
		rt.config.Log.Error("execution stopped with its store", "execution", a.chain, "error", a.err)
	}

	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.unparkLocked(a)
	delete(rt.hot, a.chain)
	delete(rt.stuck, a.chain)
	if a.cause == causeStuck && len(rt.stuck) < maxStuck {
		rt.stuck[a.chain] = a.err
	}
	close(a.done)
	again := a.cause == causeLost || len(a.wake) > 0
	if again && !a.stopping && a.cause != causeEnded && a.cause != causeStore {
		rt.activateLocked(a.chain)
	}
}

// keepsMark reports whether the execution's work mark stays until its end: a
// child's does, since the write that cancels its parent may have set it, and
// after a crash only the mark brings the child to its own end (K11).
func (a *activation) keepsMark() bool { return a.parent != "" }

// settleMark clears an idle execution's work mark; a message that came since
// keeps it.
func (rt *Runtime) settleMark(chain string, head journal.Seq) {
	err := rt.clearWork(context.Background(), chain, head)
	if err != nil && !errors.Is(err, journal.ErrConflict) && !errors.Is(err, journal.ErrClosed) {
		rt.config.Log.Warn("clear work mark", "execution", chain, "error", err)
	}
}

// sweep clears the work marks of executions that have been idle for a while,
// so that a start-up after a crash wakes only those that were busy.
func (rt *Runtime) sweep() {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			rt.sweepOnce()
		case <-rt.closed:
			return
		}
	}
}

func (rt *Runtime) sweepOnce() {
	type mark struct {
		chain string
		head  journal.Seq
	}
	var marks []mark
	rt.mu.Lock()
	for e := rt.idle.Front(); e != nil && len(marks) < sweepBatch; e = e.Next() {
		a := e.Value.(*activation)
		if time.Since(a.parking.since) < sweepEvery {
			break // the rest parked later
		}
		if !a.parking.clean {
			a.parking.clean = true
			marks = append(marks, mark{a.chain, a.parking.head})
		}
	}
	rt.mu.Unlock()
	var clearing sync.WaitGroup // side by side, they share a commit
	for _, m := range marks {
		clearing.Go(func() { rt.settleMark(m.chain, m.head) })
	}
	clearing.Wait()
}

// cache is a bounded map of facts that never change; the oldest entry makes
// room.
type cache[V any] struct {
	mu    sync.Mutex
	limit int
	byKey map[string]V
	order []string
}

func newCache[V any](limit int) *cache[V] {
	return &cache[V]{limit: limit, byKey: map[string]V{}}
}

func (c *cache[V]) find(key string) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, ok := c.byKey[key]
	return value, ok
}

func (c *cache[V]) add(key string, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byKey[key]; ok {
		return
	}
	if len(c.order) == c.limit {
		delete(c.byKey, c.order[0])
		c.order = c.order[1:]
	}
	c.byKey[key] = value
	c.order = append(c.order, key)
}
