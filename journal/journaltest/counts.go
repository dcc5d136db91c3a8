package journaltest

import (
	"bytes"
	"slices"

	"github.com/parley-run/parley/journal"
)

// Counts is what was asked of a wrapped store.
type Counts struct {
	Appends       int // calls of Append, those that failed included
	Written       int // appends that were written
	EventsWritten int
	Reads         int // calls of ReadRange
	EventsRead    int
	Heads         int // calls of HeadOf
	Lists         int
	Subscribes    int
	Subscriptions int // live now, that is, whose context is not done
}

// Since returns what was asked after earlier; Subscriptions stays what it is.
func (c Counts) Since(earlier Counts) Counts {
	c.Appends -= earlier.Appends
	c.Written -= earlier.Written
	c.EventsWritten -= earlier.EventsWritten
	c.Reads -= earlier.Reads
	c.EventsRead -= earlier.EventsRead
	c.Heads -= earlier.Heads
	c.Lists -= earlier.Lists
	c.Subscribes -= earlier.Subscribes
	return c
}

// Counts returns what was asked of the store so far.
func (s *Store) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

func (s *Store) count(add func(*Counts)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add(&s.counts)
}

// Record keeps every batch that is written from now on. Appends wait for one
// another while it is on, so that the order kept is the order of the commits.
func (s *Store) Record() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorded = new([][]journal.Append)
}

// Recorded returns the batches written since Record, in commit order. Laid into
// an empty store one after another they rebuild it, and a prefix of them is what
// a crash leaves.
func (s *Store) Recorded() [][]journal.Append {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recorded == nil {
		return nil
	}
	return slices.Clone(*s.recorded)
}

func copyBatch(batch []journal.Append) []journal.Append {
	batch = slices.Clone(batch)
	for i := range batch {
		batch[i].Events = slices.Clone(batch[i].Events)
		for j := range batch[i].Events {
			batch[i].Events[j].Data = bytes.Clone(batch[i].Events[j].Data)
		}
		batch[i].Rows = slices.Clone(batch[i].Rows)
		for j := range batch[i].Rows {
			batch[i].Rows[j].Data = bytes.Clone(batch[i].Rows[j].Data)
		}
	}
	return batch
}
