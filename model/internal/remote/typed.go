package remote

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"charm.land/fantasy"

	"github.com/parley-run/parley/model"
)

// maxVendorText bounds what an error repeats of a service's words.
const maxVendorText = 300

// typed turns an error of fantasy, of the client beneath it, or of the door
// into one of package model. It keeps the text for the operator, cut short,
// and drops the error itself, which may hold a request with all that is in it.
func (m *remote) typed(err error) error {
	after, kind := kindOf(err)
	typed := fmt.Errorf("%s: %w", m.name, kind)
	if text := clip(m.door.hide(textOf(err))); text != "" && text != kind.Error() {
		typed = fmt.Errorf("%s: %w (%s)", m.name, kind, text)
	}
	if after >= 0 {
		return &model.RetryError{Err: typed, After: after}
	}
	return typed
}

const (
	noRetry  = time.Duration(-1)
	retryNow = time.Duration(0)
)

// kindOf returns when to try again, noRetry where that would not help, and
// which error of package model err is.
func kindOf(err error) (after time.Duration, kind error) {
	for _, own := range []error{model.ErrOverflow, model.ErrRefused, model.ErrMalformed} {
		if errors.Is(err, own) {
			return noRetry, own
		}
	}
	for _, own := range []error{model.ErrCut, model.ErrUnavailable} {
		if errors.Is(err, own) {
			return retryNow, own
		}
	}
	said, ok := errors.AsType[*fantasy.ProviderError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return retryNow, model.ErrCut
	case !ok:
		return noRetry, model.ErrMalformed
	case said.IsContextTooLarge() || speaksOfOverflow(said):
		return noRetry, model.ErrOverflow
	case said.StatusCode >= http.StatusBadRequest:
		return kindOfStatus(said)
	default:
		return kindOfEvent(said)
	}
}

// kindOfStatus judges an answer by its status code.
func kindOfStatus(said *fantasy.ProviderError) (after time.Duration, kind error) {
	switch code := said.StatusCode; {
	case said.ErrorType == "insufficient_quota":
		return noRetry, model.ErrRefused // nothing but money helps
	case code == http.StatusTooManyRequests:
		return retryAfter(said.ResponseHeaders, time.Now()), model.ErrRateLimited
	case code >= http.StatusInternalServerError, code == http.StatusRequestTimeout, code == http.StatusConflict:
		return retryAfter(said.ResponseHeaders, time.Now()), model.ErrUnavailable
	default:
		return noRetry, model.ErrRefused
	}
}

// kindOfEvent judges an error that came inside a 200.
func kindOfEvent(said *fantasy.ProviderError) (after time.Duration, kind error) {
	switch word := said.ErrorType; {
	case strings.Contains(word, "rate_limit"):
		return retryNow, model.ErrRateLimited
	case strings.Contains(word, "invalid"), strings.Contains(word, "authentication"), strings.Contains(word, "permission"),
		strings.Contains(word, "not_found"), strings.Contains(word, "billing"), strings.Contains(word, "quota"):
		return noRetry, model.ErrRefused
	default:
		return retryNow, model.ErrUnavailable
	}
}

// speaksOfOverflow knows the words of services whose errors fantasy does not.
func speaksOfOverflow(said *fantasy.ProviderError) bool {
	switch said.StatusCode {
	case 0, http.StatusOK, http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
	default:
		return false
	}
	text := strings.ToLower(said.ErrorType + " " + said.Message + " " + string(said.ResponseBody))
	for _, words := range []string{
		"context_length_exceeded", "exceed_context_size", "maximum context length", "prompt is too long",
		"exceeds the context window", "exceeds the available context size", "request_too_large",
	} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// retryAfter reads Retry-After, in seconds or as a date, and the milliseconds
// that some services send beside it. It is 0 where the service does not say.
func retryAfter(headers map[string]string, now time.Time) time.Duration {
	const longest = 24 * time.Hour
	var seconds, millis string
	for name, value := range headers {
		switch strings.ToLower(name) {
		case "retry-after":
			seconds = strings.TrimSpace(value)
		case "retry-after-ms":
			millis = strings.TrimSpace(value)
		}
	}
	after := time.Duration(0)
	if n, err := strconv.ParseFloat(millis, 64); err == nil && n >= 0 && n < float64(longest/time.Millisecond) {
		after = time.Duration(n * float64(time.Millisecond))
	} else if n, err := strconv.ParseFloat(seconds, 64); err == nil && n >= 0 {
		after = time.Duration(min(n, longest.Seconds()) * float64(time.Second))
	} else if at, err := http.ParseTime(seconds); err == nil {
		after = at.Sub(now)
	}
	return min(max(after, 0), longest)
}

// textOf is what an error says, in one line.
func textOf(err error) string {
	text := err.Error()
	if said, ok := errors.AsType[*fantasy.ProviderError](err); ok {
		text = said.Error()
		if said.StatusCode >= http.StatusBadRequest {
			text = strconv.Itoa(said.StatusCode) + " " + text
		}
	}
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(joined(text), "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
}

// clip cuts a text to what an error repeats.
func clip(text string) string {
	if runes := []rune(text); len(runes) > maxVendorText {
		return string(runes[:maxVendorText]) + "…"
	}
	return text
}
