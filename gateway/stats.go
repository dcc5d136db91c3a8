package gateway

import "sync/atomic"

// StreamEnd is why a stream ended.
type StreamEnd string

// The ends of streams; there are no others.
const (
	EndClosed   StreamEnd = "closed"   // the conversation is over
	EndLifetime StreamEnd = "lifetime" // it had lasted long enough (C-30.7)
	EndDraining StreamEnd = "draining" // the server stops
	EndFull     StreamEnd = "full"     // there was no room; it was turned away (C-32.7)
	EndLeft     StreamEnd = "left"     // the client went, or its connection broke
	EndStalled  StreamEnd = "stalled"  // the client took nothing in time (C-32.10)
	EndRefused  StreamEnd = "refused"  // its caller is no longer admitted (C-31.8)
	EndFailed   StreamEnd = "failed"   // something went wrong here
)

// StreamEnds returns all of them.
func StreamEnds() []StreamEnd {
	return []StreamEnd{EndClosed, EndLifetime, EndDraining, EndFull, EndLeft, EndStalled, EndRefused, EndFailed}
}

// Stats is what a gateway's streams are at, and what they did since it was made.
// The keys of the maps are always the same.
type Stats struct {
	Open   int                  // streams
	Ended  map[StreamEnd]uint64 // streams
	Frames map[string]uint64    // that were made for clients, by the name of their event; "comment" keeps a stream alive
	Bytes  uint64               // of frames that were written
}

// Stats tells what the streams are at, for metrics.
func (g *Gateway) Stats() Stats {
	s := &g.streams
	s.mu.Lock()
	stats := Stats{Open: s.open, Ended: map[StreamEnd]uint64{}, Frames: map[string]uint64{}, Bytes: s.tally.bytes.Load()}
	s.mu.Unlock()
	for end, n := range s.tally.ended {
		stats.Ended[end] = n.Load()
	}
	for name, n := range s.tally.frames {
		stats.Frames[string(name)] = n.Load()
	}
	return stats
}

// tally counts what streams do. Its maps are made once, and only read from then
// on.
type tally struct {
	ended  map[StreamEnd]*atomic.Uint64
	frames map[event]*atomic.Uint64
	bytes  atomic.Uint64
}

func newTally() *tally {
	t := &tally{ended: map[StreamEnd]*atomic.Uint64{}, frames: map[event]*atomic.Uint64{}}
	for _, end := range StreamEnds() {
		t.ended[end] = new(atomic.Uint64)
	}
	for _, name := range eventNames {
		t.frames[name] = new(atomic.Uint64)
	}
	return t
}
