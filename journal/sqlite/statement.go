package sqlite

import (
	"fmt"

	engine "zombiezen.com/go/sqlite"

	"github.com/parley-run/parley/journal"
)

// prepare compiles statements that live as long as their connection.
func prepare(conn *engine.Conn, statements map[string]**engine.Stmt) error {
	for query, stmt := range statements {
		prepared, err := conn.Prepare(query)
		if err != nil {
			return fmt.Errorf("prepare %q: %w", query, err)
		}
		*stmt = prepared
	}
	return nil
}

// run executes a statement of which no row is wanted.
func run(stmt *engine.Stmt) error {
	if _, err := stmt.Step(); err != nil {
		return err
	}
	return stmt.Reset()
}

// bindData binds JSON as text, so that people and SQLite's functions can read
// it; no data is NULL.
func bindData(stmt *engine.Stmt, param int, data []byte) {
	if len(data) == 0 {
		stmt.BindNull(param)
		return
	}
	stmt.BindText(param, string(data))
}

func columnData(stmt *engine.Stmt, col int) []byte {
	if stmt.ColumnIsNull(col) {
		return nil
	}
	data := make([]byte, stmt.ColumnLen(col))
	stmt.ColumnBytes(col, data)
	return data
}

const selectHead = `select seq from event where stream = ?1 order by seq desc limit 1`

// headQuery finds the end of a stream: one search of the index (C-3.4).
type headQuery struct{ stmt *engine.Stmt }

// of returns the next sequence of a stream, 0 if it does not exist.
func (q headQuery) of(stream string) (journal.Seq, error) {
	q.stmt.BindText(1, stream)
	found, err := q.stmt.Step()
	if err != nil {
		return 0, err
	}
	var next journal.Seq
	if found {
		next = journal.Seq(q.stmt.ColumnInt64(0)) + 1
	}
	return next, q.stmt.Reset()
}
