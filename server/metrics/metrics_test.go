package metrics

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal/sqlite"
	"github.com/parley-run/parley/model"
)

// read reads the metrics: the value of each series of ours, as text.
func read(t testing.TB, m *Metrics) map[string]string {
	t.Helper()
	got := httptest.NewRecorder()
	m.Handler().ServeHTTP(got, httptest.NewRequest("GET", "/metrics", nil))
	if got.Code != 200 || !strings.HasPrefix(got.Header().Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Fatalf("the metrics are answered with %d %v", got.Code, got.Header())
	}
	series := map[string]string{}
	for line := range strings.Lines(got.Body.String()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "} "); ok && strings.HasPrefix(line, "parley_") {
			series[name+"}"] = value
		} else if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(line, "parley_") {
			series[name] = value
		}
	}
	return series
}

// changed are the series that are not what they were before.
func changed(before, after map[string]string) map[string]string {
	all := map[string]string{}
	for name, value := range after {
		if before[name] != value && !strings.Contains(name, "_bucket") && !strings.Contains(name, "_sum") {
			all[name] = value
		}
	}
	return all
}

// C-32.12: whatever comes in, the set of series stays as it was made, and nothing
// of what came in is in it.
func TestSeriesAreFixed(t *testing.T) {
	m := New("test")
	before := read(t, m)
	const secret = "QWERTZ"
	answers := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(len(r.URL.Path) % 900) })
	for i := range 1200 {
		r := httptest.NewRequest("GET", "/", nil)
		r.Method = []string{"GET", "POST", "BREW", secret, ""}[i%5]
		r.URL.Path = "/" + strings.Repeat("x", 199+i%700)
		if i%2 == 0 {
			r.URL.Path = "/v1/conversations/" + secret + fmt.Sprint(i) + "/turns" + strings.Repeat("/", 160)
		}
		m.Around(answers).ServeHTTP(httptest.NewRecorder(), r)
	}
	for i := range 100 {
		name := secret + fmt.Sprint(i)
		m.Turn(conversation.TurnReport{Status: conversation.Status(name), Reason: conversation.Reason(name), Took: -time.Second, FirstWords: time.Hour})
		m.Rejected(conversation.Reason(name))
		m.ModelCall(agent.ModelCall{Err: fmt.Errorf("model %s: %w", name, errors.New(name)), Took: time.Hour})
		m.Commit(sqlite.Commit{Appends: i, Events: i * i, Conflicts: i, Took: time.Hour})
	}
	after := read(t, m)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after))); diff != "" {
		t.Errorf("the set of series (-before +after):\n%s", diff)
	}
	if strings.Contains(fmt.Sprint(after), secret) {
		t.Error("what somebody sent is in the metrics")
	}
}

// Each hook counts what it is told under its own name.
func TestHooks(t *testing.T) {
	for name, test := range map[string]struct {
		tell func(m *Metrics)
		want map[string]string
	}{
		"a turn": {
			func(m *Metrics) {
				m.Turn(conversation.TurnReport{Status: conversation.StatusComplete, FirstWords: time.Second, Took: time.Minute})
			},
			map[string]string{`parley_turns_total{status="complete"}`: "1", "parley_turn_seconds_count": "1", "parley_turn_first_words_seconds_count": "1"},
		},
		"a turn without words": {
			func(m *Metrics) { m.Turn(conversation.TurnReport{Status: conversation.StatusInterrupted}) },
			map[string]string{`parley_turns_total{status="interrupted"}`: "1", "parley_turn_seconds_count": "1"},
		},
		"a rejection": {
			func(m *Metrics) { m.Rejected(conversation.ReasonStale) },
			map[string]string{`parley_messages_rejected_total{reason="stale"}`: "1"},
		},
		"a commit": {
			func(m *Metrics) { m.Commit(sqlite.Commit{Appends: 2, Events: 5, Conflicts: 1}) },
			map[string]string{
				"parley_commit_seconds_count": "1", "parley_commit_appends_count": "1",
				"parley_journal_events_total": "5", "parley_journal_conflicts_total": "1",
			},
		},
		"a group of conflicts": {
			func(m *Metrics) { m.Commit(sqlite.Commit{Conflicts: 2}) },
			map[string]string{"parley_journal_conflicts_total": "2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := New("test")
			before := read(t, m)
			test.tell(m)
			if diff := cmp.Diff(test.want, changed(before, read(t, m))); diff != "" {
				t.Errorf("changed series (-want +got):\n%s", diff)
			}
		})
	}
}

// A call of the model is counted by what it came to, a wrapped error too.
func TestModelOutcomes(t *testing.T) {
	for want, err := range map[string]error{
		"whole": nil, "interrupted": &model.InterruptedError{Partial: "half"},
		"rate-limited": &model.RetryError{Err: model.ErrRateLimited}, "timeout": fmt.Errorf("call: %w", model.ErrTimeout),
		"overflow": model.ErrOverflow, "other": errors.New("who knows"),
	} {
		m := New("test")
		before := read(t, m)
		m.ModelCall(agent.ModelCall{Err: err})
		got := changed(before, read(t, m))
		if got[`parley_model_calls_total{outcome="`+want+`"}`] != "1" || got["parley_model_call_seconds_count"] != "1" || len(got) != 2 {
			t.Errorf("a call that came to %v is counted as %v, want %s", err, got, want)
		}
	}
}
