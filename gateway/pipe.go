package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-run/parley/conversation"
)

const (
	// writeWithin is how long a client may take to accept a chunk, and a second
	// more: it is looked at once a second.
	writeWithin = 5 * time.Second
	// writeChunk is how much is written at a time. A client is fast enough if it
	// takes that much in writeWithin.
	writeChunk = 16 << 10
)

// pipe is the way to the client of a stream. A write that takes too long is cut.
// To see it there is a beat once a second, for which a write leaves a note: a
// deadline of the connection for each write, or a timer, is a good part of what a
// delta costs, and over HTTP/2 a deadline that is left armed ends an idle stream.
type pipe struct {
	w       http.ResponseWriter
	control *http.ResponseController
	streams *streams
	began   atomic.Int64 // when the write began that goes on, on the clock of born; 0 without one
	born    time.Time
	beat    chan time.Time // about once a second, while the pipe is open
	still   func() error   // nil, or asked before each chunk whether it is to be written
	torn    bool           // the last frame was written in part

	mu    sync.Mutex
	timer *time.Timer // nil unless the pipe is open
	late  bool        // a write was cut
}

func newPipe(x *exchange, s *streams) *pipe {
	return &pipe{w: x.w, control: http.NewResponseController(x.w), streams: s, beat: make(chan time.Time, 1), born: time.Now()}
}

// pulse is one beat.
func (p *pipe) pulse() {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil {
		return
	}
	p.timer.Reset(conversation.PollInterval)
	if began := p.began.Load(); began > 0 && !now.Before(p.streams.deadline(p.born.Add(time.Duration(began)))) {
		p.late = true
		p.control.SetWriteDeadline(now)
	}
	select {
	case p.beat <- now:
	default:
	}
}

// close leaves the connection without a deadline, for what comes on it next.
func (p *pipe) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	if p.late {
		p.control.SetWriteDeadline(time.Time{})
	}
}

// open writes the head of a stream. It fails, before anything is written, on a
// connection that knows no deadlines: behind a wrapper that hides them a stream
// would hang, and it had better be seen. That a client is gone already is no
// failure of ours, and nobody is told of it.
func (p *pipe) open(x *exchange) error {
	if err := p.control.SetWriteDeadline(time.Time{}); errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("stream: %w", err)
	} else if err != nil {
		return fmt.Errorf("stream: %w: %w", context.Canceled, err)
	}
	header := p.w.Header()
	header.Set("Content-Type", "text/event-stream") // exactly; a parameter keeps some proxies from flushing
	header.Set("Cache-Control", "no-store, no-transform")
	header.Set("X-Accel-Buffering", "no")
	x.started = true
	p.w.WriteHeader(http.StatusOK)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(conversation.PollInterval, p.pulse)
	return nil
}

// send writes frames and flushes. After an error the stream is over: what was
// cut off comes again when the client resumes.
func (p *pipe) send(frames []byte) error {
	defer p.began.Store(0)
	for whole := len(frames); len(frames) > 0; {
		if err := p.ask(); err != nil {
			p.torn = len(frames) < whole
			return err
		}
		p.began.Store(int64(time.Since(p.born)) | 1)
		n := min(len(frames), writeChunk)
		if _, err := p.w.Write(frames[:n]); err != nil {
			return p.broken(err)
		}
		p.streams.tally.bytes.Add(uint64(n))
		frames = frames[n:]
	}
	return p.broken(p.control.Flush()) // over HTTP/1.1 only this reports that a write was cut
}

// ask asks whether a chunk is to be written. How long the answer takes is not the
// client's fault.
func (p *pipe) ask() error {
	if p.still == nil {
		return nil
	}
	p.began.Store(0)
	return p.still()
}

// errStalled says that a client took nothing for too long.
var errStalled = errors.New("the client takes nothing")

// broken makes an error of a write that was cut errStalled. Over HTTP/2 the error
// itself is the same as that of a client which is gone.
func (p *pipe) broken(err error) error {
	if err == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.late {
		return fmt.Errorf("%w: %w", errStalled, err)
	}
	return err
}
