package conversation

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
)

// maxOwners bounds how many conversations a client remembers.
const maxOwners = 16 << 10

// known is what a client remembers of a conversation: what never changes, and
// what only grows.
type known struct {
	owner  *identity.Identity // nil: ownerless, nobody matches but nobody (C-23.6)
	shared bool
	since  time.Time    // of the start
	passed atomic.Int64 // nothing waits in the inbox before this
}

// owns reports whether the caller is the owner: the same identity in all of its
// fields, so that neither a colleague nor a delegate is (C-2.4, C-23.2).
func (k *known) owns(caller *identity.Principal) bool {
	if caller == nil || k.owner == nil {
		return caller == nil && k.owner == nil
	}
	return caller.Identity == *k.owner
}

// pass notes that nothing waits in the inbox before a position.
func (k *known) pass(position journal.Seq) {
	for {
		old := k.passed.Load()
		if int64(position) <= old || k.passed.CompareAndSwap(old, int64(position)) {
			return
		}
	}
}

// owners remembers conversations whose owner has asked for them. It is bounded,
// the oldest entry makes room, and it holds no negative answer (C-23.8).
type owners struct {
	mu   sync.Mutex
	byID map[string]*known
	ring []string // ids in the order of their coming, from next on
	next int
}

func (o *owners) find(id string) (*known, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k, ok := o.byID[id]
	return k, ok
}

// add remembers a conversation, and returns what is already known of it.
func (o *owners) add(id string, k *known) *known {
	o.mu.Lock()
	defer o.mu.Unlock()
	if old, ok := o.byID[id]; ok {
		return old
	}
	if o.byID == nil {
		o.byID = make(map[string]*known)
	}
	if len(o.ring) < maxOwners {
		o.ring = append(o.ring, id)
	} else {
		delete(o.byID, o.ring[o.next])
		o.ring[o.next] = id
		o.next = (o.next + 1) % maxOwners
	}
	o.byID[id] = k
	return k
}
