package conversation

import (
	"sync"
)

// Bounds of a scale, in percent, and of what is measured.
const (
	minScale    = 50
	maxScale    = 400
	minMeasured = 1000 // tokens; what vendors add to smaller requests says nothing of the counter
	maxMetered  = 4096 // conversations that are remembered
)

// meter compares what the budget predicted of requests with what the model's
// vendor reported. It lives as long as the process. What it finds acts in the
// decider of the next fit alone, which records it: no replay depends on it.
type meter struct {
	mu   sync.Mutex
	read map[string]reading // by conversation
}

type reading struct {
	scale  int // for the next fit, in percent; 0 if nothing was measured
	warned bool
}

// scale is the newest one measured in a conversation, 0 for none.
func (m *meter) scale(conversation string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.read[conversation].scale
}

// observe takes in a report: for as many tokens as were predicted, by the
// counter's own measure, the vendor found reported ones. It says whether that is
// worth a warning, which it is once: where the one is more than half off the
// other.
func (m *meter) observe(conversation string, predicted, reported int) (warn bool) {
	if predicted < minMeasured || reported <= 0 {
		return false
	}
	m.update(conversation, func(r *reading) {
		percent := min(reported, maxTokens) * 100 / predicted
		r.scale = scaleOf(percent)
		warn = !r.warned && (percent > 150 || percent < 50)
		r.warned = r.warned || warn
	})
	return warn
}

// scaleOf is what is made of a measured percentage. Too low a count is believed
// at once: the next request would overflow. Too high a one only fills the window
// too early (T82b): up to a quarter it is left alone, beyond that a tenth stays
// on top, since what comes next may be of another kind.
func scaleOf(percent int) int {
	switch {
	case percent > 100:
		return min(percent, maxScale)
	case percent < 75:
		return max(percent*11/10, minScale)
	}
	return 100
}

// overflowed takes in that a request which the fit had allowed under a scale was
// too large for the model: the next fit allows a fifth less.
func (m *meter) overflowed(conversation string, scale int) {
	if scale == 0 {
		scale = 100
	}
	m.update(conversation, func(r *reading) { r.scale = min(max(scale, 100)*5/4, maxScale) })
}

func (m *meter) update(conversation string, change func(*reading)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.read == nil {
		m.read = map[string]reading{}
	}
	if _, known := m.read[conversation]; !known && len(m.read) >= maxMetered {
		for other := range m.read { // any: what is lost is a warning or a measurement
			delete(m.read, other)
			break
		}
	}
	r := m.read[conversation]
	change(&r)
	m.read[conversation] = r
}
