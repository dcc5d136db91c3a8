package metrics

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-run/parley/gateway"
)

// stream is the route whose answers last as long as somebody listens. It has no
// latency.
const stream = "GET /v1/conversations/{id}/events"

// ownRoutes are routes beside those of the gateway, by method and path.
var ownRoutes = []string{"POST /session", "GET /session", "DELETE /session"}

// route is a series of the requests: where they went and how they were answered.
type route struct{ pattern, class string }

// refusedStatuses are the answers of the server that are refusals or failures.
var refusedStatuses = []int{400, 401, 403, 404, 405, 409, 413, 415, 429, 500, 503}

// newHTTP makes the metrics of requests, with a series for each route and class.
func (m *Metrics) newHTTP() {
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "parley_http_request_seconds",
		Help:    "An answered request, by route and class of the status; streams left out.",
		Buckets: requestBuckets,
	}, []string{"route", "class"})
	m.registry.MustRegister(vec)
	m.requests = map[route]prometheus.Observer{}
	for _, pattern := range slices.Concat(gateway.Patterns(), ownRoutes, []string{other}) {
		if pattern == stream {
			continue
		}
		for _, class := range []string{"2xx", "3xx", "4xx", "5xx"} {
			m.requests[route{pattern, class}] = vec.WithLabelValues(pattern, class)
		}
	}
	values := []string{other}
	for _, status := range refusedStatuses {
		values = append(values, strconv.Itoa(status))
	}
	m.refusals = m.counters("parley_http_refused_total", "Requests that were answered with 400 or more, by status.", "status", values...)
}

// Around counts the requests that the handler answers. It hides nothing of the
// connection from an [http.ResponseController].
func (m *Metrics) Around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, pattern := time.Now(), patternOf(r.Method, r.URL.Path)
		answer := &answer{ResponseWriter: w, status: http.StatusInternalServerError} // if it panics before it answers
		defer func() { m.answered(pattern, answer.status, time.Since(began)) }()
		next.ServeHTTP(answer, r)
		if !answer.begun { // net/http says so
			answer.status = http.StatusOK
		}
	})
}

func (m *Metrics) answered(pattern string, status int, took time.Duration) {
	if status >= 400 {
		m.refusals.add(strconv.Itoa(status))
	}
	if requests, ok := m.requests[route{pattern, classOf(status)}]; ok {
		requests.Observe(took.Seconds())
	}
}

func classOf(status int) string {
	switch {
	case status < 300:
		return "2xx"
	case status < 400:
		return "3xx"
	case status < 500:
		return "4xx"
	}
	return "5xx"
}

// patternOf names the route of a request: one of a fixed set, whatever the method
// and the path are.
func patternOf(method, path string) string {
	if pattern := gateway.Pattern(method, path); pattern != "" {
		return pattern
	}
	if own := method + " " + path; slices.Contains(ownRoutes, own) {
		return own
	}
	return other
}

// answer remembers the status of an answer.
type answer struct {
	http.ResponseWriter
	begun  bool
	status int
}

// WriteHeader notes the first status that is final.
func (a *answer) WriteHeader(status int) {
	if !a.begun && status >= 200 {
		a.begun, a.status = true, status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write begins a 200, where no status was named.
func (a *answer) Write(p []byte) (int, error) {
	if !a.begun {
		a.begun, a.status = true, http.StatusOK
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap gives the connection to an [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
