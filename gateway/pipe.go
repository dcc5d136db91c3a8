package gateway

import (
	"fmt"
	"net/http"
	"time"
)

const (
	// writeWithin is how long a client may take to accept a chunk.
	writeWithin = 5 * time.Second
	// writeChunk is how much is written under one deadline. A client is fast
	// enough if it takes that much in writeWithin.
	writeChunk = 16 << 10
)

// pipe is the way to the client of a stream. The deadline is armed for each
// write and cleared after it: over HTTP/2 one that is left armed would end an
// idle stream.
type pipe struct {
	w       http.ResponseWriter
	control *http.ResponseController
	streams *streams
}

func newPipe(w http.ResponseWriter, s *streams) pipe {
	return pipe{w: w, control: http.NewResponseController(w), streams: s}
}

// open writes the head of a stream. It fails, before anything is written, on a
// connection that knows no deadlines: behind a wrapper that hides them a stream
// would hang, and it had better be seen.
func (p *pipe) open(x *exchange) error {
	if err := p.control.SetWriteDeadline(p.streams.deadline(writeWithin)); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	defer p.control.SetWriteDeadline(time.Time{})
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
	defer p.control.SetWriteDeadline(time.Time{})
	for len(frames) > 0 {
		if err := p.control.SetWriteDeadline(p.streams.deadline(writeWithin)); err != nil {
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
