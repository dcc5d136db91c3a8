package conversation

import (
	"context"
	"math"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// BargeInSource watches inboxes for the messages that cut a turn while it runs
// (C-11.8). It stands outside the body: what it brings is no fact, and what an
// interruption did is in the loop's checkpoints (C-14.6). [InboxBargeIn] is the
// standard one.
type BargeInSource interface {
	// Watch subscribes to the inbox of a conversation, whose newest generation is
	// the one given, until ctx is done.
	Watch(ctx context.Context, conversation string, generation int) (Arrivals, error)
}

// Arrivals are the messages of an inbox: those that wait when they are first
// read, and those that land from then on. They belong to one goroutine at a time.
type Arrivals interface {
	// Read returns those behind the last read, in order, and none where there are
	// no more for now.
	Read(ctx context.Context) ([]Arrival, error)

	// Hint receives after a message landed. It is closed when the subscription
	// ends.
	Hint() <-chan struct{}
}

// Arrival is a message in an inbox.
type Arrival struct {
	ID      string // as its sender chose it; may be empty
	Message kernel.Message
}

// key is the idempotency key that the message bears out: that of the sender and
// the id with which it was stored, "" where it has none (C-14.10). A message of
// the host's own is stored under the key itself (C-12.12).
func (a Arrival) key() string {
	switch {
	case a.ID == "" || a.Message.Host:
		return a.ID
	case a.Message.From == nil:
		return identity.Identity{}.SenderKey(a.ID)
	}
	return a.Message.From.SenderKey(a.ID)
}

// InboxBargeIn returns the standard source, which reads the inboxes of a journal
// (C-14.2).
func InboxBargeIn(store journal.Store) BargeInSource { return inboxSource{store} }

type inboxSource struct{ store journal.Store }

// Watch subscribes, and leaves the first look to the first read (C-14.12).
func (s inboxSource) Watch(ctx context.Context, conversation string, generation int) (Arrivals, error) {
	hint, err := s.store.Subscribe(ctx, kernel.InboxStream(conversation))
	return &inboxArrivals{store: s.store, chain: conversation, generation: generation, hint: hint}, err
}

// inboxArrivals reads one inbox.
type inboxArrivals struct {
	store      journal.Store
	chain      string
	generation int
	hint       <-chan struct{}

	placed bool
	place  journal.Seq // the next event to read
}

// arrivalBlock is how many events of an inbox are read at once.
const arrivalBlock = 64

// Read returns the next messages of a block; the block of events that are none
// is passed over.
func (a *inboxArrivals) Read(ctx context.Context) ([]Arrival, error) {
	if !a.placed {
		place, err := a.begin(ctx)
		if err != nil {
			return nil, err
		}
		a.place, a.placed = place, true
	}
	for {
		events, err := a.store.ReadRange(ctx, kernel.InboxStream(a.chain), a.place, arrivalBlock, journal.Forward)
		if err != nil {
			return nil, err
		}
		a.place += journal.Seq(len(events))
		var arrivals []Arrival
		for _, event := range events {
			message, err := kernel.DecodeEvent[kernel.Message](event)
			if err == nil && event.Kind == kernel.KindMessage && message.Topic == Topic {
				arrivals = append(arrivals, Arrival{ID: event.ID, Message: message})
			}
		}
		if len(arrivals) > 0 || len(events) < arrivalBlock {
			return arrivals, nil
		}
	}
}

// begin is the place of the first message that waits; where that is not known,
// the end of the inbox, so that no turn is cut on a guess (C-14.5).
func (a *inboxArrivals) begin(ctx context.Context) (journal.Seq, error) {
	place, known, err := PendingInbox(ctx, a.store, a.chain, a.generation)
	if err == nil && !known {
		place, _, err = a.store.HeadOf(ctx, kernel.InboxStream(a.chain))
	}
	return place, err
}

// Hint is the store's subscription.
func (a *inboxArrivals) Hint() <-chan struct{} { return a.hint }

// Bounds of the look back for the newest consumption (C-14.4).
const (
	maxLookBack    = 8192
	firstLookBlock = 16 // events; doubled from read to read, up to blockEvents
)

// PendingInbox returns the place in a conversation's inbox behind the newest
// message that it consumed, from which on messages wait, and false where the
// look back over its log, at most 8,192 events of the newest generation, ends
// without telling (C-14.4, C-14.5).
func PendingInbox(ctx context.Context, store journal.Store, conversation string, generation int) (place journal.Seq, known bool, err error) {
	stream := kernel.StreamOf(conversation, generation)
	from, block := journal.Seq(math.MaxInt64), firstLookBlock
	for seen := 0; seen < maxLookBack; block = min(2*block, blockEvents) {
		events, err := store.ReadRange(ctx, stream, from, min(block, maxLookBack-seen), journal.Backward)
		if err != nil || len(events) == 0 {
			return 0, false, err
		}
		for _, event := range events {
			if place, known := consumedUpTo(event); known {
				return place, true, nil
			}
		}
		seen += len(events)
		from = events[len(events)-1].Seq - 1
	}
	return 0, false, nil
}

// consumedUpTo returns the inbox cursor that an event bears: a consumption, or
// the start of a generation, into which the kernel carried it.
func consumedUpTo(event journal.Event) (journal.Seq, bool) {
	switch event.Kind {
	case kernel.KindConsumed:
		consumed, err := kernel.DecodeEvent[kernel.Consumed](event)
		return consumed.Cursor, err == nil && consumed.Topic == Topic
	case kernel.KindStarted:
		started, err := kernel.DecodeEvent[kernel.Started](event)
		return started.Cursors[Topic], err == nil
	}
	return 0, false
}
