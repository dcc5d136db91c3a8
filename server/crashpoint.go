//go:build crashpoint

package server

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/parley-run/parley/journal"
)

// atCrashPoint makes the process kill itself at its k-th append, before the
// write or after it, as PARLEY_CRASH_AT=before:3 or after:3 says. It is there in
// a binary that is built with the tag crashpoint, for the tests of K12.
func atCrashPoint(store journal.Store) journal.Store {
	when, count, _ := strings.Cut(os.Getenv("PARLEY_CRASH_AT"), ":")
	k, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		return store
	}
	return &crashing{Store: store, after: when == "after", k: k}
}

type crashing struct {
	journal.Store
	after bool
	k     int64
	n     atomic.Int64
}

func (c *crashing) Append(ctx context.Context, batch ...journal.Append) error {
	now := c.n.Add(1) == c.k
	if now && !c.after {
		die()
	}
	err := c.Store.Append(ctx, batch...)
	if now {
		die()
	}
	return err
}

// die ends the process as kill -9 does.
func die() {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
