package server

import (
	"sync"
	"time"
)

const (
	// tallyWindow is the time over which things are counted.
	tallyWindow = time.Minute
	// maxTallied bounds of how many it is counted at a time (C-32.12). One more
	// takes the place of another, whose count is forgotten: nobody can shut the door
	// for all by coming from many places.
	maxTallied = 4096
)

// tally counts what somebody does that is allowed so often within any minute.
type tally struct {
	most int

	mu    sync.Mutex
	of    map[string]*tallied
	swept time.Time
}

// tallied is what somebody has done, the oldest first, and does now.
type tallied struct {
	times   []time.Time
	pending int
}

func newTally(most int) *tally { return &tally{most: most, of: map[string]*tallied{}} }

// begin says that somebody begins, or how long they have to wait first. What is
// begun counts until it ends, and from then on if it ends with an error.
func (t *tally) begin(who string) (end func(error), wait time.Duration) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep(now)
	one := t.of[who]
	if one == nil {
		one = &tallied{}
		t.of[who] = one
	}
	one.forget(now)
	switch {
	case len(one.times) >= t.most:
		return nil, tallyWindow - now.Sub(one.times[0])
	case len(one.times)+one.pending >= t.most:
		return nil, time.Second
	}
	one.pending++
	return func(err error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		one.pending--
		if err != nil {
			one.times = append(one.times, time.Now())
		}
	}, 0
}

// forget drops what is older than the window.
func (o *tallied) forget(now time.Time) {
	for len(o.times) > 0 && now.Sub(o.times[0]) >= tallyWindow {
		o.times = o.times[1:]
	}
}

// sweep makes room: of those who have done nothing lately, once a window, and of
// anybody where there is none left.
func (t *tally) sweep(now time.Time) {
	if now.Sub(t.swept) >= tallyWindow {
		t.swept = now
		for who, one := range t.of {
			if one.forget(now); len(one.times)+one.pending == 0 {
				delete(t.of, who)
			}
		}
	}
	for who := range t.of {
		if len(t.of) < maxTallied {
			return
		}
		delete(t.of, who)
	}
}
