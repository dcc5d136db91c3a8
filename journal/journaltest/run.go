// Package journaltest is what a journal is, in executable form.
//
// A store is finished when [Run] passes, and a durable one when [RunDurable]
// does too. [Wrap] puts counters and faults around any store, for the tests of
// those who write into one.
package journaltest

import (
	"testing"

	"github.com/parley-run/parley/journal"
)

// Run holds a store against the contract of [journal.Store] (C-3.1 to C-3.6).
// Each call of open gives an empty store; Run closes it.
func Run(t *testing.T, open func(t *testing.T) journal.Store) {
	for _, group := range []struct {
		name string
		run  func(t *testing.T, s journal.Store)
	}{
		{"append", testAppend},
	} {
		t.Run(group.name, func(t *testing.T) {
			store := open(t)
			t.Cleanup(func() { store.Close() })
			group.run(t, store)
		})
	}
}
