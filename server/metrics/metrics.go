// Package metrics is what a server tells Prometheus of itself.
//
// Make one set of metrics for a server with [New], give its methods to the parts
// as their hooks, put [Metrics.Around] before everything that it serves, let
// [Metrics.Watch] look at what is counted elsewhere, and serve [Metrics.Handler]
// to whoever may read it.
//
// It promises that nobody outside can make it grow (C-32.12): the values of every
// label are written down here or in the package that names them, all series are
// there from the beginning, and no text, name or address of anybody is in any of
// them.
package metrics

import (
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal/sqlite"
)

// Metrics are the metrics of one server. Its methods may be called from any
// number of goroutines.
type Metrics struct {
	registry *prometheus.Registry

	turns               counters
	turnTime, wordsTime prometheus.Histogram
	rejections          counters
	modelCalls          counters
	modelTime           prometheus.Histogram
	commitTime, batch   prometheus.Histogram
	events, conflicts   prometheus.Counter
	requests            map[route]prometheus.Observer
	refusals            counters
}

// New makes the metrics of a server of that version.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "parley_build_info", Help: "1, with the version of this build and that of Go.",
	}, []string{"version", "go"})
	build.WithLabelValues(version, runtime.Version()).Set(1)
	m.registry.MustRegister(build)

	m.turns = m.counters("parley_turns_total", "Turns that ended, by the status of the reply.", "status",
		string(conversation.StatusComplete), string(conversation.StatusInterrupted), string(conversation.StatusFailed))
	m.turnTime = m.histogram("parley_turn_seconds", "From the admission of a message to the record of its reply.", turnBuckets)
	m.wordsTime = m.histogram("parley_turn_first_words_seconds", "From the admission of a message to the first words of its reply.", turnBuckets)
	m.rejections = m.counters("parley_messages_rejected_total", "Messages that a conversation rejected, by reason.", "reason", rejectionReasons...)
	m.modelCalls = m.counters("parley_model_calls_total", "Calls of the model, each attempt for itself, by what they came to.", "outcome", modelOutcomes...)
	m.modelTime = m.histogram("parley_model_call_seconds", "A call of the model, from the request to its end.", turnBuckets)
	m.commitTime = m.histogram("parley_commit_seconds", "A commit of the journal, with its sync.", commitBuckets)
	m.batch = m.histogram("parley_commit_appends", "Appends that shared a commit.", prometheus.ExponentialBuckets(1, 2, 10))
	m.events = m.counter("parley_journal_events_total", "Events that were written into the journal.")
	m.conflicts = m.counter("parley_journal_conflicts_total", "Appends that were refused because their log had moved on.")
	m.newHTTP()
	return m
}

// Bounds of the histograms, in seconds. What a turn takes is the model's time,
// what a commit takes the disk's.
var (
	turnBuckets    = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
	commitBuckets  = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5}
	requestBuckets = []float64{.0025, .005, .01, .025, .05, .1, .25, 1, 5}
)

// Turn counts a turn: a hook of conversation.Config.
func (m *Metrics) Turn(t conversation.TurnReport) {
	m.turns.add(string(t.Status))
	m.turnTime.Observe(t.Took.Seconds())
	if t.FirstWords > 0 {
		m.wordsTime.Observe(t.FirstWords.Seconds())
	}
}

// rejectionReasons are those of C-13.3.
var rejectionReasons = []string{
	string(conversation.ReasonMalformed), string(conversation.ReasonUnauthenticated), string(conversation.ReasonReplayed),
	string(conversation.ReasonStale), string(conversation.ReasonNotParticipant), string(conversation.ReasonEditInvalid),
	string(conversation.ReasonPromptTooLarge),
}

// Rejected counts a rejection: a hook of conversation.Config.
func (m *Metrics) Rejected(reason conversation.Reason) { m.rejections.add(string(reason)) }

// ModelCall counts a call of the model: a hook of agent.Definition and
// agent.SummarizerConfig.
func (m *Metrics) ModelCall(call agent.ModelCall) {
	m.modelCalls.add(outcomeOf(call.Err))
	m.modelTime.Observe(call.Took.Seconds())
}

// Commit counts a commit: a hook of sqlite.Config.
func (m *Metrics) Commit(c sqlite.Commit) {
	m.conflicts.Add(float64(c.Conflicts))
	if c.Appends == 0 {
		return // nothing was written, and nothing synced
	}
	m.commitTime.Observe(c.Took.Seconds())
	m.batch.Observe(float64(c.Appends))
	m.events.Add(float64(c.Events))
}

// Handler serves the metrics to whoever asks; who may is its caller's to judge.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxReaders})
}

// maxReaders is how many may read at a time; the next one gets a 503.
const maxReaders = 4

// other is the value of a label for what has no name of its own.
const other = "other"

// counters are counters by a label whose values are known.
type counters map[string]prometheus.Counter

// add counts one more of the value, which is "other" where it is not known; a
// set without an "other" forgets it.
func (c counters) add(value string) {
	counter, ok := c[value]
	if !ok {
		counter, ok = c[other]
	}
	if ok {
		counter.Inc()
	}
}

// counters makes counters for the values, and for nothing else ever.
func (m *Metrics) counters(name, help, label string, values ...string) counters {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	m.registry.MustRegister(vec)
	all := counters{}
	for _, value := range values {
		all[value] = vec.WithLabelValues(value)
	}
	return all
}

func (m *Metrics) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	m.registry.MustRegister(h)
	return h
}
