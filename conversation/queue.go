package conversation

import (
	"cmp"
	"context"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// share is how many messages of one asker may wait.
func (s *Shared) share() int { return cmp.Or(s.MaxQueuedPerAsker, DefaultMaxQueuedPerAsker) }

// Waiting is a message that waits for its turn.
type Waiting struct {
	Asker *identity.Identity `json:"asker,omitzero"`
	Time  time.Time          `json:"time"`          // of its issue
	Text  string             `json:"text,omitzero"` // of the caller's own
	Mine  bool               `json:"mine,omitzero"`
}

// Waiting lists the messages that wait in a conversation, in the order in which
// they will be taken. Whose they are everybody who may read is told, as in the
// transcript; what they say only who sent them.
//
// Errors: [ErrNotFound].
func (c *Client) Waiting(ctx context.Context, caller *identity.Principal, id string) ([]Waiting, error) {
	a, err := c.authorize(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	waiting := []Waiting{}
	err = c.eachWaiting(ctx, a.known, id, func(b body) bool {
		if b.Kind == KindUser {
			w := Waiting{Asker: b.Asker, Time: time.UnixMilli(b.IssuedAt).UTC(), Mine: sameAsker(b.Asker, asker(caller))}
			if w.Mine {
				w.Text = b.Text
			}
			waiting = append(waiting, w)
		}
		return true
	})
	return waiting, uniform(err)
}

// checkRoom refuses an envelope for which there is no room in the queue: in a
// conversation of one owner, because limit messages wait, in a shared one because
// as many of its asker's do as may.
func (c *Client) checkRoom(ctx context.Context, a access, b body, limit int) error {
	if a.shared {
		return c.checkShare(ctx, a, b)
	}
	return c.checkQueue(ctx, a, b.ConversationID, limit)
}

// checkShare refuses an envelope of an asker of whom as many wait as may (C-39.4);
// what says something, and what does not, are counted apart. Only envelopes count
// that the host has signed for them, and a retry of one that waits counts as that
// (C-39.5, C-39.6).
//
// Errors: [ErrQueueFull], [ErrClosed].
func (c *Client) checkShare(ctx context.Context, a access, message body) error {
	id, share := message.ConversationID, c.shared.share()
	next, _, err := c.runtime.Store().HeadOf(ctx, kernel.InboxStream(id))
	if err != nil || next-journal.Seq(a.passed.Load()) < journal.Seq(share) {
		return err
	}
	keys := map[string]bool{}
	err = c.eachWaiting(ctx, a.known, id, func(b body) bool {
		if (b.Kind == KindUser) == (message.Kind == KindUser) && sameAsker(b.Asker, message.Asker) {
			keys[b.ID] = true
		}
		return len(keys) < share || keys[message.ID]
	})
	if err != nil || len(keys) < share || keys[message.ID] {
		return uniform(err)
	}
	info, err := c.runtime.Query(ctx, a.by(), id)
	switch {
	case err != nil:
		return uniform(err)
	case info.State.Over():
		return ErrClosed
	}
	return ErrQueueFull
}

// eachWaiting visits the envelopes that wait, as long as visit returns true:
// those that the host has signed for this conversation, past what the conversation
// has consumed.
func (c *Client) eachWaiting(ctx context.Context, k *known, id string, visit func(body) bool) error {
	store := c.runtime.Store()
	generation, ok, err := kernel.HeadGeneration(ctx, store, id)
	if err != nil || !ok {
		return err
	}
	from, found, err := PendingInbox(ctx, store, id, generation)
	if err != nil || !found {
		return err
	}
	k.pass(from)
	for {
		events, err := store.ReadRange(ctx, kernel.InboxStream(id), from, blockEvents, journal.Forward)
		if err != nil {
			return err
		}
		for _, event := range events {
			message, err := kernel.DecodeEvent[kernel.Message](event)
			if err != nil || event.Kind != kernel.KindMessage || message.Topic != Topic {
				continue
			}
			e, _ := split(message.Payload)
			b, shaped := e.read()
			arrival := Arrival{ID: event.ID, Message: message}
			if shaped && b.ID == arrival.key() && b.ConversationID == id && c.keys.verify(e) && !visit(b) {
				return nil
			}
		}
		if from += journal.Seq(len(events)); len(events) < blockEvents {
			return nil
		}
	}
}
