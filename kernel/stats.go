package kernel

import (
	"context"

	"github.com/parley-run/parley/journal"
)

// Stats is what a runtime is at, for metrics and measurements.
type Stats struct {
	Hot   int // executions that are held in memory
	Busy  int // of these, at work: not parked
	Stuck int // executions that cannot go on with this build, as of their last try (K8)
}

// Stats tells what the runtime is at. It reads nothing.
func (rt *Runtime) Stats() Stats {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return Stats{Hot: len(rt.hot), Busy: len(rt.hot) - rt.idle.Len(), Stuck: len(rt.stuck)}
}

// maxCounted is how many inboxes [Runtime.Backlog] looks at.
const maxCounted = 4096

// Backlog is how many messages wait in the inboxes of executions at work, behind
// the one that each took last; an execution that is parked has none waiting.
// Duplicates that will be skipped count. Executions whose log is being read are
// left out, and so is what lies beyond 4,096 executions, and an inbox that cannot
// be read. It looks at the end of one stream for each of them.
func (rt *Runtime) Backlog(ctx context.Context) int {
	type place struct {
		chain string
		taken journal.Seq
	}
	var places []place
	rt.mu.Lock()
	for chain, a := range rt.hot {
		taken := journal.Seq(a.taken.Load())
		if a.parking.element == nil && taken >= 0 && len(places) < maxCounted {
			places = append(places, place{chain, taken})
		}
	}
	rt.mu.Unlock()
	waiting := 0
	for _, p := range places {
		next, _, err := rt.config.Store.HeadOf(ctx, InboxStream(p.chain))
		if err == nil && next > p.taken {
			waiting += int(next - p.taken)
		}
	}
	return waiting
}
