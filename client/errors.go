package client

import (
	"cmp"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/fault"
)

// The refusals that are the server's own; those of a conversation are the
// sentinels of package conversation.
var (
	ErrUnauthorized = fault.New("unauthorized", "the server does not know this token")
	ErrForbidden    = fault.New("forbidden", "the server refuses this request")
	ErrBadRequest   = fault.New("bad request", "the server cannot read this request")
	ErrTooLarge     = fault.New("too large", "the request is too large")
	ErrTooMany      = fault.New("too many requests", "too many requests")
	ErrInternal     = fault.New("internal", "the server failed")
	ErrUnavailable  = fault.New("unavailable", "the server is not available")
)

// ErrProtocol says that an answer is not what a Parley server sends, or larger.
var ErrProtocol = errors.New("this is not what a Parley server sends")

// Error is a refusal of the server's. It is, for errors.Is, the sentinel that
// its code stands for.
type Error struct {
	Status     int           // of HTTP; 0 if it came as an event of a stream
	Code       string        // such as "not found"
	Reason     string        // may be empty
	ErrorID    string        // under which the server has reported the cause; may be empty
	RetryAfter time.Duration // when to try again; 0 if the server does not say
}

// Error names code, reason and error id.
func (e *Error) Error() string {
	text := "the server answers " + strconv.Quote(e.Code)
	if e.Reason != "" {
		text += fmt.Sprintf(" (%q)", e.Reason)
	}
	if e.ErrorID != "" {
		text += fmt.Sprintf(", error id %q", e.ErrorID)
	}
	return text
}

// FaultCode returns the code of the sentinel that the error is.
func (e *Error) FaultCode() string {
	if sentinel := e.sentinel(); sentinel != nil {
		return sentinel.Code
	}
	return fault.CodeFailed
}

// Unwrap returns the sentinel, nil for a code that is unknown here.
func (e *Error) Unwrap() error {
	if sentinel := e.sentinel(); sentinel != nil {
		return sentinel
	}
	return nil
}

var sentinels = []*fault.Error{
	conversation.ErrClosed, conversation.ErrQueueFull, conversation.ErrTooManyReaders, conversation.ErrInvalidCursor,
	conversation.ErrDelegationUnsupported, conversation.ErrInvalidParticipant, conversation.ErrTooManyParticipants, conversation.ErrOwnerStays,
	ErrUnauthorized, ErrForbidden, ErrBadRequest, ErrTooLarge, ErrTooMany, ErrInternal, ErrUnavailable,
}

// turnFaults are the reasons of a bad request that are a turn's.
var turnFaults = []conversation.TurnFault{
	conversation.TextEmpty, conversation.TextTooLong, conversation.TextNotUTF8, conversation.MessageIDBad,
	conversation.EditOfBad, conversation.TurnBad,
}

// notPermitted is the reason of a 403 that is the conversation's own refusal, and
// not the door's.
const notPermitted = "not-permitted"

func (e *Error) sentinel() *fault.Error {
	switch {
	case e.Code == "not found":
		return conversation.ErrNotFound
	case e.Code == ErrForbidden.Code && e.Reason == notPermitted:
		return conversation.ErrForbidden
	case e.Code == ErrBadRequest.Code && slices.Contains(turnFaults, conversation.TurnFault(e.Reason)):
		return conversation.ErrInvalidTurn
	case e.Code == "method not allowed", e.Code == "unsupported media type": // of a client that is not this one
		return ErrBadRequest
	}
	for _, sentinel := range sentinels {
		if sentinel.Code == e.Code {
			return sentinel
		}
	}
	return nil
}

const (
	maxErrorBytes = 4 << 10 // of the body of an error
	maxRetryAfter = 3600    // seconds
)

// errorOf reads an answer that is no success. What is not of our making, such
// as a proxy's page, is known by its status alone.
func errorOf(response *http.Response) error {
	e := &Error{}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBytes))
	if err != nil || !e.read(data) {
		*e = Error{Code: cmp.Or(codeOfStatus[response.StatusCode], "status "+strconv.Itoa(response.StatusCode))}
	}
	e.Status = response.StatusCode
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(min(seconds, maxRetryAfter)) * time.Second
	}
	return e
}

// read takes the members of the body of an error, and reports whether it is
// one.
func (e *Error) read(data []byte) bool {
	var body struct {
		Code    string `json:"error"`
		Reason  string `json:"reason"`
		ErrorID string `json:"errorId"`
	}
	if json.Unmarshal(data, &body) != nil || body.Code == "" {
		return false
	}
	e.Code, e.Reason, e.ErrorID = body.Code, body.Reason, body.ErrorID
	return true
}

// codeOfStatus gives the code of an error whose body is not ours.
var codeOfStatus = map[int]string{
	http.StatusUnauthorized:          ErrUnauthorized.Code,
	http.StatusForbidden:             ErrForbidden.Code,
	http.StatusBadRequest:            ErrBadRequest.Code,
	http.StatusRequestEntityTooLarge: ErrTooLarge.Code,
	http.StatusTooManyRequests:       ErrTooMany.Code,
	http.StatusInternalServerError:   ErrInternal.Code,
	http.StatusBadGateway:            ErrUnavailable.Code,
	http.StatusServiceUnavailable:    ErrUnavailable.Code,
	http.StatusGatewayTimeout:        ErrUnavailable.Code,
}
