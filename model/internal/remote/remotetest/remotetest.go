// Package remotetest says by test what every vendor's model does with what a
// service can do to it.
//
// A vendor's package describes the service's language as a [Dialect] and calls
// [Run]. The service is an HTTP server on a network in memory, in a
// testing/synctest bubble, so a minute of silence takes no time.
package remotetest

import (
	"bytes"
	"encoding/json/v2"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/model"
)

// Dialect is how a service says things. Each text is one event or more of its
// stream; an argument named raw is a JSON string with its quotes, which may be
// broken.
type Dialect struct {
	Open func(Config) (model.Model, error)
	Path string // of the requests, behind the base URL
	Env  map[string]string

	Begin                           string                                      // before the first delta
	Text                            func(raw string) string                     // a delta
	Think                           string                                      // a sign of life without text
	Call                            func(id, name string, raw ...string) string // the arguments in pieces
	End                             func(reason model.FinishReason) string      // the end mark: 3 tokens in, 5 out
	Error                           func(kind, message string) string           // an error inside the stream
	ErrorBody                       func(kind, message string) string           // the body of an answer with a status of 400 or more
	Transient, RateLimited, Invalid string                                      // kinds of errors
	Overflow                        string                                      // the message of a 400
}

// Config is what a vendor's own Config has.
type Config struct {
	BaseURL    string
	APIKey     identity.Secret
	HTTPClient *http.Client
	Limits     model.Limits
}

// key is the API key of the tests. It is nowhere but in the header of requests.
const key = "sk-only-in-the-header-0123456789"

// Run proves that a vendor's model keeps the contract whatever comes.
func Run(t *testing.T, d Dialect) {
	t.Run("model", d.suite)
	t.Run("reply", d.replies)
	t.Run("fault", d.faults)
	t.Run("status", d.statuses)
	t.Run("split", d.splits)
	t.Run("time", d.times)
	t.Run("environment", d.environment)
	t.Run("unreachable", d.unreachable)
}

// bubble runs a test for each case, in a bubble of its own.
func bubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// service is a service in memory that answers as the handler says.
type service struct {
	model    model.Model
	requests atomic.Int64
}

// serve starts a service that is asked with a key.
func (d Dialect) serve(t *testing.T, cfg Config, handler http.HandlerFunc) *service {
	t.Helper()
	cfg.APIKey = identity.NewSecret(key)
	return d.serveAs(t, cfg, handler)
}

// serveAs starts a service that is asked as the configuration says.
func (d Dialect) serveAs(t *testing.T, cfg Config, handler http.HandlerFunc) *service {
	t.Helper()
	s := &service{}
	server := httptest.NewTestServer(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.requests.Add(1)
		if req.URL.Path != "/base"+d.Path || req.Method != http.MethodPost {
			t.Errorf("request to %s %s, want POST /base%s", req.Method, req.URL.Path, d.Path)
		}
		asked, err := io.ReadAll(req.Body) // only then does a server notice that its client is gone
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		req.Body = io.NopCloser(bytes.NewReader(asked))
		handler(w, req)
	}))
	cfg.BaseURL, cfg.HTTPClient = "http://example.com/base", server.Client()
	m, err := d.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.model = m
	return s
}

// ask asks once and returns the deltas too.
func (s *service) ask(t *testing.T) (reply model.Reply, deltas []string, err error) {
	t.Helper()
	reply, err = model.Collect(s.model.Stream(t.Context(), request()), func(delta string) { deltas = append(deltas, delta) })
	return reply, deltas, err
}

func request() model.Request {
	return model.Request{Messages: []model.Message{{Role: model.User, Text: "Good morning to you."}}}
}

// stream answers with events, each sent by itself.
func stream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { send(w, events...) }
}

func send(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range events {
		fmt.Fprint(w, event)
		w.(http.Flusher).Flush()
	}
}

// Quote returns a text as a JSON string.
func Quote(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err) // a test's own text
	}
	return string(raw)
}
