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
	floor  int // what a report does not lower it beneath: less was refused
	warned bool
}

// scale is the newest one measured in a conversation, 0 for none.
func (m *meter) scale(conversation string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.read[conversation].scale
}

// observe takes in a report: for as many tokens as were predicted, by the
// counter's own measure, and allowed under a scale, the vendor found reported
// ones. It says whether that is worth a warning, which it is once: where the one
// is more than half off the other.
//
// The report on a small request is rather too high, so it only lowers a scale
// above 100. Without that a scale which leaves room for no more than small
// requests would stay for ever.
func (m *meter) observe(conversation string, predicted, reported, scale int) (warn bool) {
	if predicted <= 0 || reported <= 0 {
		return false
	}
	percent := min(reported, maxTokens) * 100 / predicted
	small := predicted < minMeasured
	if small && (scale <= 100 || percent >= scale) {
		return false
	}
	m.update(conversation, func(r *reading) {
		r.scale = max(scaleOf(percent), r.floor)
		if small {
			r.scale = max(r.scale, 100)
			return
		}
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
// too large for the model: the next fit allows a fifth less, and no report allows
// as much again as long as the process lives. A vendor that reports too little,
// or a window that is set too large, would fail every second turn otherwise.
// Where a report had allowed more than the counter does, it is the report that is
// not believed any more.
func (m *meter) overflowed(conversation string, scale int) {
	if scale == 0 {
		scale = 100
	}
	next := min(max(scale, 100)*5/4, maxScale)
	m.update(conversation, func(r *reading) {
		r.scale, r.floor = next, max(r.floor, 100)
		if scale >= 100 {
			r.floor = next
		}
	})
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
