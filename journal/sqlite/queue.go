package sqlite

import (
	"runtime"
	"sync"

	"github.com/parley-run/parley/journal"
)

// A group is bounded in both, so that one commit stays short. A single larger
// append makes a group of its own.
const (
	maxGroup      = 512
	maxGroupBytes = 1 << 20
)

// request is one append on its way through the writer.
type request struct {
	batch []journal.Append
	err   error      // the conflict, set by the writer
	done  chan error // of capacity 1
}

func (r *request) size() int {
	size := 0
	for _, part := range r.batch {
		for _, event := range part.Events {
			size += len(event.Data)
		}
		for _, row := range part.Rows {
			size += len(row.Data)
		}
	}
	return size
}

// queue holds the appends that wait for the writer. Each of them is a caller
// that waits, so it is bounded by them.
type queue struct {
	mu      sync.Mutex // held for a moment only, never over I/O
	waiting []*request
	closed  bool
	wake    chan struct{} // of capacity 1
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// put queues a request; from here on its outcome will be known.
func (q *queue) put(r *request) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return journal.ErrClosed
	}
	q.waiting = append(q.waiting, r)
	q.signal()
	return nil
}

// close refuses further requests; those that wait are still taken.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take waits for requests and returns the next group, oldest first, in the
// memory of the last one; none when the queue is closed and empty.
func (q *queue) take(group []*request) []*request {
	// Callers that have just been answered often come back at once: let them
	// join this group instead of waiting for the sync after it.
	runtime.Gosched()
	for {
		group, closed := q.next(group[:0])
		if len(group) > 0 || closed {
			return group
		}
		<-q.wake
	}
}

func (q *queue) next(group []*request) (next []*request, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := 0
	for _, r := range q.waiting {
		size += r.size()
		if len(group) == maxGroup || len(group) > 0 && size > maxGroupBytes {
			break
		}
		group = append(group, r)
	}
	rest := copy(q.waiting, q.waiting[len(group):])
	clear(q.waiting[rest:])
	q.waiting = q.waiting[:rest]
	return group, q.closed
}
