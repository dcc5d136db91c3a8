// Package memory is a journal that lives as long as its process: for tests,
// examples and trials.
//
// Make one with [New]. It keeps every promise of [journal.Store] but that of
// surviving the process. It starts no goroutine, so that it may be used inside
// a testing/synctest bubble, and a read of it takes no virtual time.
package memory

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/internal/watch"
)

// Store is a [journal.Store] in memory (C-3.9).
type Store struct {
	mu      sync.RWMutex
	closed  bool
	streams map[string][]journal.Event
	spaces  map[string]*space
	hub     watch.Hub
}

var _ journal.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store {
	return &Store{
		streams: make(map[string][]journal.Event),
		spaces:  make(map[string]*space),
	}
}

// Append implements [journal.Store]. The store copies what it keeps.
func (s *Store) Append(ctx context.Context, batch ...journal.Append) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := journal.Check(batch); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return journal.ErrClosed
	}
	for _, part := range batch {
		next := journal.Seq(len(s.streams[part.Stream]))
		if part.Expect != journal.AtEnd && part.Expect != next {
			return fmt.Errorf("%w: %q ends at %d, not at %d", journal.ErrConflict, part.Stream, next, part.Expect)
		}
	}
	for _, part := range batch {
		s.write(part)
	}
	return nil
}

// write carries out one part of a batch that has passed every check.
func (s *Store) write(part journal.Append) {
	events := s.streams[part.Stream]
	for _, event := range part.Events {
		event = clone(event)
		event.Seq = journal.Seq(len(events))
		event.Time = time.UnixMilli(event.Time.UnixMilli()).UTC()
		events = append(events, event)
	}
	for _, row := range part.Rows {
		if s.spaces[row.Space] == nil {
			s.spaces[row.Space] = newSpace()
		}
		s.spaces[row.Space].put(row)
	}
	if len(part.Events) > 0 {
		s.streams[part.Stream] = events
		s.hub.Notify(part.Stream)
	}
}

// ReadRange implements [journal.Store].
func (s *Store) ReadRange(ctx context.Context, stream string, from journal.Seq, limit int, dir journal.Direction) ([]journal.Event, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, journal.ErrClosed
	}
	events := s.streams[stream]
	end := journal.Seq(len(events))
	if dir == journal.Backward {
		from = min(from, end-1)
		n := max(0, min(from+1, journal.Seq(limit)))
		result := make([]journal.Event, 0, n)
		for seq := from; seq > from-n; seq-- {
			result = append(result, clone(events[seq]))
		}
		return result, nil
	}
	from = min(max(from, 0), end)
	n := max(0, min(end-from, journal.Seq(limit)))
	result := make([]journal.Event, 0, n)
	for _, event := range events[from : from+n] {
		result = append(result, clone(event))
	}
	return result, nil
}

// HeadOf implements [journal.Store].
func (s *Store) HeadOf(ctx context.Context, stream string) (next journal.Seq, ok bool, err error) {
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return 0, false, journal.ErrClosed
	}
	events, ok := s.streams[stream]
	return journal.Seq(len(events)), ok, nil
}

// Subscribe implements [journal.Store]. It reaches this store's own appends (C-3.7).
func (s *Store) Subscribe(ctx context.Context, stream string) (<-chan struct{}, error) {
	return s.hub.Subscribe(ctx, stream)
}

// List implements [journal.Store].
func (s *Store) List(ctx context.Context, space, prefix, after string, limit int, dir journal.Direction) ([]journal.Row, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, journal.ErrClosed
	}
	rows := s.spaces[space]
	if rows == nil {
		return nil, nil
	}
	return rows.list(prefix, after, limit, dir), nil
}

// Close implements [journal.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return journal.ErrClosed
	}
	s.closed = true
	s.streams, s.spaces = nil, nil
	s.hub.Close()
	return nil
}

func clone(event journal.Event) journal.Event {
	event.Data = cloneData(event.Data)
	return event
}

// cloneData copies data; no data and empty data are the same.
func cloneData(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	return bytes.Clone(data)
}
