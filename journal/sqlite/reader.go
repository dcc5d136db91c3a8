package sqlite

import (
	"context"
	"strings"
	"time"

	engine "zombiezen.com/go/sqlite"

	"github.com/parley-run/parley/journal"
)

const (
	selectForward = `select seq, kind, id, time, data from event
		where stream = ?1 and seq >= ?2 order by seq limit ?3`
	selectBackward = `select seq, kind, id, time, data from event
		where stream = ?1 and seq <= ?2 order by seq desc limit ?3`
	listForward = `select key, sort, data from row
		where space = ?1 and (sort, key) > (?2, ?3) and sort < ?4 order by sort, key limit ?5`
	listBackward = `select key, sort, data from row
		where space = ?1 and (sort, key) < (?2, ?3) and sort >= ?4 order by sort desc, key desc limit ?5`
)

// reader is one connection for reading. Every statement of it walks an index,
// so that a step is short, and the context is asked between steps.
type reader struct {
	conn                      *engine.Conn
	forward, backward         *engine.Stmt
	listForward, listBackward *engine.Stmt
	head                      headQuery
}

func newReader(conn *engine.Conn) (*reader, error) {
	r := &reader{conn: conn}
	return r, prepare(conn, map[string]**engine.Stmt{
		selectForward:  &r.forward,
		selectBackward: &r.backward,
		listForward:    &r.listForward,
		listBackward:   &r.listBackward,
		selectHead:     &r.head.stmt,
	})
}

// events is [journal.Store.ReadRange].
func (r *reader) events(ctx context.Context, stream string, from journal.Seq, limit int, dir journal.Direction) ([]journal.Event, error) {
	stmt := r.forward
	if dir == journal.Backward {
		stmt = r.backward
	}
	stmt.BindText(1, stream)
	stmt.BindInt64(2, int64(from))
	stmt.BindInt64(3, int64(max(0, limit))) // SQLite takes a negative limit for none
	var events []journal.Event
	err := each(ctx, stmt, func() {
		events = append(events, journal.Event{
			Seq:  journal.Seq(stmt.ColumnInt64(0)),
			Kind: stmt.ColumnText(1),
			ID:   stmt.ColumnText(2),
			Time: time.UnixMilli(stmt.ColumnInt64(3)).UTC(),
			Data: columnData(stmt, 4),
		})
	})
	if err != nil {
		return nil, err
	}
	return events, nil
}

// rows is [journal.Store.List].
func (r *reader) rows(ctx context.Context, space, prefix, after string, limit int, dir journal.Direction) ([]journal.Row, error) {
	// Every text with the prefix lies between the prefix and this, as no UTF-8
	// holds the byte 0xff; and as no key is empty, (prefix, "") is below them all.
	end := prefix + "\xff"
	sort, key, _ := strings.Cut(after, "\x00")
	stmt, bound := r.listForward, end
	switch {
	case dir == journal.Backward:
		stmt, bound = r.listBackward, prefix
		if after == "" || sort >= end {
			sort, key = end, ""
		}
	case sort < prefix:
		sort, key = prefix, ""
	}
	stmt.BindText(1, space)
	stmt.BindText(2, sort)
	stmt.BindText(3, key)
	stmt.BindText(4, bound)
	stmt.BindInt64(5, int64(max(0, limit)))
	var rows []journal.Row
	err := each(ctx, stmt, func() {
		rows = append(rows, journal.Row{
			Space: space,
			Key:   stmt.ColumnText(0),
			Sort:  stmt.ColumnText(1),
			Data:  columnData(stmt, 2),
		})
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// each calls f on each row of a statement. The statement is reset on every way
// out, which ends its snapshot: one that lingered would keep the write-ahead
// log from being folded in.
func each(ctx context.Context, stmt *engine.Stmt, f func()) error {
	defer stmt.Reset()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		found, err := stmt.Step()
		if err != nil || !found {
			return err
		}
		f()
	}
}

// readers is the bounded pool of connections for reading.
type readers struct {
	free   chan *reader
	closed chan struct{}
}

// usable returns the error of a read that must not begin.
func (p *readers) usable(ctx context.Context) error {
	select {
	case <-p.closed:
		return journal.ErrClosed
	default:
		return ctx.Err()
	}
}

// take waits for a connection.
func (p *readers) take(ctx context.Context) (*reader, error) {
	if err := p.usable(ctx); err != nil {
		return nil, err
	}
	select {
	case r := <-p.free:
		return r, nil
	case <-p.closed:
		return nil, journal.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *readers) give(r *reader) { p.free <- r }

// close refuses further reads, waits for those that run and closes every
// connection.
func (p *readers) close() {
	close(p.closed)
	for range cap(p.free) {
		// Nothing is lost with an error of a connection that only reads.
		_ = (<-p.free).conn.Close()
	}
}
