package gateway

import (
	"context"
	"sync"
	"time"
)

const (
	// DefaultMaxStreams bounds the streams of a gateway (C-32.7).
	DefaultMaxStreams = 256
	// DefaultMaxStreamsPerCaller bounds those of one identity (C-32.7).
	DefaultMaxStreamsPerCaller = 8
	// drainWithin is how long streams may take to end once they are to.
	drainWithin = 8 * time.Second
)

// streams are the open streams of a gateway, and the end of them all.
type streams struct {
	most int // at a time
	each int // of one caller

	mu    sync.Mutex
	open  int
	of    map[string]int // by identity key; no key without a stream
	empty chan struct{}  // closed when draining and no stream is open
	until time.Time      // of the writes of a draining gateway

	draining chan struct{} // closed by Drain
	tally    *tally
}

func newStreams(most, each int) streams {
	return streams{
		most: most, each: each, of: map[string]int{},
		empty: make(chan struct{}), draining: make(chan struct{}), tally: newTally(),
	}
}

// enter takes a place for a stream of the caller; call leave once, whatever
// happens (C-32.13). Without a place, or while draining, leave is nil. Who has
// too many already is refused.
func (s *streams) enter(caller string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.until.IsZero():
		return nil, nil
	case s.of[caller] >= s.each:
		return nil, TooMany("streams", retryAfter)
	case s.open >= s.most:
		return nil, nil
	}
	s.open++
	s.of[caller]++
	return func() { s.leave(caller) }, nil
}

func (s *streams) leave(caller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.of[caller]--; s.of[caller] == 0 {
		delete(s.of, caller)
	}
	if s.open == 0 && !s.until.IsZero() {
		close(s.empty)
	}
}

// deadline is when a write must be done that began then.
func (s *streams) deadline(began time.Time) time.Time {
	by := began.Add(writeWithin)
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
