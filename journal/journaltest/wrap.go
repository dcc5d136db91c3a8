package journaltest

import (
	"context"
	"sync"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/internal/watch"
)

// Store is a store that counts what is asked of it and fails on demand. Make
// one with [Wrap]. Its zero knobs change nothing. The knobs may be turned at
// any time, from any goroutine.
//
// Appends are numbered from 1, in the order in which they were called; k in the
// names below is "the k-th append from now".
type Store struct {
	inner journal.Store

	mu       sync.Mutex
	counts   Counts
	before   func(n int, batch []journal.Append) error
	after    func(n int, batch []journal.Append) error
	read     func(stream string) error
	faults   map[int]fault
	poisoned bool
	muted    bool
	deaf     watch.Hub // what is subscribed to while muted

	recording sync.Mutex // held over an append while recorded
	recorded  *[][]journal.Append
}

var _ journal.Store = (*Store)(nil)

// fault is what happens at one append.
type fault struct {
	hook   func()
	before error
	after  error
	poison bool
}

// Wrap puts counters and knobs around a store. Several may stand around one
// store, as several processes would.
func Wrap(inner journal.Store) *Store {
	return &Store{inner: inner, faults: make(map[int]fault)}
}

// FailBefore makes the k-th append return err with nothing written.
func (s *Store) FailBefore(k int, err error) {
	s.fault(k, func(f *fault) { f.before = err })
}

// FailAfter makes the k-th append write, and return err as if it had not: the
// crash between a commit and its acknowledgement.
func (s *Store) FailAfter(k int, err error) {
	s.fault(k, func(f *fault) { f.after = err })
}

// PoisonBefore makes the k-th append, and each after it, return
// [journal.ErrPoisoned] with nothing written, as after a failed sync.
func (s *Store) PoisonBefore(k int) {
	s.fault(k, func(f *fault) { f.before, f.poison = journal.ErrPoisoned, true })
}

// PoisonAfter is PoisonBefore with the k-th append written: the failed sync
// whose bytes reached the disk all the same.
func (s *Store) PoisonAfter(k int) {
	s.fault(k, func(f *fault) { f.after, f.poison = journal.ErrPoisoned, true })
}

// At calls hook just before the k-th append, on the goroutine that appends. It
// may wait, and it may panic.
func (s *Store) At(k int, hook func()) {
	s.fault(k, func(f *fault) { f.hook = hook })
}

func (s *Store) fault(k int, set func(*fault)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.counts.Appends + k
	f := s.faults[n]
	set(&f)
	s.faults[n] = f
}

// Before calls hook before each append with its number and batch; an error of
// it is returned and nothing is written. nil takes the hook away.
func (s *Store) Before(hook func(n int, batch []journal.Append) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = hook
}

// After calls hook after each append that was written; an error of it is
// returned in place of success. nil takes the hook away.
func (s *Store) After(hook func(n int, batch []journal.Append) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after = hook
}

// OnRead calls hook before each ReadRange and HeadOf with the stream; an error
// of it is returned. nil takes the hook away.
func (s *Store) OnRead(hook func(stream string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = hook
}

// Mute makes subscriptions that are made from now on receive nothing. They are
// released like others.
func (s *Store) Mute() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.muted = true
}

// Append implements [journal.Store].
func (s *Store) Append(ctx context.Context, batch ...journal.Append) error {
	s.mu.Lock()
	s.counts.Appends++
	n := s.counts.Appends
	f, before, after, record := s.faults[n], s.before, s.after, s.recorded != nil
	delete(s.faults, n)
	s.mu.Unlock()

	if f.hook != nil {
		f.hook()
	}
	if record {
		s.recording.Lock()
		defer s.recording.Unlock()
	}
	if err := s.refuse(f); err != nil {
		return err
	}
	if before != nil {
		if err := before(n, batch); err != nil {
			return err
		}
	}
	if err := s.inner.Append(ctx, batch...); err != nil {
		return err
	}
	s.wrote(batch)
	if after != nil {
		if err := after(n, batch); err != nil {
			return err
		}
	}
	return f.after
}

// refuse returns the error of an append that is not to be written.
func (s *Store) refuse(f fault) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.poisoned {
		return journal.ErrPoisoned
	}
	s.poisoned = f.poison
	return f.before
}

// wrote counts and records an append.
func (s *Store) wrote(batch []journal.Append) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Written++
	for _, part := range batch {
		s.counts.EventsWritten += len(part.Events)
	}
	if s.recorded != nil {
		*s.recorded = append(*s.recorded, copyBatch(batch))
	}
}

// ReadRange implements [journal.Store].
func (s *Store) ReadRange(ctx context.Context, stream string, from journal.Seq, limit int, dir journal.Direction) ([]journal.Event, error) {
	if err := s.reading(stream, func(c *Counts) { c.Reads++ }); err != nil {
		return nil, err
	}
	events, err := s.inner.ReadRange(ctx, stream, from, limit, dir)
	s.count(func(c *Counts) { c.EventsRead += len(events) })
	return events, err
}

// HeadOf implements [journal.Store].
func (s *Store) HeadOf(ctx context.Context, stream string) (next journal.Seq, ok bool, err error) {
	if err := s.reading(stream, func(c *Counts) { c.Heads++ }); err != nil {
		return 0, false, err
	}
	return s.inner.HeadOf(ctx, stream)
}

func (s *Store) reading(stream string, count func(*Counts)) error {
	s.mu.Lock()
	count(&s.counts)
	hook := s.read
	s.mu.Unlock()
	if hook == nil {
		return nil
	}
	return hook(stream)
}

// Subscribe implements [journal.Store].
func (s *Store) Subscribe(ctx context.Context, stream string) (<-chan struct{}, error) {
	s.mu.Lock()
	muted := s.muted
	s.mu.Unlock()
	subscribe := s.inner.Subscribe
	if muted {
		subscribe = s.deaf.Subscribe
	}
	wake, err := subscribe(ctx, stream)
	if err != nil {
		return nil, err
	}
	s.count(func(c *Counts) { c.Subscribes++; c.Subscriptions++ })
	context.AfterFunc(ctx, func() { s.count(func(c *Counts) { c.Subscriptions-- }) })
	return wake, nil
}

// List implements [journal.Store].
func (s *Store) List(ctx context.Context, space, prefix, after string, limit int, dir journal.Direction) ([]journal.Row, error) {
	s.count(func(c *Counts) { c.Lists++ })
	return s.inner.List(ctx, space, prefix, after, limit, dir)
}

// Close closes the wrapped store.
func (s *Store) Close() error {
	s.deaf.Close()
	return s.inner.Close()
}
