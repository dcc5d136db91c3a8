package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	engine "zombiezen.com/go/sqlite"

	"github.com/parley-run/parley/journal"
)

// The sync is real, and its failure is seen: with /dev/null under the
// write-ahead log every write succeeds and only the sync fails (EINVAL), with
// /dev/full the write itself does.
func TestFailingDevice(t *testing.T) {
	for device, cause := range map[string]engine.ResultCode{"/dev/null": engine.ResultIOErrFsync, "/dev/full": engine.ResultFull} {
		t.Run(filepath.Base(device), func(t *testing.T) {
			path := journalPath(t)
			store := openAt(t, path, Config{})
			if err := store.Append(t.Context(), fact("s", 0)); err != nil {
				t.Fatal(err)
			}
			// Fold the log into the file first, as reading from it will not work.
			if _, err := number(store.writer.conn, `pragma wal_checkpoint(truncate)`); err != nil {
				t.Fatal(err)
			}
			restore := replaceLog(t, path, device)
			err := store.Append(t.Context(), fact("s", 1))
			if !errors.Is(err, journal.ErrPoisoned) || engine.ErrCode(err) != cause {
				t.Errorf("Append on %s: %v, want ErrPoisoned because of %s", device, err, cause)
			}
			wantPoisoned(t, store)
			restore()
			wantPoisoned(t, store) // a disk that works again changes nothing
			if err := store.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			store = openAt(t, path, Config{})
			wantHead(t, store, "s", 1)
			if err := store.Append(t.Context(), fact("s", 1)); err != nil {
				t.Errorf("Append after opening again: %v", err)
			}
		})
	}
}

// replaceLog puts a device under every descriptor of the write-ahead log. It
// returns what puts the log back.
func replaceLog(t *testing.T, path, device string) (restore func()) {
	t.Helper()
	file, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	saved := make(map[int]int)
	for _, entry := range entries {
		if name, err := os.Readlink("/proc/self/fd/" + entry.Name()); err != nil || name != path+"-wal" {
			continue
		}
		var fd int
		if _, err := fmt.Sscan(entry.Name(), &fd); err != nil {
			t.Fatal(err)
		}
		if saved[fd], err = syscall.Dup(fd); err != nil {
			t.Fatal(err)
		}
		dup(t, int(file.Fd()), fd)
	}
	if len(saved) == 0 {
		t.Fatal("no descriptor of the write-ahead log is open")
	}
	return func() {
		for fd, log := range saved {
			dup(t, log, fd)
			syscall.Close(log)
		}
	}
}

func dup(t *testing.T, from, to int) {
	t.Helper()
	if err := syscall.Dup3(from, to, syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
}
