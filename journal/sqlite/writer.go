package sqlite

import (
	"errors"
	"fmt"
	"time"

	engine "zombiezen.com/go/sqlite"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/internal/watch"
)

// writer owns the one connection that writes. Everything in it but the queue
// belongs to its goroutine.
type writer struct {
	queue   *queue
	conn    *engine.Conn
	hub     *watch.Hub
	tails   *tails
	heads   heads
	done    chan struct{}
	poison  error     // set by the first failed write, for good
	written []written // of the group in hand

	begin, end, undo     *engine.Stmt
	version              *engine.Stmt
	insert, upsert, drop *engine.Stmt
	head                 headQuery

	onCommit     func(Commit) // may be nil
	seen         int64        // the data version that heads belong to
	beforeCommit func() error // for tests: the place just before the commit
}

func newWriter(conn *engine.Conn, hub *watch.Hub, tails *tails, heads heads) (*writer, error) {
	w := &writer{queue: newQueue(), conn: conn, hub: hub, tails: tails, heads: heads, done: make(chan struct{})}
	err := prepare(conn, map[string]**engine.Stmt{
		`begin immediate`:     &w.begin,
		`commit`:              &w.end,
		`rollback`:            &w.undo,
		`pragma data_version`: &w.version,
		`insert into event (stream, seq, kind, id, time, data) values (?1, ?2, ?3, ?4, ?5, ?6)`: &w.insert,
		`insert into row (space, key, sort, data) values (?1, ?2, ?3, ?4)
			on conflict do update set sort = excluded.sort, data = excluded.data`: &w.upsert,
		`delete from row where space = ?1 and key = ?2`: &w.drop,
		selectHead: &w.head.stmt,
	})
	return w, err
}

// run commits group after group until the queue is closed and empty.
func (w *writer) run() {
	defer close(w.done)
	var group []*request
	for {
		group = w.queue.take(group)
		if len(group) == 0 {
			return
		}
		w.commit(group)
		clear(group)
	}
}

// drain waits for the end of run.
func (w *writer) drain() {
	w.queue.close()
	<-w.done
}

// commit writes a group in one transaction and answers its requests.
func (w *writer) commit(group []*request) {
	told := w.onCommit != nil && w.poison == nil
	var began time.Time
	if told {
		began = time.Now()
	}
	if w.poison == nil {
		if err := w.transact(group); err != nil {
			// What of the group will be found in the file is unknown: the
			// bytes may be there without the sync. So nobody is told anything
			// else, and nothing is written after it.
			w.poison = fmt.Errorf("%w: %w", journal.ErrPoisoned, err)
			_ = run(w.undo)
		}
	}
	var commit Commit
	if told = told && w.poison == nil; told {
		commit = account(group, time.Since(began))
	}
	for _, r := range group {
		if w.poison != nil {
			r.err = w.poison
		}
		r.done <- r.err
	}
	if told {
		w.tell(commit)
	}
}

// transact writes what passes its check. Its error is one of the database; a
// conflict is left in the request.
func (w *writer) transact(group []*request) error {
	clear(w.written)
	w.written = w.written[:0]
	if err := run(w.begin); err != nil {
		return err
	}
	if err := w.refresh(); err != nil {
		return err
	}
	for _, r := range group {
		r.err = w.check(r.batch)
		if errors.Is(r.err, journal.ErrConflict) {
			continue
		}
		if r.err != nil {
			return r.err
		}
		if err := w.write(r.batch); err != nil {
			return err
		}
	}
	w.tails.unsettle(w.written)
	if w.beforeCommit != nil {
		if err := w.beforeCommit(); err != nil {
			return err
		}
	}
	if err := run(w.end); err != nil {
		return err
	}
	w.tails.settle(w.written)
	for _, part := range w.written {
		w.hub.Notify(part.stream)
	}
	return nil
}

// refresh forgets what is in memory if another connection has written into the
// file.
func (w *writer) refresh() error {
	if _, err := w.version.Step(); err != nil {
		return err
	}
	if version := w.version.ColumnInt64(0); version != w.seen {
		w.heads.clear()
		w.tails.clear()
		w.seen = version
	}
	return w.version.Reset()
}

// check compares the expectations of a batch with the ends of its streams, to
// which earlier appends of the same group have added.
func (w *writer) check(batch []journal.Append) error {
	for _, part := range batch {
		if part.Expect == journal.AtEnd {
			continue
		}
		next, err := w.next(part.Stream)
		if err != nil {
			return err
		}
		if part.Expect != next {
			return fmt.Errorf("%w: %q ends at %d, not at %d", journal.ErrConflict, part.Stream, next, part.Expect)
		}
	}
	return nil
}

// next returns the next sequence of a stream.
func (w *writer) next(stream string) (journal.Seq, error) {
	if next, ok := w.heads.get(stream); ok {
		return next, nil
	}
	next, err := w.head.of(stream)
	if err != nil {
		return 0, err
	}
	w.heads.put(stream, next)
	return next, nil
}

// write inserts a batch that has passed its check.
func (w *writer) write(batch []journal.Append) error {
	for _, part := range batch {
		if err := w.writeEvents(part.Stream, part.Events); err != nil {
			return err
		}
		for _, row := range part.Rows {
			if err := w.writeRow(row); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) writeEvents(stream string, events []journal.Event) error {
	if len(events) == 0 {
		return nil
	}
	next, err := w.next(stream)
	if err != nil {
		return err
	}
	w.written = append(w.written, written{stream, next, events})
	for _, event := range events {
		w.insert.BindText(1, stream)
		w.insert.BindInt64(2, int64(next))
		w.insert.BindText(3, event.Kind)
		w.insert.BindText(4, event.ID)
		w.insert.BindInt64(5, event.Time.UnixMilli())
		bindData(w.insert, 6, event.Data)
		if err := run(w.insert); err != nil {
			return err
		}
		next++
	}
	w.heads.put(stream, next)
	return nil
}

func (w *writer) writeRow(row journal.Row) error {
	if row.Delete {
		w.drop.BindText(1, row.Space)
		w.drop.BindText(2, row.Key)
		return run(w.drop)
	}
	w.upsert.BindText(1, row.Space)
	w.upsert.BindText(2, row.Key)
	w.upsert.BindText(3, row.Sort)
	bindData(w.upsert, 4, row.Data)
	return run(w.upsert)
}
