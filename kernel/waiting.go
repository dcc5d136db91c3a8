package kernel

import (
	"context"

	"github.com/parley-run/parley/journal"
)

// waitingScan is how many inbox events per message of the limit [Waiting]
// looks at; what lies between messages that wait is duplicates and other
// topics.
const waitingScan = 16

// Waiting counts the messages of a topic that wait in a chain's inbox: past
// the newest consumption on record, without duplicates (C-5.4). It stops at
// limit, and returns limit as well where the inbox holds more events than it
// looks at, 16 for each message of the limit. consumed is the position up to
// which the topic is consumed; it never falls, so that a caller may go on
// counting inbox events from there and ask again only when there are many.
//
// It reads the newest generation's log, like a wake of the execution.
//
// Errors: [ErrNotFound].
func Waiting(ctx context.Context, store journal.Store, chain, topic string, limit int) (waiting int, consumed journal.Seq, err error) {
	inbox, err := readInboxReader(ctx, store, chain)
	if err != nil {
		return 0, 0, err
	}
	consumed = inbox.cursors[topic]
	for from := consumed; from < consumed+journal.Seq(limit*waitingScan); {
		events, err := store.ReadRange(ctx, InboxStream(chain), from, logBlock, journal.Forward)
		if err != nil {
			return 0, 0, err
		}
		for _, event := range events {
			message, err := DecodeEvent[Message](event)
			if err != nil || event.Kind != KindMessage || message.Topic != topic {
				continue
			}
			if key, ok := message.key(event.ID); ok {
				if inbox.window(topic).has(key) {
					continue
				}
				inbox.window(topic).add(key)
			}
			if waiting++; waiting == limit {
				return waiting, consumed, nil
			}
		}
		if len(events) < logBlock {
			return waiting, consumed, nil
		}
		from += logBlock
	}
	return limit, consumed, nil
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
