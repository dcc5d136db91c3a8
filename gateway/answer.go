package gateway

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// refusals are the errors of the client that a caller may know, by status.
var refusals = []struct {
	err    error
	status int
	code   string
	reason string
}{
	{conversation.ErrNotFound, http.StatusNotFound, "not found", ""},
	{conversation.ErrForbidden, http.StatusForbidden, "forbidden", ReasonNotPermitted},
	{conversation.ErrDelegationUnsupported, http.StatusForbidden, conversation.ErrDelegationUnsupported.Code, ""},
	{conversation.ErrInvalidParticipant, http.StatusBadRequest, conversation.ErrInvalidParticipant.Code, ""},
	{conversation.ErrTooManyParticipants, http.StatusConflict, conversation.ErrTooManyParticipants.Code, ""},
	{conversation.ErrOwnerStays, http.StatusConflict, conversation.ErrOwnerStays.Code, ""},
	{conversation.ErrClosed, http.StatusConflict, conversation.ErrClosed.Code, ""},
	{conversation.ErrQueueFull, http.StatusTooManyRequests, conversation.ErrQueueFull.Code, ""},
	{conversation.ErrTooManyReaders, http.StatusTooManyRequests, conversation.ErrTooManyReaders.Code, ""},
	{conversation.ErrInvalidCursor, http.StatusBadRequest, conversation.ErrInvalidCursor.Code, ""},
	{kernel.ErrClosed, http.StatusServiceUnavailable, "unavailable", ""},
	{journal.ErrClosed, http.StatusServiceUnavailable, "unavailable", ""},
	{journal.ErrPoisoned, http.StatusServiceUnavailable, "unavailable", ""},
	{context.Canceled, http.StatusServiceUnavailable, "unavailable", ""}, // nobody reads it
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "unavailable", ""},
}

// ReasonNotPermitted is the reason of a 403 that is told to somebody who takes
// part, and may not do this (C-33.12). The other reasons are those of requests
// that no caller could make better.
const ReasonNotPermitted = "not-permitted"

// explain turns an error into what the caller may see of it. What is hidden
// behind an errorId goes to OnError (C-29.10).
func (g *Gateway) explain(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	if turn, ok := errors.AsType[*conversation.TurnError](err); ok {
		return &Refusal{Status: http.StatusBadRequest, Code: "bad request", Reason: string(turn.Fault)}
	}
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			return &Refusal{Status: r.status, Code: r.code, Reason: r.reason}
		}
	}
	if g.client.Runtime().Err() != nil { // the store has failed; the process is about to end
		return errUnavailable
	}
	id := kernel.NewID()
	g.report(id, err)
	return &Refusal{Status: http.StatusInternalServerError, Code: "internal", ErrorID: id}
}

// report tells the host about an error; a hook that panics stops nothing.
func (g *Gateway) report(id string, err error) {
	if g.config.OnError == nil {
		g.config.Log.Error("request failed", "errorId", id, "error", err)
		return
	}
	defer func() {
		if recover() != nil {
			g.config.Log.Error("the error hook panicked", "errorId", id)
		}
	}()
	g.config.OnError(id, err)
}

// fail answers an error.
func (g *Gateway) fail(x *exchange, err error) {
	r := g.explain(err)
	x.started = true
	r.Answer(x.w, x.r)
}

// recovered answers a request whose handling panicked. Where the answer has
// begun the connection is cut, so that nobody takes it for whole.
func (g *Gateway) recovered(x *exchange) {
	r := recover()
	if r == nil {
		return
	}
	if r == http.ErrAbortHandler {
		panic(r)
	}
	err := fmt.Errorf("panic with a %T", r) // the value may hold anybody's text
	if !x.started {
		g.fail(x, err)
		return
	}
	g.report(kernel.NewID(), err)
	panic(http.ErrAbortHandler)
}

// answer writes a JSON answer.
func (x *exchange) answer(status int, value any) error {
	data := encode(value)
	x.started = true
	write(x.w, status, data)
	return nil
}

// nothing answers a request whose success says all.
func (x *exchange) nothing() error {
	x.started = true
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}

// answerWithin is how long a client may take to accept an answer.
const answerWithin = 30 * time.Second

// Answer writes a JSON answer, for the routes of others than the gateway.
func Answer(w http.ResponseWriter, status int, value any) { write(w, status, encode(value)) }

// write writes an answer. The deadline is armed for it alone: left armed it would
// cut what comes later on the connection.
func write(w http.ResponseWriter, status int, data []byte) {
	control := http.NewResponseController(w)
	control.SetWriteDeadline(time.Now().Add(answerWithin)) // a writer without deadlines is bounded by its server
	defer control.SetWriteDeadline(time.Time{})
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	w.Write(data) // a client that is gone is no error
	control.Flush()
}

// encode gives the JSON of an answer or an event: one line, with the three
// characters escaped that some readers of lines take for the end of one.
func encode(value any) []byte {
	data, err := json.Marshal(value, jsontext.EscapeForJS(true))
	if err != nil {
		panic(fmt.Sprintf("gateway: encode %T: %v", value, err))
	}
	if bytes.Contains(data, nextLine) {
		data = bytes.ReplaceAll(data, nextLine, []byte(`\u0085`))
	}
	return data
}

var nextLine = []byte("\u0085")
