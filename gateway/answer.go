package gateway

import (
	"bytes"
	"cmp"
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

// problem is the body of every error (C-29.15).
type problem struct {
	Code    string `json:"error"`
	Reason  string `json:"reason,omitzero"`
	ErrorID string `json:"errorId,omitzero"`
}

// refusal is an error that is answered as it is.
type refusal struct {
	status int
	wait   time.Duration // after which it may be tried again; 0 means retryAfter, where the status has a Retry-After
	problem
}

func (r *refusal) Error() string { return r.Code + " " + r.Reason }

var (
	errUnauthorized = &refusal{status: http.StatusUnauthorized, problem: problem{Code: "unauthorized"}}
	errMethod       = &refusal{status: http.StatusMethodNotAllowed, problem: problem{Code: "method not allowed"}}
	errMediaType    = &refusal{status: http.StatusUnsupportedMediaType, problem: problem{Code: "unsupported media type"}}
	errUnavailable  = &refusal{status: http.StatusServiceUnavailable, problem: problem{Code: "unavailable"}}
	errTooLarge     = &refusal{status: http.StatusRequestEntityTooLarge, problem: problem{Code: "too large"}}
)

// badRequest is a 400. The reason is one of a few words and repeats nothing of
// the request.
func badRequest(reason string) error {
	return &refusal{status: http.StatusBadRequest, problem: problem{Code: "bad request", Reason: reason}}
}

// refusals are the errors of the client that a caller may know, by status.
var refusals = []struct {
	err    error
	status int
	code   string
}{
	{conversation.ErrNotFound, http.StatusNotFound, "not found"},
	{conversation.ErrClosed, http.StatusConflict, conversation.ErrClosed.Code},
	{conversation.ErrQueueFull, http.StatusTooManyRequests, conversation.ErrQueueFull.Code},
	{conversation.ErrTooManyReaders, http.StatusTooManyRequests, conversation.ErrTooManyReaders.Code},
	{conversation.ErrInvalidCursor, http.StatusBadRequest, conversation.ErrInvalidCursor.Code},
	{kernel.ErrClosed, http.StatusServiceUnavailable, "unavailable"},
	{journal.ErrClosed, http.StatusServiceUnavailable, "unavailable"},
	{journal.ErrPoisoned, http.StatusServiceUnavailable, "unavailable"},
	{context.Canceled, http.StatusServiceUnavailable, "unavailable"}, // nobody reads it
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "unavailable"},
}

// explain turns an error into what the caller may see of it. What is hidden
// behind an errorId goes to OnError (C-29.10).
func (g *Gateway) explain(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	if turn, ok := errors.AsType[*conversation.TurnError](err); ok {
		return &refusal{status: http.StatusBadRequest, problem: problem{Code: "bad request", Reason: string(turn.Fault)}}
	}
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			return &refusal{status: r.status, problem: problem{Code: r.code}}
		}
	}
	if g.client.Runtime().Err() != nil { // the store has failed; the process is about to end
		return errUnavailable
	}
	id := kernel.NewID()
	g.report(id, err)
	return &refusal{status: http.StatusInternalServerError, problem: problem{Code: "internal", ErrorID: id}}
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

// retryAfter is how much later a refused request may be tried again, where
// nothing better is known.
const retryAfter = 5 * time.Second

// fail answers an error.
func (g *Gateway) fail(x *exchange, err error) {
	r := g.explain(err)
	switch r.status {
	case http.StatusUnauthorized:
		x.w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		wait := cmp.Or(r.wait, retryAfter)
		x.w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	case http.StatusRequestEntityTooLarge:
		if x.r.ProtoMajor == 1 {
			x.w.Header().Set("Connection", "close")
		}
	}
	x.answer(r.status, r.problem)
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

// answerWithin is how long a client may take to accept an answer.
const answerWithin = 30 * time.Second

// answer writes a JSON answer. The deadline is armed for it alone: left armed
// it would cut what comes later on the connection.
func (x *exchange) answer(status int, value any) error {
	data := encode(value)
	control := http.NewResponseController(x.w)
	control.SetWriteDeadline(time.Now().Add(answerWithin)) // a writer without deadlines is bounded by its server
	defer control.SetWriteDeadline(time.Time{})
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	x.started = true
	x.w.WriteHeader(status)
	x.w.Write(data) // a client that is gone is no error
	control.Flush()
	return nil
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
