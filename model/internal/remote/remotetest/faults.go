package remotetest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-run/parley/model"
)

// noRetry stands where an error must not ask to be tried again.
const noRetry = time.Duration(-1)

// check holds an error against what it must be, and against what it must not
// tell.
func check(t *testing.T, err, want error, after time.Duration) {
	t.Helper()
	got := noRetry
	if retry, ok := errors.AsType[*model.RetryError](err); ok {
		got = retry.After
	}
	if !errors.Is(err, want) || got != after {
		t.Errorf("error = %v, retry after %v; want %v, %v", err, got, want, after)
	}
	for _, text := range []string{fmt.Sprint(err), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
		if strings.Contains(text, key) || strings.Contains(text, "Good morning") {
			t.Errorf("the error tells a key or a text: %s", text)
		}
		if len(text) > 1000 {
			t.Errorf("the error has %d bytes", len(text))
		}
	}
}

// faults sends what a stream can do to its reader: each ends as a typed error,
// is asked once, and shows no more than the text before it.
func (d Dialect) faults(t *testing.T) {
	good := d.Text(`"Good "`)
	abort := func(events ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			send(w, events...)
			panic(http.ErrAbortHandler)
		}
	}
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		want    error
		after   time.Duration
		text    string
	}{
		{"a cut in mid-stream", abort(d.Begin, good), model.ErrCut, 0, "Good "},
		{"a cut in mid-event", abort(d.Begin, good, good[:len(good)/2]), model.ErrCut, 0, "Good "},
		{"a cut before the first delta", abort(d.Begin), model.ErrCut, 0, ""},
		{"a clean end without end mark", stream(d.Begin, good), model.ErrCut, 0, "Good "},
		{"a clean end behind a call", stream(d.Begin, d.Call("a", "look", `"{}"`)), model.ErrCut, 0, ""},
		{"a clean end behind half a call", stream(d.Begin, good, d.Call("a", "look", `"{\"at\""`)), model.ErrCut, 0, "Good "},
		{"an empty stream", stream(""), model.ErrCut, 0, ""},
		{"a malformed chunk", stream(d.Begin, good, d.Text(`"no end`), d.End(model.FinishStop)), model.ErrMalformed, noRetry, "Good "},
		{"an end for no known reason", stream(d.Begin, good, d.End("tired")), model.ErrMalformed, noRetry, "Good "},
		{"calls announced and not made", stream(d.Begin, good, d.End(model.FinishCalls)), model.ErrMalformed, noRetry, "Good "},
		{
			"arguments that are not JSON",
			stream(d.Begin, good, d.Call("a", "look", `"{\"at\": "`), d.End(model.FinishCalls)),
			model.ErrMalformed, noRetry, "Good ",
		},
		{
			"arguments of another kind",
			stream(d.Begin, d.Call("a", "look", `"[1]"`), d.End(model.FinishCalls)), model.ErrMalformed, noRetry, "",
		},
		{
			"arguments with a name twice",
			stream(d.Begin, d.Call("a", "look", `"{\"a\":1,\"a\":2}"`), d.End(model.FinishCalls)), model.ErrMalformed, noRetry, "",
		},
		{
			"arguments without end",
			stream(d.Begin, good, d.Call("a", "look", slices.Repeat([]string{Quote(strings.Repeat("x", 256<<10))}, 5)...)),
			model.ErrMalformed, noRetry, "Good ",
		},
		{"an error inside a 200", stream(d.Begin, good, d.Error(d.Transient, "on fire")), model.ErrUnavailable, 0, "Good "},
		{"an error at once inside a 200", stream(d.Error(d.Transient, "on fire")), model.ErrUnavailable, 0, ""},
		{"a rate limit inside a 200", stream(d.Begin, d.Error(d.RateLimited, "slow down")), model.ErrRateLimited, 0, ""},
		{"a refusal inside a 200", stream(d.Begin, d.Error(d.Invalid, "no")), model.ErrRefused, noRetry, ""},
		{"an overflow inside a 200", stream(d.Begin, d.Error(d.Invalid, d.Overflow)), model.ErrOverflow, noRetry, ""},
		{"an error of no kind inside a 200", stream(d.Begin, d.Error("", "CUDA out of memory")), model.ErrUnavailable, 0, ""},
		{"an answer that is no stream", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			fmt.Fprint(w, d.ErrorBody(d.Invalid, "no stream here"))
		}, model.ErrMalformed, noRetry, ""},
		{"a page", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<title>Please log in</title>"+strings.Repeat(" ", 100_000))
		}, model.ErrMalformed, noRetry, ""},
		{"a line without end", func(w http.ResponseWriter, _ *http.Request) {
			send(w, d.Begin, good, "data: ")
			line := strings.Repeat("x", 64<<10)
			for range 100 {
				if _, err := fmt.Fprint(w, line); err != nil {
					return
				}
			}
		}, model.ErrMalformed, noRetry, "Good "},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			s := d.serve(t, Config{}, tt.handler)
			reply, _, err := s.ask(t)
			check(t, err, tt.want, tt.after)
			if reply.Text != tt.text || len(reply.Calls) != 0 {
				t.Errorf("before the error came %q and %d calls, want %q and none", reply.Text, len(reply.Calls), tt.text)
			}
			if n := s.requests.Load(); n != 1 {
				t.Errorf("%d requests, want one: trying again is the loop's", n)
			}
		})
	}
}

