package client

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"time"

	"github.com/parley-run/parley/conversation"
)

// Kind says what an event tells.
type Kind string

const (
	Status    Kind = "status"    // how the conversation stands; the first of each stream
	Message   Kind = "message"   // an entry of the transcript
	Delta     Kind = "delta"     // words that follow what was told of the turn so far
	Partial   Kind = "partial"   // a reply so far, in place of what was told of it
	Reset     Kind = "reset"     // a reply begins again; what was told of it is void
	Closed    Kind = "closed"    // the conversation is over; the last of all
	Reconnect Kind = "reconnect" // the stream ends, the conversation goes on

	// Lost is told by [Client.Follow] itself: the stream broke, or none could be
	// opened.
	Lost Kind = "lost"
)

// Event is one event of a conversation's stream.
type Event struct {
	Kind   Kind
	Info   conversation.Info   // of Status and Closed
	Time   time.Time           // of Status: the server's, when it opened the stream; zero if it did not say
	Record conversation.Record // of Message; to go on after it, follow from its Cursor
	Words  conversation.Words  // of Delta, Partial and Reset; the Message of the turn takes their place
	Retry  time.Duration       // when the server wants a client to come back; 0 if it did not say

	// Of Follow alone.
	Resumed bool          // of Status: an earlier stream goes on here
	Missed  bool          // of Message: it is older than the stream, and the stream is not the first
	Err     error         // of Lost: why
	Wait    time.Duration // of Lost: until the server is asked again
}

// silence is how long a stream may say nothing at all; a server comments every
// 15 s.
const silence = 45 * time.Second

// ErrSilent is the end of a stream whose server has said nothing for 45 s, and of
// a request without a whole answer within 30 s: the connection may be open on this
// side alone.
var ErrSilent = errors.New("the server has fallen silent")

// Events reads one stream of a conversation from after a cursor on, nil for its
// beginning. The sequence ends without an error after an event of kind Closed
// or Reconnect, and at once where there is nothing after the cursor of a
// conversation that is over. A stream that is cut ends with
// io.ErrUnexpectedEOF. Kinds that this package does not know are left out.
//
// Errors: conversation.ErrNotFound, ErrInvalidCursor, [ErrSilent], an [Error].
func (c *Client) Events(ctx context.Context, id string, from *conversation.Cursor) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		watch := time.AfterFunc(silence, func() { cancel(ErrSilent) })
		defer watch.Stop()

		body, err := c.open(ctx, id, from)
		if body == nil && err == nil {
			return // over, and all of it is known
		}
		if err == nil {
			defer body.Close()
			frames := newFrameReader(body, func() { watch.Reset(silence) })
			err = read(frames, func(event Event, err error) bool {
				watch.Stop() // a slow reader is no silent server
				defer watch.Reset(silence)
				return yield(event, err)
			})
		}
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		if err != nil {
			yield(Event{}, err)
		}
	}
}

// open asks for a stream. It returns no body where the server says that there
// is nothing more to come.
func (c *Client) open(ctx context.Context, id string, from *conversation.Cursor) (io.ReadCloser, error) {
	r, err := c.request(ctx, http.MethodGet, of(id)+"/events", nil, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Accept-Encoding", "identity") // what compresses a stream holds it back
	if from != nil {
		r.Header.Set("Last-Event-ID", from.String())
	}
	response, err := c.live.Do(r)
	if err != nil {
		return nil, err
	}
	mediaType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case response.StatusCode == http.StatusNoContent:
		response.Body.Close()
		return nil, nil
	case response.StatusCode != http.StatusOK:
		defer response.Body.Close()
		return nil, errorOf(response)
	case mediaType != "text/event-stream":
		response.Body.Close()
		return nil, fmt.Errorf("%w: an answer that is no stream", ErrProtocol)
	}
	return response.Body, nil
}

// read yields the events of a stream until one ends it, or the caller does;
// both are no error.
func read(frames *frameReader, yield func(Event, error) bool) error {
	for {
		f, err := frames.next()
		if err == io.EOF {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		event := Event{Kind: Kind(f.event), Retry: f.retry}
		switch event.Kind {
		case Status:
			err = json.Unmarshal([]byte(f.data), &struct {
				*conversation.Info
				Time *time.Time `json:"time"`
			}{&event.Info, &event.Time})
		case Closed:
			err = json.Unmarshal([]byte(f.data), &event.Info)
		case Message:
			err = json.Unmarshal([]byte(f.data), &event.Record)
		case Delta, Partial, Reset:
			err = json.Unmarshal([]byte(f.data), &event.Words)
			event.Words.Kind = conversation.WordsKind(event.Kind)
		case Reconnect:
		case "error":
			e := &Error{}
			if e.read([]byte(f.data)) {
				return e
			}
			return fmt.Errorf("%w: an event of kind %q", ErrProtocol, f.event)
		default:
			continue
		}
		if err != nil {
			return fmt.Errorf("%w: an event of kind %q", ErrProtocol, event.Kind)
		}
		if !yield(event, nil) || event.Kind == Closed || event.Kind == Reconnect {
			return nil
		}
	}
}
