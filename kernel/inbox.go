package kernel

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"strconv"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
)

const (
	// inboxBlock is how many messages are read at once.
	inboxBlock = 16
	// keyBytes is the length to which the keys of the dedupe window are cut.
	keyBytes = 16
)

// InboxStream names the stream of a chain's inbox; its events are of kind
// [KindMessage].
func InboxStream(chain string) string { return "inbox:" + chain }

// inboxReader is where an execution stands in its inbox: per topic a cursor
// and a dedupe window.
type inboxReader struct {
	received map[string]int         // consumptions of this generation, for their ids
	cursors  map[string]journal.Seq // per topic: where its next message is sought
	recent   map[string]*window

	unread bool            // there may be something past what was read
	ahead  []journal.Event // read and not looked at
	head   journal.Seq     // the inbox ended here when it was last read to its end
	topic  string          // of ahead
}

func newInboxReader(started Started) inboxReader {
	r := inboxReader{
		received: map[string]int{}, cursors: map[string]journal.Seq{}, recent: map[string]*window{}, unread: true,
	}
	maps.Copy(r.cursors, started.Cursors)
	for topic, keys := range started.Window {
		w := newWindow()
		for _, key := range keys {
			if raw, err := base64.RawStdEncoding.DecodeString(key); err == nil && len(raw) == keyBytes {
				w.add([keyBytes]byte(raw))
			}
		}
		r.recent[topic] = w
	}
	return r
}

// nextID names the topic's next consumption.
func (r *inboxReader) nextID(topic string) string {
	r.received[topic]++
	return topic + "#" + strconv.Itoa(r.received[topic])
}

// consume moves on past a consumption, a recorded one or a new one.
func (r *inboxReader) consume(c Consumed) {
	r.cursors[c.Topic] = c.Cursor
	if key, ok := c.Message.key(c.MessageID); ok {
		r.window(c.Topic).add(key)
	}
}

// last is the position behind the newest message that was taken, of any topic.
func (r *inboxReader) last() journal.Seq {
	var last journal.Seq
	for _, cursor := range r.cursors {
		last = max(last, cursor)
	}
	return last
}

// next returns the topic's next message that was not delivered before, and
// false if there is none (C-5.4, C-5.6).
func (r *inboxReader) next(a *activation, topic string) (Consumed, bool, error) {
	if r.topic != topic {
		r.topic, r.ahead, r.head, r.unread = topic, nil, 0, true
	}
	for {
		for len(r.ahead) > 0 {
			event := r.ahead[0]
			r.ahead = r.ahead[1:]
			message, err := DecodeEvent[Message](event)
			if err != nil || event.Kind != KindMessage || message.Topic != topic {
				continue // another topic's, or nothing that Send wrote
			}
			if key, ok := message.key(event.ID); ok && r.window(topic).has(key) {
				continue
			}
			return Consumed{Topic: topic, Cursor: event.Seq + 1, MessageID: event.ID, Message: message}, true, nil
		}
		if !r.unread {
			return Consumed{}, false, nil
		}
		if err := r.read(a, topic); err != nil {
			return Consumed{}, false, err
		}
	}
}

// read fetches the next block.
func (r *inboxReader) read(a *activation, topic string) error {
	from := max(r.cursors[topic], r.head)
	events, err := a.rt.config.Store.ReadRange(context.WithoutCancel(a.ctx), InboxStream(a.chain), from, inboxBlock, journal.Forward)
	if err != nil {
		return err
	}
	r.ahead = events
	r.head = from + journal.Seq(len(events))
	r.unread = len(events) == inboxBlock
	return nil
}

func (r *inboxReader) window(topic string) *window {
	w := r.recent[topic]
	if w == nil {
		w = newWindow()
		r.recent[topic] = w
	}
	return w
}

// windows is the form in which the windows go into the next generation.
func (r *inboxReader) windows() map[string][]string {
	all := map[string][]string{}
	for topic, w := range r.recent {
		for _, key := range w.keys {
			all[topic] = append(all[topic], base64.RawStdEncoding.EncodeToString(key[:]))
		}
	}
	return all
}

// key is the dedupe identity of a message (C-5.3), and false for one without a
// message id, which is never a duplicate (C-5.5).
func (m Message) key(messageID string) (key [keyBytes]byte, ok bool) {
	if messageID == "" {
		return key, false
	}
	var sender identity.Identity
	if m.From != nil {
		sender = *m.From
	}
	if m.Host {
		messageID = "\x00host\x00" + messageID // nobody's id begins so, see Send
	}
	raw, err := hex.DecodeString(sender.SenderKey(messageID))
	if err != nil {
		return key, false
	}
	return [keyBytes]byte(raw[:keyBytes]), true
}

// window is the set of the keys delivered last, at most [DedupeWindow].
type window struct {
	keys []([keyBytes]byte) // oldest first
	set  map[[keyBytes]byte]struct{}
}

func newWindow() *window { return &window{set: map[[keyBytes]byte]struct{}{}} }

func (w *window) has(key [keyBytes]byte) bool {
	_, ok := w.set[key]
	return ok
}

func (w *window) add(key [keyBytes]byte) {
	if w.has(key) {
		return
	}
	if len(w.keys) == DedupeWindow {
		delete(w.set, w.keys[0])
		w.keys = w.keys[1:]
	}
	w.keys = append(w.keys, key)
	w.set[key] = struct{}{}
}
