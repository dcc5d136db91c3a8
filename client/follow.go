package client

import (
	"context"
	"iter"
	"time"

	"github.com/parley-run/parley/conversation"
)

// steady is how long a stream lasts that has nothing to do with the failures
// before it.
const steady = time.Minute

// Follow is Events over as many streams as it takes: after a Reconnect, a lost
// connection or a failure of the server it goes on from the last entry, so that
// each entry comes once. It waits as the server says, and longer each time that
// nothing new came of it; a new entry or a stream of a minute makes the next wait
// a short one.
//
// The caller is told of it. A [Lost] says why there is no stream and when the next
// one is tried; a Reconnect, with which a server ends streams now and then, is
// followed by one only if it was not possible to come back. The Status of each
// stream but the first is Resumed, and an entry that was made before such a stream
// was opened, by the server's clock, is Missed.
//
// Words that were told of a reply stand while there is no stream. The new one says
// what has become of them: it goes on with a Partial, which takes their place, or a
// Reset, which makes them void, never with a Delta; or the Message stands for all.
//
// The sequence ends after the close, or with an error: that of ctx, or a refusal
// that will not pass, as in Events.
func (c *Client) Follow(ctx context.Context, id string, from *conversation.Cursor) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f := following{from: from}
		for {
			err, over := f.stream(c.Events(ctx, id, f.from), yield)
			switch {
			case over:
				return
			case ctx.Err() != nil:
				yield(Event{}, context.Cause(ctx))
				return
			case err != nil && !Passes(err):
				yield(Event{}, err)
				return
			}
			f.pace.failed(err)
			wait := f.pace.next()
			if err != nil && !yield(Event{Kind: Lost, Err: err, Wait: wait}, nil) {
				return
			}
			if err := sleep(ctx, wait); err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

// following is what Follow knows from one stream to the next.
type following struct {
	from  *conversation.Cursor
	pace  pace
	again bool      // a stream was opened before the present one
	since time.Time // when that one was opened, by the server's clock; zero on the first
	told  int       // the turn whose words were told last
	stale int       // the turn of which words were told on an earlier stream alone; 0 if none
}

// stream passes the events of one stream on. It returns the error that the stream
// ends with, nil after a Reconnect, and whether this is the end of all.
func (f *following) stream(events iter.Seq2[Event, error], yield func(Event, error) bool) (err error, over bool) {
	var opened time.Time // by our clock
	defer func() {
		if !opened.IsZero() {
			f.again, f.stale = true, f.told
			if time.Since(opened) >= steady {
				f.pace.succeeded()
			}
		}
	}()
	for event, err := range events {
		if err != nil {
			return err, false
		}
		f.pace.told(event.Retry)
		switch event.Kind {
		case Status:
			opened, f.since, event.Resumed = time.Now(), time.Time{}, f.again
			if f.again {
				f.since = event.Time
			}
		case Message:
			f.message(&event)
		case Delta, Partial, Reset:
			if event.Kind == Delta && event.Words.Turn == f.stale && !f.void(event.Words.Turn, yield) {
				return nil, true
			}
			f.told, f.stale = event.Words.Turn, 0
		}
		if !yield(event, nil) {
			return nil, true
		}
		if event.Kind == Reconnect {
			return nil, false
		}
	}
	return nil, true
}

// message takes in an entry, and marks it.
func (f *following) message(event *Event) {
	record := &event.Record
	f.from = &record.Cursor
	f.pace.succeeded()
	event.Missed = record.Time.Before(f.since)
	if record.Role == conversation.RoleAssistant && record.Turn >= f.told {
		f.told, f.stale = 0, 0
	}
}

// void tells that the words of a turn are none any more.
func (f *following) void(turn int, yield func(Event, error) bool) bool {
	return yield(Event{Kind: Reset, Words: conversation.Words{Kind: conversation.WordsReset, Turn: turn}}, nil)
}