// statuses answers with an error instead of a stream.
func (d Dialect) statuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		header http.Header
		body   string
		want   error
		after  time.Duration
	}{
		{"429 with seconds", 429, http.Header{"Retry-After": {"7"}}, d.ErrorBody(d.RateLimited, "slow down"), model.ErrRateLimited, 7 * time.Second},
		{
			"429 with a date", 429,
			http.Header{"Retry-After": {time.Date(2000, 1, 1, 0, 1, 30, 0, time.UTC).Format(http.TimeFormat)}},
			"", model.ErrRateLimited, 90 * time.Second,
		},
		{"429 with milliseconds", 429, http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"2"}}, "", model.ErrRateLimited, 1500 * time.Millisecond},
		{"429 without a time", 429, nil, d.ErrorBody(d.RateLimited, "slow down"), model.ErrRateLimited, 0},
		{"429 with nonsense", 429, http.Header{"Retry-After": {"-soon"}}, "", model.ErrRateLimited, 0},
		{"429 with an age", 429, http.Header{"Retry-After": {"1e300"}}, "", model.ErrRateLimited, 24 * time.Hour},
		{"429 that only money helps", 429, nil, d.ErrorBody("insufficient_quota", "pay first"), model.ErrRefused, noRetry},
		{"400 overflow", 400, nil, d.ErrorBody(d.Invalid, d.Overflow), model.ErrOverflow, noRetry},
		{"400", 400, nil, d.ErrorBody(d.Invalid, "no such field"), model.ErrRefused, noRetry},
		{"401 that tells the key", 401, nil, d.ErrorBody("authentication_error", "bad key "+key), model.ErrRefused, noRetry},
		{"403", 403, nil, d.ErrorBody("permission_error", "no"), model.ErrRefused, noRetry},
		{"404", 404, nil, d.ErrorBody("not_found_error", "no such model"), model.ErrRefused, noRetry},
		{"408", 408, nil, "", model.ErrUnavailable, 0},
		{"500", 500, nil, d.ErrorBody(d.Transient, "oops"), model.ErrUnavailable, 0},
		{"503 with seconds", 503, http.Header{"Retry-After": {"3"}}, "down", model.ErrUnavailable, 3 * time.Second},
		{"502 with a page", 502, nil, "<html>" + strings.Repeat("gateway ", 100_000), model.ErrUnavailable, 0},
		{"529", 529, nil, d.ErrorBody("overloaded_error", "overloaded"), model.ErrUnavailable, 0},
		{"204", 204, nil, "", model.ErrMalformed, noRetry},
		{"307 to a stranger", 307, http.Header{"Location": {"http://stranger.example.com/"}}, "", model.ErrMalformed, noRetry},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			s := d.serve(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				for name, values := range tt.header {
					w.Header()[name] = values
				}
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			})
			reply, _, err := s.ask(t)
			check(t, err, tt.want, tt.after)
			if n := s.requests.Load(); n != 1 || reply.Text != "" {
				t.Errorf("%d requests and text %q, want one and none", n, reply.Text)
			}
		})
	}
	bubble(t, "a request that breaks the contract", func(t *testing.T) {
		s := d.serve(t, Config{}, stream(d.Begin, d.End(model.FinishStop)))
		twice := request()
		twice.Messages = append(twice.Messages, twice.Messages...)
		_, err := model.Collect(s.model.Stream(t.Context(), twice), nil)
		check(t, err, model.ErrRefused, noRetry)
		if n := s.requests.Load(); n != 0 {
			t.Errorf("%d requests, want none", n)
		}
	})
}
