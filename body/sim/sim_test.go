package sim_test

import (
	"context"
	"encoding/json/jsontext"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/bodytest"
	"github.com/parley-run/parley/body/sim"
)

func subject(w *sim.World) bodytest.Subject {
	b := sim.New(w)
	return bodytest.Subject{
		Adapter: b,
		Act:     bodytest.Step{Action: sim.Touch},
		Leave:   bodytest.Step{Action: sim.Write, Input: jsontext.Value(`"` + bodytest.Mark + `"`)},
		Look:    bodytest.Step{Action: sim.Read},
		Hang:    bodytest.Step{Action: sim.Hang},
		Unknown: bodytest.Step{Action: "fly"},
		Bad:     bodytest.Step{Action: sim.Write, Input: jsontext.Value(`{"text":`)},
		Alive:   w.IsAlive,
		Reopen:  func(*testing.T) body.Adapter { return sim.New(w) },
		Idle:    b.Idle,
	}
}

// L-31.3: the simulated body is held against the contract of every body.
func TestContract(t *testing.T) {
	bodytest.Run(t, func(t *testing.T) bodytest.Subject {
		w := sim.NewWorld()
		t.Cleanup(func() {
			if v := w.Violations(); len(v) > 0 {
				t.Errorf("violations: %q", v)
			}
		})
		return subject(w)
	})
}

// A world in a file is there for the next process.
func TestOpenWorld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "world")
		w, err := sim.OpenWorld(path)
		if err != nil {
			t.Fatal(err)
		}
		perform(t, sim.New(w), "x.1", "x.1.1")
		w.Close()
		if w, err = sim.OpenWorld(path); err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if diff := cmp.Diff([]body.Incarnation{"x.1"}, w.Alive()); diff != "" {
			t.Errorf("Alive (-want +got):\n%s", diff)
		}
		perform(t, sim.New(w), "x.2", "x.2.1")
		perform(t, sim.New(w), "x.2", "x.1.1")
		want := []string{
			"x.2.1 acts while the body of x.1 lives",
			"x.1.1 acts while the body of x.1 lives", "x.1.1 acts twice",
		}
		if diff := cmp.Diff(want, w.Violations()); diff != "" {
			t.Errorf("Violations (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"x.1.1", "x.2.1", "x.1.1"}, w.Acts()); diff != "" {
			t.Errorf("Acts (-want +got):\n%s", diff)
		}
	})
}

func perform(t *testing.T, b *sim.Body, of body.Incarnation, operation string) {
	t.Helper()
	_, err := b.Perform(t.Context(), body.Effect{
		Incarnation: of, Operation: operation, Action: sim.Touch, Begin: func(context.Context) error { return nil },
	})
	if err != nil {
		t.Fatalf("Perform = %v", err)
	}
}
