package gateway

import (
	"context"
	"sync"
	"time"
)

const (
	// DefaultMaxStreams bounds the streams of a gateway (C-32.7).
	DefaultMaxStreams = 256
	// drainWithin is how long streams may take to end once they are to.
	drainWithin = 8 * time.Second
)

// streams are the open streams of a gateway, and the end of them all.
type streams struct {
	most int // at a time

	mu    sync.Mutex
	open  int
	empty chan struct{} // closed when draining and no stream is open
	until time.Time     // of the writes of a draining gateway

	draining chan struct{} // closed by Drain
}

func newStreams(most int) streams {
	return streams{most: most, empty: make(chan struct{}), draining: make(chan struct{})}
}

// enter takes a place for a stream; call leave once, whatever happens
// (C-32.13). Without a place, or while draining, ok is false.
func (s *streams) enter() (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= s.most || !s.until.IsZero() {
		return nil, false
	}
	s.open++
	return s.leave, true
}

func (s *streams) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.open == 0 && !s.until.IsZero() {
		close(s.empty)
	}
}

// ending reports whether the gateway drains.
func (s *streams) ending() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}

// deadline is when a write that begins now must be done.
func (s *streams) deadline(within time.Duration) time.Time {
	by := time.Now().Add(within)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.until.IsZero() && s.until.Before(by) {
		return s.until
	}
	return by
}

// Drain tells every stream to come back later, waits until all have ended, and
// makes new ones wait in the same way: a 200 with one reconnect event, since a
// browser never returns after an error. Streams whose clients do not read end
// within 8 s all the same. Other routes are served as before. It is called
// before the server's Shutdown, which waits for streams for ever.
func (g *Gateway) Drain(ctx context.Context) error {
	s := &g.streams
	s.mu.Lock()
	if s.until.IsZero() {
		s.until = time.Now().Add(drainWithin)
		close(s.draining)
		if s.open == 0 {
			close(s.empty)
		}
	}
	s.mu.Unlock()
	select {
	case <-s.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
