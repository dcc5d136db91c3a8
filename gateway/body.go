package gateway

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"
	"unicode/utf8"
)

const (
	// MaxBodyBytes is the largest body of a request (C-32.6).
	MaxBodyBytes = 64 << 10
	// drainBytes is how much of a larger body is read and thrown away, so that
	// its sender is still there for the 413.
	drainBytes = 1 << 20
	// bodyWithin is how long a client may take to send a body.
	bodyWithin = 30 * time.Second
)

// readBody reads the body of a POST into memory: only JSON (C-32.3), and only
// as much of it as is allowed.
func (x *exchange) readBody() error {
	mediaType, _, err := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/json" || len(x.r.Header.Values("Content-Type")) != 1 {
		return errMediaType
	}
	if x.r.ContentLength > MaxBodyBytes+drainBytes {
		return errTooLarge
	}
	// net/http takes the deadline away when the body has come to its end. A
	// connection that knows none is bounded by its server.
	http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(bodyWithin))
	body, err := io.ReadAll(io.LimitReader(x.r.Body, MaxBodyBytes+1))
	if err != nil {
		return badRequest("body-incomplete")
	}
	if len(body) > MaxBodyBytes {
		io.CopyN(io.Discard, x.r.Body, drainBytes)
		return errTooLarge
	}
	x.body = body
	return nil
}

// decode reads the body of a request as T. Members that T does not have are
// ignored (C-29.8).
func decode[T any](x *exchange) (T, error) {
	var value T
	if !utf8.Valid(x.body) {
		return value, badRequest("invalid-utf8")
	}
	err := json.Unmarshal(x.body, &value)
	if err == nil {
		return value, nil
	}
	reason := "malformed-json"
	if errors.Is(err, jsontext.ErrDuplicateName) {
		reason = "duplicate-name"
	} else if _, ok := errors.AsType[*json.SemanticError](err); ok {
		reason = "wrong-type"
	}
	return value, badRequest(reason)
}

// decodeOptional is decode where no body at all is the zero T.
func decodeOptional[T any](x *exchange) (T, error) {
	if len(x.body) == 0 {
		var none T
		return none, nil
	}
	return decode[T](x)
}
