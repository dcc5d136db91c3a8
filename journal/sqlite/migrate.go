package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the database/sql driver that goose needs
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date, and refuses one that is newer than
// this build. It uses a handle of its own, closed when it returns.
func migrate(ctx context.Context, path string) (err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return err
	}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: fmt.Sprintf("_pragma=busy_timeout(%d)&_pragma=synchronous(full)", busyTimeout.Milliseconds())}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return err
	}
	defer db.Close()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > target {
		return fmt.Errorf("its schema has version %d, and this build of Parley knows versions up to %d: use a newer build", current, target)
	}
	if current == target {
		return nil
	}
	_, err = provider.Up(ctx)
	return err
}
