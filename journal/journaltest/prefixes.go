package journaltest

import (
	"iter"

	"github.com/parley-run/parley/journal"
)

// Prefixes yields every state that a crash can leave of recorded batches, as
// the batches to lay into an empty store: all prefixes in commit order, event
// by event, whatever the batches were, from the empty one to the whole. A
// batch over several streams is one unit. Rows ride with the last event of
// theirs. What is yielded must not be changed.
func Prefixes(batches [][]journal.Append) iter.Seq[[][]journal.Append] {
	var units [][]journal.Append
	for _, batch := range batches {
		if len(batch) != 1 || len(batch[0].Events) < 2 {
			units = append(units, batch)
			continue
		}
		whole := batch[0]
		for i, event := range whole.Events {
			unit := journal.Append{Stream: whole.Stream, Expect: whole.Expect, Events: []journal.Event{event}}
			if whole.Expect != journal.AtEnd {
				unit.Expect += journal.Seq(i)
			}
			if i == len(whole.Events)-1 {
				unit.Rows = whole.Rows
			}
			units = append(units, []journal.Append{unit})
		}
	}
	return func(yield func([][]journal.Append) bool) {
		for n := range len(units) + 1 {
			if !yield(units[:n]) {
				return
			}
		}
	}
}
