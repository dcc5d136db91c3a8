package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/parley-run/parley/journal"
)

// Open makes a registry from what is on record. Whatever was occupied is blocked
// from then on, and every token of an earlier process is invalid (L-30.1).
// Nothing is sent, typed or joined again (L-30.4). Exactly one registry at a time
// may stand on a store (L-1.2): the lock for that is the host's (L-7.2), and where
// there are two after all, the first to write makes the other one fail.
//
// A record that cannot be read blocks its resource, and so does one that cannot
// be looked for; only a store that fails altogether is an error (L-7.5).
func Open(ctx context.Context, config Config) (*Registry, error) {
	if config.Store == nil || config.Granted == nil {
		return nil, errors.New("a lease registry needs a store, and a hook for grants")
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	r := &Registry{config: config, slots: map[Resource]*slot{}, began: time.Now()}
	for resource, adapter := range config.Bodies {
		if !isWord(string(resource), 32) || adapter == nil {
			return nil, fmt.Errorf("resource %q: a key has 1 to 32 lower-case letters and underscores, and an adapter", resource)
		}
		found, err := load(ctx, config.Store, resource)
		if err != nil {
			return nil, fmt.Errorf("read the leases of %s: %w", resource, err)
		}
		s := &slot{resource: resource, adapter: adapter, turn: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
		s.state.Store(&found)
		s.checks.Store(&checks{})
		r.slots[resource] = s
		r.resources = append(r.resources, resource)
	}
	slices.Sort(r.resources)
	for _, resource := range r.resources {
		if _, err := r.apply(ctx, r.slots[resource], restart{}); err != nil {
			return nil, fmt.Errorf("block the leases of %s: %w", resource, err)
		}
	}
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, resource := range r.resources {
		s := r.slots[resource]
		s.adapter.Attach(host{r, s})
		boot := s.state.Load().claim
		r.loops.Go(func() { r.loop(s, boot) })
	}
	return r, nil
}

// isWord reports whether a text is 1 to most lower-case letters and underscores.
func isWord(text string, most int) bool {
	for _, c := range []byte(text) {
		if c != '_' && (c < 'a' || c > 'z') {
			return false
		}
	}
	return text != "" && len(text) <= most
}

// loadBlock is how many events are read at once.
const loadBlock = 256

// load rebuilds the state of a resource. It reads back to the newest release,
// which holds all that is left of what was before, so that a stream of years
// opens as fast as one of a day.
func load(ctx context.Context, store journal.Store, resource Resource) (state, error) {
	var tail []journal.Event // newest first
	for from := journal.Seq(math.MaxInt64); from >= 0; {
		block, err := store.ReadRange(ctx, StreamOf(resource), from, loadBlock, journal.Backward)
		if err != nil {
			return state{}, err
		}
		if i := slices.IndexFunc(block, isRelease); i >= 0 {
			tail = append(tail, block[:i+1]...)
			break
		}
		if tail = append(tail, block...); len(block) < loadBlock {
			break
		}
		from = block[len(block)-1].Seq - 1
	}
	slices.Reverse(tail)
	return rebuild(resource, tail), nil
}

// isRelease reports whether an event is a release that can be read.
func isRelease(e journal.Event) bool {
	if e.Kind != (released{}).kind() {
		return false
	}
	_, err := decode(e)
	return err == nil
}

// rebuild folds events that begin with the stream or with a release. What cannot
// be read, or does not follow, leaves the resource blocked, with no claim that
// anybody could recover: whose body lives is not known then.
func rebuild(resource Resource, events []journal.Event) state {
	s := state{resource: resource}
	for i, e := range events {
		var err error
		if i == 0 && isRelease(e) {
			s, err = s.opened(e)
		} else {
			s, err = s.read(e)
		}
		if err != nil {
			next := events[len(events)-1].Seq + 1
			return state{resource: resource, next: next, claim: &claim{blocked: Damaged, deadToken: true, since: e.Time}}
		}
	}
	return s
}

// opened is the state after a release, whatever stood before it.
func (s state) opened(e journal.Event) (state, error) {
	found, err := decode(e)
	if err != nil {
		return state{}, err
	}
	s.requests, s.next = found.(released).Requests, e.Seq+1
	return s, nil
}

// read folds the next event of the stream.
func (s state) read(e journal.Event) (state, error) {
	if e.Seq != s.next {
		return state{}, errMisfit
	}
	found, err := decode(e)
	if err != nil {
		return state{}, err
	}
	return s.after([]event{found}, e.Time)
}
