package gateway

import (
	"strconv"
	"time"

	"github.com/parley-run/parley/conversation"
)

// event is the name of an event of the stream (C-30.2). No name comes from
// anywhere else than here.
type event string

const (
	eventStatus    event = "status"  // the first: how the conversation stands
	eventMessage   event = "message" // an entry of the transcript, with its cursor as id
	eventPartial   event = event(conversation.WordsPartial)
	eventDelta     event = event(conversation.WordsDelta)
	eventReset     event = event(conversation.WordsReset)
	eventClosed    event = "closed"    // the conversation is over, and so is the stream
	eventReconnect event = "reconnect" // come back after retry; the stream ends
	eventError     event = "error"     // a fixed problem; the stream ends

	// noEvent is what comments are counted under. No frame has it.
	noEvent event = "comment"
)

// eventNames are all of them.
var eventNames = []event{
	eventStatus, eventMessage, eventPartial, eventDelta, eventReset, eventClosed, eventReconnect, eventError, noEvent,
}

// frame is one event on its way to a client.
type frame struct {
	event event
	id    string        // of durable events only; a cursor, so it needs no escaping
	retry time.Duration // tells the client when to come back; 0 leaves it as it was
	data  any           // encoded as one line of JSON (C-30.6)
}

// append writes the frame behind dst.
func (f frame) append(dst []byte) []byte {
	dst = append(dst, "event: "...)
	dst = append(dst, f.event...)
	if f.id != "" {
		dst = append(dst, "\nid: "...)
		dst = append(dst, f.id...)
	}
	if f.retry > 0 {
		dst = append(dst, "\nretry: "...)
		dst = strconv.AppendInt(dst, f.retry.Milliseconds(), 10)
	}
	dst = append(dst, "\ndata: "...)
	dst = append(dst, encode(f.data)...)
	return append(dst, "\n\n"...)
}

// frameOf is the frame of live words, which have no id (C-30.3).
func frameOf(words conversation.Words) []byte {
	return frame{event: event(words.Kind), data: words}.append(nil)
}

// frameAside is frameOf on a stack of its own.
func frameAside(words conversation.Words) (encoded []byte) {
	aside(func() error {
		encoded = frameOf(words)
		return nil
	})
	return encoded
}

// comment keeps an idle stream alive.
const comment = ":\n\n"
