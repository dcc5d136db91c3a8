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

// Read reads the body of a request as T, for the routes of others than the
// gateway: in the same bounds, and with the same refusals.
func Read[T any](w http.ResponseWriter, r *http.Request) (T, error) {
	body, err := readBody(w, r)
	if err != nil {
		var none T
		return none, err
	}
	return decode[T](body)
}

// readBody reads a body into memory: only JSON (C-32.3), and only as much of it as
// is allowed.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/json" || len(r.Header.Values("Content-Type")) != 1 {
		return nil, errMediaType
	}
	if r.ContentLength > MaxBodyBytes+drainBytes {
		return nil, errTooLarge
	}
	// net/http takes the deadline away when the body has come to its end. A
	// connection that knows none is bounded by its server.
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyWithin))
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBodyBytes+1))
	if err != nil {
		return nil, BadRequest("body-incomplete")
	}
	if len(body) > MaxBodyBytes {
		io.CopyN(io.Discard, r.Body, drainBytes)
		return nil, errTooLarge
	}
	return body, nil
}

// decode reads a body as T. Members that T does not have are
// ignored (C-29.8).
func decode[T any](body []byte) (T, error) {
	var value T
	if !utf8.Valid(body) {
		return value, BadRequest("invalid-utf8")
	}
	err := json.Unmarshal(body, &value)
	if err == nil {
		return value, nil
	}
	reason := "malformed-json"
	if errors.Is(err, jsontext.ErrDuplicateName) {
		reason = "duplicate-name"
	} else if _, ok := errors.AsType[*json.SemanticError](err); ok {
		reason = "wrong-type"
	}
	return value, BadRequest(reason)
}

// decodeOptional is decode where no body at all is the zero T.
func decodeOptional[T any](body []byte) (T, error) {
	if len(body) == 0 {
		var none T
		return none, nil
	}
	return decode[T](body)
}
