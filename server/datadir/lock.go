package datadir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/gofrs/flock"
)

// lockPause is how long a try for a lock waits for the next one.
const lockPause = 20 * time.Millisecond

// Lock is the right to be the one server of a directory. It ends with
// [Lock.Unlock] or with the process, however that ends.
type Lock struct {
	dir  Dir
	file *flock.Flock
}

// HeldError says that another process is the server of the directory.
type HeldError struct {
	Dir string
	PID int // 0 where the process has not said it yet
}

// Error names the directory and the process.
func (e *HeldError) Error() string {
	by := "another process"
	if e.PID != 0 {
		by = "process " + strconv.Itoa(e.PID)
	}
	return fmt.Sprintf("data directory %s is held by %s", e.Dir, by)
}

// Lock takes the lock and writes the process's id into it. It does not wait.
//
// Errors: [HeldError].
func (d Dir) Lock() (*Lock, error) {
	file := flock.New(d.file("lock"), flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDWR))
	ok, err := file.TryLock()
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w; give yourself the rights to it, or name another with --data DIR", d.path, err)
	}
	if !ok {
		return nil, &HeldError{Dir: d.path, PID: d.holder()}
	}
	lock := &Lock{dir: d, file: file}
	// An address of a server that was killed would send clients to a stranger.
	if err := d.removeAddresses(); err != nil {
		return nil, lock.abandon(err)
	}
	if err := os.WriteFile(file.Path(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, lock.abandon(err)
	}
	return lock, nil
}

// LockWithin is Lock with patience: it tries again until the wait is over or
// ctx is done.
//
// Errors: [HeldError].
func (d Dir) LockWithin(ctx context.Context, wait time.Duration) (*Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		lock, err := d.Lock()
		if _, held := err.(*HeldError); !held {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(lockPause):
		}
	}
}

// Held reports whether a process holds the lock. It is a look at a moving
// thing, good for deciding where to ask and for nothing else.
func (d Dir) Held() bool {
	if _, err := os.Stat(d.file("lock")); err != nil {
		return false
	}
	file := flock.New(d.file("lock"), flock.SetFlag(os.O_RDONLY))
	ok, err := file.TryRLock()
	if err != nil || !ok {
		return err == nil
	}
	_ = file.Unlock()
	return false
}

// Unlock takes the address away and gives the lock back.
func (l *Lock) Unlock() error {
	if err := errors.Join(l.dir.removeAddresses(), l.dir.remove(certificateFile)); err != nil {
		return l.abandon(err)
	}
	if err := os.Truncate(l.file.Path(), 0); err != nil {
		return l.abandon(err)
	}
	return l.file.Unlock()
}

// abandon gives the lock back after err.
func (l *Lock) abandon(err error) error {
	_ = l.file.Unlock() // err came first and says more
	return fmt.Errorf("data directory %s: %w", l.dir.path, err)
}

// holder reads the id of the process that holds the lock, 0 if it is not there.
func (d Dir) holder() int {
	data, err := d.read("lock")
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(data)))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}
