package kernel

import (
	"context"

	"github.com/parley-run/parley/journal"
)

// waitingScan is how many inbox events per message of the limit [Waiting]
// looks at from the first message that waits on; what lies between messages
// that wait is duplicates and other topics.
const waitingScan = 16

// Waiting counts the messages of a topic that wait in a chain's inbox: past
// the newest consumption on record, without duplicates (C-5.4). It stops at
// limit, and returns limit as well where the inbox holds more events than it
// looks at, 16 for each message of the limit.
//
// passed is the position up to which nothing waits: what lies before it is
// consumed, or a duplicate that will be skipped. It never falls, so that a
// caller may go on counting inbox events from there and ask again only when
// there are many. from is what an earlier call returned as passed, 0 the first
// time; nothing before it is looked at again.
//
// It reads the newest generation's log, like a wake of the execution.
//
// Errors: [ErrNotFound].
func Waiting(ctx context.Context, store journal.Store, chain, topic string, from journal.Seq, limit int) (waiting int, passed journal.Seq, err error) {
	inbox, err := readInboxReader(ctx, store, chain)
	if err != nil {
		return 0, 0, err
	}
	passed = max(from, inbox.cursors[topic])
	for from = passed; from < passed+journal.Seq(limit*waitingScan); from += logBlock {
		events, err := store.ReadRange(ctx, InboxStream(chain), from, logBlock, journal.Forward)
		if err != nil {
			return 0, 0, err
		}
		for _, event := range events {
			if inbox.waits(event, topic) {
				waiting++
			}
			if waiting == 0 {
				passed = event.Seq + 1
			}
			if waiting == limit {
				return waiting, passed, nil
			}
		}
		if len(events) < logBlock {
			return waiting, passed, nil
		}
	}
	return limit, passed, nil
}

// waits reports whether an inbox event is a message that a Receive of the topic
// would deliver, and takes it for delivered from then on.
func (r *inboxReader) waits(event journal.Event, topic string) bool {
	message, err := DecodeEvent[Message](event)
	if err != nil || event.Kind != KindMessage || message.Topic != topic {
		return false
	}
	if key, ok := message.key(event.ID); ok {
		if r.window(topic).has(key) {
			return false
		}
		r.window(topic).add(key)
	}
	return true
}

// readInboxReader finds where a chain stands in its inbox, as its log tells.
func readInboxReader(ctx context.Context, store journal.Store, chain string) (inboxReader, error) {
	generation, ok, err := HeadGeneration(ctx, store, chain)
	if err == nil && !ok {
		err = ErrNotFound
	}
	if err != nil {
		return inboxReader{}, err
	}
	started, _, err := readStarted(ctx, store, chain, generation)
	if err != nil {
		return inboxReader{}, err
	}
	inbox := newInboxReader(started)
	for from := journal.Seq(1); ; from += logBlock {
		events, err := store.ReadRange(ctx, StreamOf(chain, generation), from, logBlock, journal.Forward)
		if err != nil {
			return inboxReader{}, err
		}
		for _, event := range events {
			if event.Kind != KindConsumed {
				continue
			}
			consumed, err := DecodeEvent[Consumed](event)
			if err != nil {
				return inboxReader{}, err
			}
			inbox.consume(consumed)
		}
		if len(events) < logBlock {
			return inbox, nil
		}
	}
}
