package gateway

import (
	"sync"
	"time"
)

const (
	// DefaultPostsPerMinute bounds what one caller posts (C-32.9).
	DefaultPostsPerMinute = 120
	// postsWindow is the time over which posts are counted.
	postsWindow = time.Minute
	// maxPosters bounds the callers that are counted at a time (C-32.12). Beyond
	// it a caller who has posted nothing for a minute has to wait.
	maxPosters = 1 << 16
)

// posts counts what callers post: so many within any minute (C-32.9). What is
// refused does not count, so that who keeps trying gets through.
type posts struct {
	most int

	mu    sync.Mutex
	of    map[string][]time.Time // by identity key, oldest first
	swept time.Time
}

func newPosts(most int) posts {
	return posts{most: most, of: map[string][]time.Time{}}
}

// count counts a post, and returns how long the caller has to wait if it is one
// too many.
func (p *posts) count(caller string) (wait time.Duration) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.swept) >= postsWindow {
		p.sweep(now)
	}
	times, known := p.of[caller]
	for len(times) > 0 && now.Sub(times[0]) >= postsWindow {
		times = times[1:]
	}
	if len(times) >= p.most {
		p.of[caller] = times
		return postsWindow - now.Sub(times[0])
	}
	if !known && len(p.of) >= maxPosters {
		return postsWindow
	}
	p.of[caller] = append(times, now)
	return 0
}

// sweep forgets who has posted nothing for a window.
func (p *posts) sweep(now time.Time) {
	p.swept = now
	for caller, times := range p.of {
		if now.Sub(times[len(times)-1]) >= postsWindow {
			delete(p.of, caller)
		}
	}
}
