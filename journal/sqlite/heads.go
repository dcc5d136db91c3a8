package sqlite

import "github.com/parley-run/parley/journal"

// heads remembers the next sequence of the streams that were written lately.
// It keeps two generations: a stream that is used moves into the young one, and
// when that is full the old one is forgotten. So it holds at most that many streams,
// and always the half of them used last.
type heads struct {
	most       int
	young, old map[string]journal.Seq
}

func newHeads(most int) heads {
	return heads{most: most, young: make(map[string]journal.Seq)}
}

func (h *heads) get(stream string) (journal.Seq, bool) {
	if next, ok := h.young[stream]; ok {
		return next, true
	}
	next, ok := h.old[stream]
	if ok {
		h.put(stream, next)
	}
	return next, ok
}

func (h *heads) put(stream string, next journal.Seq) {
	if _, known := h.young[stream]; !known && len(h.young) >= h.most/2 {
		h.young, h.old = make(map[string]journal.Seq), h.young
	}
	h.young[stream] = next
}

func (h *heads) clear() {
	clear(h.young)
	clear(h.old)
}
