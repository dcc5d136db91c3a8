package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/sim"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/sqlite"
	"github.com/parley-run/parley/lease"
)

// killPoints are where a process kills itself: around a write, and in each step of
// an effect and of a stop.
var killPoints = map[string]sim.Point{
	"before a write": -1, "after a write": -2,
	"reserved": sim.BeforeBegin, "begun": sim.AfterBegin, "acted": sim.AfterAct,
	"let through": sim.AfterGuard, "stopped": sim.AfterStop, "checked": sim.AtCheck,
}

const (
	killVariable = "PARLEY_LEASE_KILL" // place, point and hit, in the process that is to die
	separator    = "|"
)

// A process is killed (SIGKILL) at each of eight points, at several hits of each,
// over one store and one world, in which the orphans of the killed live on. After
// each kill the store and the world agree: a body that lives is on record, and
// blocked; no effect happened twice, or while another body lived (L-7, L-30).
func TestKill(t *testing.T) {
	if death, ok := os.LookupEnv(killVariable); ok {
		liveUntilKilled(t, death)
		return
	}
	hits := []int{1, 2, 3}
	if testing.Short() || raceEnabled {
		hits = []int{2}
	}
	place := t.TempDir()
	for point := range killPoints {
		for _, hit := range hits {
			output, err := liveAgain(t, place+separator+point+separator+strconv.Itoa(hit))
			exit, _ := errors.AsType[*exec.ExitError](err)
			if exit == nil || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the child that was to die %s, hit %d: %v\n%s", point, hit, err, output)
			}
			agree(t, place, fmt.Sprintf("killed %s, hit %d", point, hit))
		}
	}
	if output, err := liveAgain(t, place+separator+"never"+separator+"0"); err != nil {
		t.Fatalf("the child that was to live: %v\n%s", err, output)
	}
	if alive := agree(t, place, "after a whole life"); len(alive) > 0 {
		t.Errorf("bodies of %v live after a whole life", alive)
	}
}

// liveAgain runs this test binary once more.
func liveAgain(t *testing.T, death string) ([]byte, error) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKill$", "-test.count=1")
	child.Env = append(os.Environ(), killVariable+"="+death)
	return child.CombinedOutput()
}

// openPlace opens the registry of a place, whose every turn is over if sweeping.
func openPlace(t *testing.T, place string, sweeping func() bool, wrap func(*journaltest.Store, *sim.Body)) (*lease.Registry, *sim.World) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(place, "journal.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	world, err := sim.OpenWorld(filepath.Join(place, "world"))
	if err != nil {
		t.Fatal(err)
	}
	wrapped, b := journaltest.Wrap(store), sim.New(world)
	if wrap != nil {
		wrap(wrapped, b)
	}
	r, err := lease.Open(t.Context(), lease.Config{
		Store: wrapped, Bodies: map[lease.Resource]body.Adapter{lease.Browser: b},
		Granted:  func(context.Context, lease.Use) bool { return true },
		Operator: func(context.Context, identity.Identity) bool { return true },
		Over:     func(context.Context, lease.Caller) bool { return sweeping() },
		Log:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		store.Close()
		world.Close()
	})
	return r, world
}

// agree holds the record of a place against its world, as a start finds them.
func agree(t *testing.T, place, when string) (alive []body.Incarnation) {
	t.Helper()
	t.Run(when, func(t *testing.T) {
		r, world := openPlace(t, place, func() bool { return false }, nil)
		s := r.Status()[0]
		if v := world.Violations(); len(v) > 0 {
			t.Errorf("violations: %q", v)
		}
		if s.State == lease.Held {
			t.Errorf("held after a restart: %+v", s)
		}
		for _, of := range world.Alive() {
			alive = append(alive, of)
			if s.State != lease.RecoveryRequired || s.Incarnation != of {
				t.Errorf("the body of %s lives, and the record says %+v", of, s)
			}
		}
	})
	return alive
}

// liveUntilKilled acquires, acts and releases, and recovers what others left
// behind, until it is killed or has done so a few times.
func liveUntilKilled(t *testing.T, death string) {
	parts := strings.Split(death, separator)
	place, point := parts[0], parts[1]
	hit, err := strconv.Atoi(parts[2])
	if err != nil {
		t.Fatal(err)
	}
	var hits atomic.Int32
	die := func(at string) {
		if at == point && hits.Add(1) == int32(hit) {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal is on its way
		}
	}
	r, _ := openPlace(t, place, func() bool { return true }, func(store *journaltest.Store, b *sim.Body) {
		store.Before(func(int, []journal.Append) error { die("before a write"); return nil })
		store.After(func(int, []journal.Append) error { die("after a write"); return nil })
		for name, at := range killPoints {
			if at >= 0 {
				b.On(at, func(context.Context, body.Incarnation) error { die(name); return nil })
			}
		}
	})
	for range 6 {
		claim, err := r.Acquire(t.Context(), ann, lease.Browser, 0)
		for err != nil {
			busy, ok := errors.AsType[*lease.BusyError](err)
			if !ok {
				t.Fatal(err)
			}
			if err := r.Recover(t.Context(), operator, lease.Browser, busy.Incarnation); err != nil && !errors.Is(err, lease.ErrStale) {
				t.Fatal(err) // stale: the sweep was faster
			}
			claim, err = r.Acquire(t.Context(), ann, lease.Browser, 0)
		}
		g, err := r.Guard(ann, lease.Browser, claim.Token)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := g.Do(t.Context(), sim.Touch, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
