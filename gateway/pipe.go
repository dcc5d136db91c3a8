package gateway

import (
	"fmt"
	"net/http"
	"time"
)

const (
	// writeWithin is how long a client may take to accept a chunk, at least, and
	// writeSlack how much more it may be given: over HTTP/1.1 one deadline serves
	// the writes of a while.
	writeWithin = 5 * time.Second
	writeSlack  = time.Second
	// writeChunk is how much is written under one deadline. A client is fast
	// enough if it takes that much in writeWithin.
	writeChunk = 16 << 10
)

// pipe is the way to the client of a stream. Every write has a deadline. Over
// HTTP/2 it is armed for each and cleared after it, since one that is left armed
// would end an idle stream. Over HTTP/1.1, where it bears on writes alone, it stays
// until it comes near, which is much cheaper where deltas are many; [pipe.close]
// clears it when the stream falls silent or ends.
type pipe struct {
	w       http.ResponseWriter
	control *http.ResponseController
	streams *streams
	each    bool      // the deadline is of each write
	armed   time.Time // the deadline
}

func newPipe(x *exchange, s *streams) pipe {
	return pipe{w: x.w, control: http.NewResponseController(x.w), streams: s, each: x.r.ProtoMajor > 1}
}

// arm gives the next write a deadline.
func (p *pipe) arm() error {
	if !p.each && time.Until(p.armed) >= writeWithin && !p.streams.ending() {
		return nil
	}
	within := writeWithin
	if !p.each {
		within += writeSlack
	}
	p.armed = p.streams.deadline(within)
	return p.control.SetWriteDeadline(p.armed)
}

// disarm takes the deadline away behind a write.
func (p *pipe) disarm() {
	if p.each {
		p.close()
	}
}

// close leaves the connection without a deadline, for what comes on it next.
func (p *pipe) close() {
	if !p.armed.IsZero() {
		p.control.SetWriteDeadline(time.Time{})
		p.armed = time.Time{}
	}
}

// open writes the head of a stream. It fails, before anything is written, on a
// connection that knows no deadlines: behind a wrapper that hides them a stream
// would hang, and it had better be seen.
func (p *pipe) open(x *exchange) error {
	if err := p.arm(); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	defer p.disarm()
	header := p.w.Header()
	header.Set("Content-Type", "text/event-stream") // exactly; a parameter keeps some proxies from flushing
	header.Set("Cache-Control", "no-store, no-transform")
	header.Set("X-Accel-Buffering", "no")
	x.started = true
	p.w.WriteHeader(http.StatusOK)
	return nil
}

// send writes frames and flushes. After an error the stream is over: what was
// cut off comes again when the client resumes.
func (p *pipe) send(frames []byte) error {
	defer p.disarm()
	for len(frames) > 0 {
		if err := p.arm(); err != nil {
			return err
		}
		n := min(len(frames), writeChunk)
		if _, err := p.w.Write(frames[:n]); err != nil {
			return err
		}
		frames = frames[n:]
	}
	return p.control.Flush() // over HTTP/1.1 only this reports a deadline that has passed
}
