package gateway

import (
	"cmp"
	"net/http"
	"strconv"
	"time"
)

// Refusal is an error that is answered as it is. Its JSON is the body of every
// error (C-29.15), under /v1 and beside it. Code and Reason are each one of a few
// words, and repeat nothing of a request.
type Refusal struct {
	Status int           `json:"-"` // of HTTP
	Wait   time.Duration `json:"-"` // of a 429 or 503: after which it may be tried again; 5 s if 0

	Code    string `json:"error"`
	Reason  string `json:"reason,omitzero"`
	ErrorID string `json:"errorId,omitzero"`
}

// Error names code and reason.
func (r *Refusal) Error() string { return r.Code + " " + r.Reason }

var (
	errUnauthorized = &Refusal{Status: http.StatusUnauthorized, Code: "unauthorized"}
	errMethod       = &Refusal{Status: http.StatusMethodNotAllowed, Code: "method not allowed"}
	errMediaType    = &Refusal{Status: http.StatusUnsupportedMediaType, Code: "unsupported media type"}
	errUnavailable  = &Refusal{Status: http.StatusServiceUnavailable, Code: "unavailable"}
	errTooLarge     = &Refusal{Status: http.StatusRequestEntityTooLarge, Code: "too large"}
)

// BadRequest is a 400, for a reason that is one of a few words.
func BadRequest(reason string) error {
	return &Refusal{Status: http.StatusBadRequest, Code: "bad request", Reason: reason}
}

// TooMany is a 429 that is over after a while.
func TooMany(reason string, wait time.Duration) error {
	return &Refusal{Status: http.StatusTooManyRequests, Code: "too many requests", Reason: reason, Wait: wait}
}

// retryAfter is how much later a refused request may be tried again, where
// nothing better is known.
const retryAfter = 5 * time.Second

// Answer writes the refusal, with the headers that belong to its status.
func (r *Refusal) Answer(w http.ResponseWriter, request *http.Request) {
	switch r.Status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		wait := cmp.Or(r.Wait, retryAfter)
		w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	case http.StatusRequestEntityTooLarge:
		if request.ProtoMajor == 1 {
			w.Header().Set("Connection", "close")
		}
	}
	Answer(w, r.Status, r)
}
