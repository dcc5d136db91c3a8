// Package watch holds the subscriptions that the readers of one process have
// on the streams of a journal. Stores call [Hub.Notify] after a write.
package watch

import (
	"context"
	"sync"

	"github.com/parley-run/parley/journal"
)

// Hub is the set of live subscriptions of one store. The zero Hub is ready.
type Hub struct {
	mu      sync.Mutex
	closed  bool
	streams map[string]map[*subscription]struct{}
}

type subscription struct {
	stream string
	wake   chan struct{} // of capacity 1: a full channel already says "read on"
	stop   func() bool   // takes the release off the context
}

// Subscribe returns a channel that receives a value after each Notify of the
// stream; values merge. It is closed, and all that it held is freed, when ctx
// is done or the hub closes (C-3.5, C-3.6). No goroutine waits for that: the
// context calls back.
//
// Errors: [journal.ErrClosed], and the error of a ctx that is done already.
func (h *Hub) Subscribe(ctx context.Context, stream string) (<-chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, journal.ErrClosed
	}
	s := &subscription{stream: stream, wake: make(chan struct{}, 1)}
	if h.streams == nil {
		h.streams = make(map[string]map[*subscription]struct{})
	}
	if h.streams[stream] == nil {
		h.streams[stream] = make(map[*subscription]struct{})
	}
	h.streams[stream][s] = struct{}{}
	s.stop = context.AfterFunc(ctx, func() { h.release(s) })
	return s.wake, nil
}

// Notify wakes the subscriptions of a stream. It never waits.
func (h *Hub) Notify(stream string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.streams[stream] {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// Close releases every subscription and refuses new ones.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, set := range h.streams {
		for s := range set {
			s.stop()
			close(s.wake)
		}
	}
	h.streams = nil
}

// release is called at most once for each subscription, by its context. Close
// may have been faster.
func (h *Hub) release(s *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	set := h.streams[s.stream]
	if _, live := set[s]; !live {
		return
	}
	delete(set, s)
	if len(set) == 0 {
		delete(h.streams, s.stream)
	}
	close(s.wake)
}
