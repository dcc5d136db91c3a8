// Package sqlite is a journal in one file of SQLite.
//
// Open a store with [Open] and give it back with [Store.Close]. It keeps every
// promise of [journal.Store]; what it has acknowledged survives a kill of the
// process and a loss of power (C-3.8). People may look into the file with the
// sqlite3 program while it is in use: tables event and row.
//
// One writer takes every append that waits, commits them together and syncs
// once, so that throughput rises with load; an append alone costs one sync.
// Reads have connections of their own and never wait for the writer; what was
// written last is read from memory. The first write that cannot be made durable
// poisons the store (see [journal.ErrPoisoned]).
//
// One process at a time should write into a file. A second writer, a person
// with sqlite3 for one, cannot break the fence of expected sequences, which is
// checked against the file; but it is not heard by subscriptions, and reads of
// streams that were just written here see it only after the next append.
//
// A store may be opened and used inside a testing/synctest bubble: its one
// goroutine waits on a channel, which the bubble counts as blocked, and file
// access takes no virtual time. It must be closed inside the same bubble.
package sqlite

import (
	"context"
	"sync/atomic"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/internal/watch"
)

// Config has the knobs of a store. Its zero value is fit for use.
type Config struct {
	Readers int // connections for reading; 0 means 4
	Heads   int // streams whose end is kept in memory; 0 means 16,384
	Tails   int // bytes of the newest events that are kept in memory; 0 means 8 MiB, a negative number none

	// OnCommit is told of each commit, after those who waited for it. The next one
	// waits until it returns; a panic of it stops nothing.
	OnCommit func(Commit)
}

// Store is a [journal.Store] in one file.
type Store struct {
	closed  atomic.Bool
	hub     watch.Hub
	tails   *tails
	writer  *writer
	readers *readers
}

var _ journal.Store = (*Store)(nil)

// Append implements [journal.Store]. It shares its transaction and its sync
// with the appends that wait at the same time; a conflict fails this append
// only. When it returns an error that is [journal.ErrPoisoned] the batch may or
// may not be there, whole, once the file is opened again.
func (s *Store) Append(ctx context.Context, batch ...journal.Append) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := journal.Check(batch); err != nil {
		return err
	}
	r := &request{batch: batch, done: make(chan error, 1)}
	if err := s.writer.queue.put(r); err != nil {
		return err
	}
	return <-r.done
}

// ReadRange implements [journal.Store].
func (s *Store) ReadRange(ctx context.Context, stream string, from journal.Seq, limit int, dir journal.Direction) ([]journal.Event, error) {
	if err := s.readers.usable(ctx); err != nil {
		return nil, err
	}
	if events, ok := s.tails.read(stream, from, limit, dir); ok {
		return events, nil
	}
	r, err := s.readers.take(ctx)
	if err != nil {
		return nil, err
	}
	defer s.readers.give(r)
	return r.events(ctx, stream, from, limit, dir)
}

// HeadOf implements [journal.Store].
func (s *Store) HeadOf(ctx context.Context, stream string) (next journal.Seq, ok bool, err error) {
	if err := s.readers.usable(ctx); err != nil {
		return 0, false, err
	}
	if next, ok := s.tails.head(stream); ok {
		return next, true, nil
	}
	r, err := s.readers.take(ctx)
	if err != nil {
		return 0, false, err
	}
	defer s.readers.give(r)
	next, err = r.head.of(stream)
	return next, next > 0, err
}

// List implements [journal.Store].
func (s *Store) List(ctx context.Context, space, prefix, after string, limit int, dir journal.Direction) ([]journal.Row, error) {
	r, err := s.readers.take(ctx)
	if err != nil {
		return nil, err
	}
	defer s.readers.give(r)
	return r.rows(ctx, space, prefix, after, limit, dir)
}

// Subscribe implements [journal.Store]. It reaches the appends of this store.
func (s *Store) Subscribe(ctx context.Context, stream string) (<-chan struct{}, error) {
	return s.hub.Subscribe(ctx, stream)
}

// Close implements [journal.Store]. It waits for the appends that are queued
// and the reads that run.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return journal.ErrClosed
	}
	s.writer.drain()
	s.readers.close()
	s.hub.Close()
	// Last, so that SQLite folds the write-ahead log into the file.
	return s.writer.conn.Close()
}
