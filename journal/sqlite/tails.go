package sqlite

import (
	"bytes"
	"sync"
	"time"

	"github.com/parley-run/parley/journal"
)

const (
	longestTail   = 64       // events of one stream
	largestTail   = 16 << 10 // bytes of one event; a larger one is read from the file
	eventOverhead = 128      // bytes that an event takes besides its texts
)

// tails keeps the newest events of the streams that were written lately, so
// that those who are woken by an append read it without asking the file. A
// settled tail is always equal to what the file says: it is unsettled before
// the commit that makes it out of date, and settled again after it.
//
// Like [heads] it keeps two generations: when half of the bytes were added to
// the young one, the old one is forgotten.
type tails struct {
	most int // bytes; nothing is kept if it is negative

	mu         sync.RWMutex
	size       int // bytes added to young
	young, old map[string]*tail
}

type tail struct {
	settled bool
	events  []journal.Event // without gaps up to the end of the stream; none if nothing is known
}

// written is one stream's part of a group that was given to the database.
type written struct {
	stream string
	first  journal.Seq
	events []journal.Event
}

func newTails(most int) *tails {
	return &tails{most: most, young: make(map[string]*tail)}
}

// unsettle sends readers of the streams to the file until settle.
func (t *tails) unsettle(group []written) {
	if t.most < 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, part := range group {
		t.own(part.stream).settled = false
	}
}

// settle adds a group that was committed.
func (t *tails) settle(group []written) {
	if t.most < 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, part := range group {
		tail := t.own(part.stream)
		for i, event := range part.events {
			event.Seq = part.first + journal.Seq(i)
			t.size += tail.add(event)
		}
		tail.settled = true
	}
}

// own returns the tail of a stream in the young generation; one of the old is
// hidden by it from then on.
func (t *tails) own(stream string) *tail {
	if t.size > t.most/2 {
		t.young, t.old, t.size = make(map[string]*tail), t.young, 0
	}
	own := t.young[stream]
	if own == nil {
		own = &tail{}
		t.young[stream] = own
		t.size += eventOverhead + len(stream)
	}
	return own
}

// clear forgets everything.
func (t *tails) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.young, t.old, t.size = make(map[string]*tail), nil, 0
}

// read answers a ReadRange, if it can. The caller owns the result.
func (t *tails) read(stream string, from journal.Seq, limit int, dir journal.Direction) ([]journal.Event, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	events := t.settled(stream)
	if len(events) == 0 {
		return nil, false
	}
	first := events[0].Seq
	end := first + journal.Seq(len(events))
	if dir == journal.Backward {
		from = min(from, end-1)
		n := min(journal.Seq(limit), from+1)
		if n > 0 && from+1-n < first {
			return nil, false
		}
		return copyEvents(n, func(i journal.Seq) journal.Event { return events[from-i-first] }), true
	}
	from = max(from, 0)
	n := min(journal.Seq(limit), end-from)
	if n > 0 && from < first {
		return nil, false
	}
	return copyEvents(n, func(i journal.Seq) journal.Event { return events[from+i-first] }), true
}

func copyEvents(n journal.Seq, at func(i journal.Seq) journal.Event) []journal.Event {
	if n <= 0 {
		return nil
	}
	result := make([]journal.Event, n)
	for i := range n {
		result[i] = cloneEvent(at(i))
	}
	return result
}

// head answers a HeadOf, if it can.
func (t *tails) head(stream string) (journal.Seq, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	events := t.settled(stream)
	if len(events) == 0 {
		return 0, false
	}
	return events[len(events)-1].Seq + 1, true
}

// settled returns the events of a tail that may be read.
func (t *tails) settled(stream string) []journal.Event {
	tail := t.young[stream]
	if tail == nil {
		tail = t.old[stream]
	}
	if tail == nil || !tail.settled {
		return nil
	}
	return tail.events
}

// add appends the next event of the stream, as it will be read, and returns
// its size.
func (t *tail) add(event journal.Event) int {
	if len(event.Data) > largestTail {
		t.events = nil
		return 0
	}
	if len(t.events) >= longestTail {
		t.events = append([]journal.Event(nil), t.events[longestTail/2:]...)
	}
	event = cloneEvent(event)
	event.Time = time.UnixMilli(event.Time.UnixMilli()).UTC()
	t.events = append(t.events, event)
	return size(event)
}

func size(event journal.Event) int {
	return eventOverhead + len(event.Kind) + len(event.ID) + len(event.Data)
}

// cloneEvent copies what an event holds by reference; no data and empty data
// are the same.
func cloneEvent(event journal.Event) journal.Event {
	event.Data = bytes.Clone(event.Data)
	if len(event.Data) == 0 {
		event.Data = nil
	}
	return event
}
