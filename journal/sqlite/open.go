package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	engine "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// applicationID marks a file as a journal of Parley ("prly"); the file program
// and SQLite's own tools show it.
const applicationID = 0x70726c79

// busyTimeout is how long a lock of another process is waited for.
const busyTimeout = 10 * time.Second

var (
	errForeign = errors.New("it is a SQLite database, but no journal of Parley")
	errDamaged = errors.New("the file is damaged, or not a SQLite database")
)

// Open opens the journal in the file at path, and creates it, readable by its
// owner only, where there is none; the folder must exist. It brings an older
// schema up to date.
//
// It refuses, with one line that names the file: a file that is damaged or no
// SQLite database, a database of another program, and a journal whose schema
// is newer than this build.
func Open(ctx context.Context, path string, config Config) (*Store, error) {
	store, err := open(ctx, path, config)
	if err != nil {
		if isDamage(err) {
			err = fmt.Errorf("%w (%w)", errDamaged, err)
		}
		return nil, fmt.Errorf("open journal %q: %w", path, err)
	}
	return store, nil
}

// isDamage tells whether SQLite found the file unreadable; the migration meets
// it through another driver, whose errors have a code, too.
func isDamage(err error) bool {
	code := engine.ErrCode(err)
	if coded, ok := errors.AsType[interface {
		error
		Code() int
	}](err); ok {
		code = engine.ResultCode(coded.Code())
	}
	return code.ToPrimary() == engine.ResultNotADB || code.ToPrimary() == engine.ResultCorrupt
}

func open(ctx context.Context, path string, config Config) (_ *Store, err error) {
	if config.Readers <= 0 {
		config.Readers = 4
	}
	if config.Heads <= 0 {
		config.Heads = 16 << 10
	}
	if config.Tails == 0 {
		config.Tails = 8 << 20
	}
	if err := create(path); err != nil {
		return nil, err
	}
	if err := torn(path); err != nil {
		return nil, err
	}
	conn, err := connect(path, engine.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	if err := claim(conn); err != nil {
		return nil, err
	}
	if err := probe(conn); err != nil {
		return nil, err
	}
	if err := harden(conn); err != nil {
		return nil, err
	}
	if err := migrate(ctx, path); err != nil {
		return nil, err
	}
	s := &Store{tails: newTails(config.Tails)}
	if s.writer, err = newWriter(conn, &s.hub, s.tails, newHeads(config.Heads)); err != nil {
		return nil, err
	}
	if s.readers, err = openReaders(path, config.Readers); err != nil {
		return nil, err
	}
	s.writer.onCommit = config.OnCommit
	go s.writer.run()
	return s, nil
}

// create makes an empty file with mode 0600 before SQLite sees it; the files
// beside it inherit the mode. A file that exists is not touched: opening and
// closing it here would drop the locks that this process may hold on it.
func create(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return errors.Unwrap(err) // without the path, which the caller names
	}
	return file.Close()
}

func connect(path string, mode engine.OpenFlags) (*engine.Conn, error) {
	conn, err := engine.OpenConn(path, mode)
	if err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(busyTimeout)
	return conn, nil
}

// claim makes sure that the file is a journal of Parley, and marks an empty one.
func claim(conn *engine.Conn) error {
	id, err := number(conn, `pragma application_id`)
	if err != nil || id == applicationID {
		return err
	}
	tables, err := number(conn, `select count(*) from sqlite_schema`)
	if err != nil {
		return err
	}
	if id != 0 || tables != 0 {
		return errForeign
	}
	return sqlitex.ExecuteTransient(conn, fmt.Sprintf(`pragma application_id = %d`, applicationID), nil)
}

// harden turns on the write-ahead log and the sync of every commit, and looks
// whether they are on: on some file systems the former is not to be had.
func harden(conn *engine.Conn) error {
	var mode string
	err := sqlitex.ExecuteTransient(conn, `pragma journal_mode = wal`, &sqlitex.ExecOptions{
		ResultFunc: func(stmt *engine.Stmt) error {
			mode = stmt.ColumnText(0)
			return nil
		},
	})
	if err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("no write-ahead log on this file system: the journal mode is %q", mode)
	}
	for _, pragma := range []string{
		`pragma synchronous = full`,
		`pragma fullfsync = on`,      // on macOS the plain call does not reach the disk
		`pragma cache_size = -16384`, // 16 MiB, for the index, in which streams lie scattered
	} {
		if err := sqlitex.ExecuteTransient(conn, pragma, nil); err != nil {
			return err
		}
	}
	const full = 2
	level, err := number(conn, `pragma synchronous`)
	if err == nil && level != full {
		err = fmt.Errorf("synchronous is %d, want %d", level, full)
	}
	return err
}

// number returns the one integer that a query gives.
func number(conn *engine.Conn, query string) (n int64, err error) {
	err = sqlitex.ExecuteTransient(conn, query, &sqlitex.ExecOptions{
		ResultFunc: func(stmt *engine.Stmt) error {
			n = stmt.ColumnInt64(0)
			return nil
		},
	})
	return n, err
}

func openReaders(path string, n int) (_ *readers, err error) {
	pool := &readers{free: make(chan *reader, n), closed: make(chan struct{})}
	defer func() {
		if err != nil {
			close(pool.free)
			for r := range pool.free {
				r.conn.Close()
			}
		}
	}()
	for range n {
		conn, err := connect(path, engine.OpenReadOnly)
		if err != nil {
			return nil, err
		}
		r, err := newReader(conn)
		pool.free <- r
		if err != nil {
			return nil, err
		}
	}
	return pool, nil
}

// probe reads the first row of every table, so that a file whose damage can be
// seen there is refused at once. Looking at all of it would take time in
// proportion to its size.
func probe(conn *engine.Conn) error {
	var queries []string
	err := sqlitex.ExecuteTransient(conn, `select format('select * from "%w" limit 1', name) from sqlite_schema where type = 'table'`, &sqlitex.ExecOptions{
		ResultFunc: func(stmt *engine.Stmt) error {
			queries = append(queries, stmt.ColumnText(0))
			return nil
		},
	})
	if err != nil {
		return err
	}
	for _, query := range queries {
		if err := sqlitex.ExecuteTransient(conn, query, nil); err != nil {
			return err
		}
	}
	return nil
}

// torn refuses a file that ends in the middle of a page, where SQLite would
// read zeros. With a write-ahead log beside it such an end is what a crash may
// leave, and is mended from there.
func torn(path string) error {
	const smallestPage = 512
	file, err := os.Stat(path)
	if err != nil {
		return errors.Unwrap(err)
	}
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
		return nil
	}
	if file.Mode().IsRegular() && file.Size()%smallestPage != 0 {
		return errDamaged
	}
	return nil
}
