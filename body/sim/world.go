// Package sim is a body that is simulated, with faults on demand: for tests of
// what stands on leases, and for trials without a browser.
//
// Make a [World] and a [Body] in it, and hand the body to a registry of package
// lease. The world knows what really happened, whatever anybody believes: ask it
// for [World.Violations]. [Body.On] puts faults in its way.
//
// Simulated bodies prove the rules, and nothing about the real ones.
package sim

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/parley-run/parley/body"
)

// World is where a body acts. It outlives the adapter, as a real one would, and
// with [OpenWorld] the process too.
type World struct {
	mu         sync.Mutex
	file       *os.File // nil: in memory
	alive      map[body.Incarnation]string
	acts       []string
	violations []string
}

// NewWorld makes an empty world.
func NewWorld() *World { return &World{alive: map[body.Incarnation]string{}} }

// OpenWorld makes a world that is kept in a file, and goes on from what is there.
// A body that was alive when its process was killed is alive still.
func OpenWorld(path string) (*World, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	w := NewWorld()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		of, id, _ := strings.Cut(rest, " ")
		w.happen(verb, body.Incarnation(of), id)
	}
	w.file = file
	return w, lines.Err()
}

// Close closes the file of the world.
func (w *World) Close() error {
	if w.file == nil {
		return nil
	}
	return w.file.Close()
}

// happen makes something true, and judges it: nothing acts while the body of
// another incarnation lives, and nothing happens twice.
func (w *World) happen(verb string, of body.Incarnation, id string) {
	if w.file != nil {
		if _, err := fmt.Fprintf(w.file, "%s %s %s\n", verb, of, id); err != nil {
			w.violations = append(w.violations, "the world cannot be written: "+err.Error())
		}
	}
	switch verb {
	case "act":
		for other := range w.alive {
			if other != of {
				w.violations = append(w.violations, fmt.Sprintf("%s acts while the body of %s lives", id, other))
			}
		}
		if slices.Contains(w.acts, id) {
			w.violations = append(w.violations, id+" acts twice")
		}
		w.acts = append(w.acts, id)
		if _, ok := w.alive[of]; !ok {
			w.alive[of] = ""
		}
	case "end":
		delete(w.alive, of)
	}
}

// act carries out one operation; it brings the body of the incarnation to life.
func (w *World) act(of body.Incarnation, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.happen("act", of, id)
}

// end ends the body of one incarnation.
func (w *World) end(of body.Incarnation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.alive[of]; ok {
		w.happen("end", of, "")
	}
}

// write leaves a text on the body's page.
func (w *World) write(of body.Incarnation, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.alive[of] = text
}

// read returns the text that is on the page of the body.
func (w *World) read(of body.Incarnation) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.alive[of]
}

// IsAlive reports whether the body of an incarnation lives.
func (w *World) IsAlive(of body.Incarnation) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.alive[of]
	return ok
}

// Alive lists the incarnations whose bodies live.
func (w *World) Alive() (all []body.Incarnation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for of := range w.alive {
		all = append(all, of)
	}
	slices.Sort(all)
	return all
}

// Acts lists the operations that were carried out, in their order.
func (w *World) Acts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.acts)
}

// Violations lists what must never happen and did.
func (w *World) Violations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.violations)
}
