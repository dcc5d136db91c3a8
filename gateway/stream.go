package gateway

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/parley-run/parley/conversation"
)

const (
	// lifetime is how long a stream lasts at most; each draws from 80 to 100 % of
	// it, so that they do not end together (C-30.7).
	lifetime = 15 * time.Minute
	// keepAlive is how long a stream may be silent (C-30.12).
	keepAlive = 15 * time.Second
	// frameBytes is how many bytes of frames are gathered before they are
	// written.
	frameBytes = 32 << 10
)

// events is GET /v1/conversations/{id}/events (C-29.6, C-30): the entries of
// the transcript from a cursor on, and those to come.
func (g *Gateway) events(x *exchange) error {
	if x.r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		return errOrigin // a link or an address typed would hold a stream that nobody reads
	}
	if x.r.ContentLength != 0 { // net/http would hold the stream back for it, and not see its client leave (C-30.11)
		if x.r.ProtoMajor == 1 {
			x.w.Header().Set("Connection", "close")
		}
		return BadRequest("body-unexpected")
	}
	if x.r.Method != http.MethodHead {
		leave, err := g.streams.enter(x.key())
		if err != nil {
			return err
		}
		if leave == nil {
			return g.turnAway(x)
		}
		defer leave()
	}
	var s *stream
	err := aside(func() (err error) {
		s, err = g.prepare(x)
		return err
	})
	if s == nil {
		return err
	}
	defer s.leave()
	if err := s.pipe.open(x); err != nil || x.r.Method == http.MethodHead {
		return err
	}
	ended := EndFailed // by a panic
	defer func() { g.streams.tally.ended[ended].Add(1) }()
	ended = s.run(x.r.Context())
	return nil
}

// turnAway answers a stream that there is no room for: a browser that got an
// error instead would never come back (C-32.7).
func (g *Gateway) turnAway(x *exchange) error {
	p := newPipe(x, &g.streams)
	defer p.close()
	if err := p.open(x); err != nil {
		return err
	}
	ended := EndFull
	select {
	case <-g.streams.draining:
		ended = EndDraining
	default:
	}
	g.streams.tally.ended[ended].Add(1)
	g.streams.tally.frames[eventReconnect].Add(1)
	p.send(comeBack().append(nil)) // a client that is gone is no error
	return nil
}

// prepare does all that can still be answered without a stream. It returns
// neither stream nor error where it has given the answer.
func (g *Gateway) prepare(x *exchange) (*stream, error) {
	from, renders, err := x.streamQuery()
	if err != nil {
		return nil, err
	}
	ctx := x.r.Context()
	tail, err := g.client.Tail(ctx, x.caller, x.id, from)
	if err != nil {
		return nil, err
	}
	live, err := g.client.Live(ctx, x.caller, x.id)
	if err != nil {
		tail.Close()
		return nil, err
	}
	s := &stream{gateway: g, x: x, pipe: newPipe(x, &g.streams), tail: tail, live: live, renders: renders}
	ready := false
	defer func() {
		if !ready { // after a panic too: the place among the conversation's readers is not the caller's yet (C-32.13)
			s.leave()
		}
	}()
	s.news, err = tail.Read(ctx)
	for err == nil && from != nil && s.news.More && len(s.news.Entries) == 0 {
		s.news, err = tail.Read(ctx) // is there anything behind the cursor?
	}
	nothing := from != nil && s.news.Over && len(s.news.Entries) == 0
	var info conversation.Info
	if err == nil && !nothing {
		info, err = g.client.Status(ctx, x.caller, x.id)
	}
	if nothing {
		x.started = true
		x.w.WriteHeader(http.StatusNoContent) // C-30.16: a browser stops asking
	}
	if err != nil || nothing {
		return nil, err
	}
	s.shared = info.Shared
	s.add(frame{event: eventStatus, retry: between(2*time.Second, 5*time.Second), data: opening{info, now()}}) // C-30.1
	ready = true
	return s, nil
}

// opening is the data of the first frame: how the conversation stands, and the
// server's time, by which who comes back tells what was written meanwhile (C-30.15).
type opening struct {
	conversation.Info
	Time time.Time `json:"time"`
}

// now is the time as records have it.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// streamQuery is where a stream goes on, and whether its client asks for HTML. The
// header that a browser sends when it comes back is newer than the address that it
// repeats, and stands over one that cannot be read (C-30.4).
func (x *exchange) streamQuery() (from *conversation.Cursor, renders bool, err error) {
	q, unread := x.query()
	switch last := x.r.Header.Values("Last-Event-ID"); {
	case len(last) > 1:
		err = conversation.ErrInvalidCursor
	case len(last) == 1 && last[0] != "":
		from, err = parseCursor(last[0])
	case unread != nil:
		err = unread
	default:
		from, err = q.cursor()
	}
	if err == nil && unread == nil {
		renders, err = q.renders()
	}
	return from, renders, err
}

// stream is one open stream. All of it happens on the goroutine of its request.
//
// Nothing queues for a client that does not read (C-32.10): the log is read a
// page at a time, of 512 KiB of text, when the last page is written; live words are
// taken from the hub when there is nothing else to write, merged into one frame
// of at most 65,536 code points. A client that takes nothing for 5 s is cut.
type stream struct {
	gateway *Gateway
	x       *exchange
	pipe    *pipe
	tail    *conversation.Tail
	live    *conversation.Live
	shared  bool                // the caller may cease to take part at any time
	renders bool                // whole answers have HTML beside their text
	words   *conversation.Piece // live, that are not written yet
	turn    int                 // theirs, or that of the last ones
	news    conversation.News   // as of the last read
	frames  []byte              // that are not written yet
	written time.Time           // when something was written last

	admitted time.Time // when the caller was let through last
}

// always can be received from at any time.
var always = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// run writes what there is and what comes, until something ends the stream. What
// that was has been told to the client, or the client is gone.
func (s *stream) run(ctx context.Context) StreamEnd {
	ending := time.Now().Add(between(lifetime*8/10, lifetime-conversation.PollInterval))
	s.admitted, s.pipe.still = time.Now(), s.readmit

	for {
		if err := s.deliver(); err != nil {
			return s.cut(ctx, err)
		}
		if s.news.Over {
			return s.close(ctx)
		}
		if !s.news.More {
			if err := s.speak(); err != nil {
				return s.cut(ctx, err)
			}
		}
		again := s.tail.Hint()
		if s.news.More {
			again = always
		}
		select {
		case <-again:
		case <-s.live.Hint():
			if !s.news.More {
				continue // the log has a hint of its own
			}
		case now := <-s.pipe.beat:
			if !now.Before(ending) {
				s.end(frame{event: eventReconnect, data: struct{}{}})
				return EndLifetime
			}
			if err := s.readmit(); err != nil {
				return s.cut(ctx, err)
			}
			if now.Sub(s.written) >= keepAlive {
				s.frames = append(s.frames, comment...)
				s.count(noEvent)
			}
		case <-s.gateway.streams.draining:
			s.end(comeBack())
			return EndDraining
		case <-ctx.Done():
			return EndLeft
		}
		err := aside(func() (err error) {
			s.news, err = s.tail.Read(ctx)
			return err
		})
		if err != nil {
			return s.fail(ctx, err)
		}
	}
}

// deliver writes the entries of the last read, and whatever frames stood before
// them.
func (s *stream) deliver() error {
	if len(s.news.Entries) == 0 {
		return s.flush()
	}
	return aside(s.deliverEntries)
}

func (s *stream) deliverEntries() error {
	for i, entry := range s.news.Entries {
		if err := s.permit(); err != nil {
			return err
		}
		s.news.Entries[i] = conversation.Record{} // it is in the frames now, which may take long to write
		f := frame{event: eventMessage, id: entry.Cursor.String(), data: entry}
		if s.renders {
			f.data = s.gateway.render(entry)
		}
		s.add(f)
		if entry.Role == conversation.RoleAssistant {
			s.supersede(entry.Turn)
		}
		if len(s.frames) >= frameBytes || s.shared { // what was permitted does not wait

			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	s.news.Entries = nil // an idle stream holds none
	return s.flush()
}

// speak writes the live words that there are. Before those of another turn the
// log is read once more: the turn's question is in it, and comes first.
func (s *stream) speak() error {
	for {
		if s.words == nil {
			s.words = s.live.Next()
		}
		switch {
		case s.words == nil:
			return nil
		case s.words.Turn != s.turn:
			s.turn = s.words.Turn
			s.news.More = true
			return nil
		}
		if s.shared {
			if err := aside(s.permit); err != nil {
				return err
			}
		}
		words := s.words.Encoded(frameAside)
		s.count(event(s.words.Kind))
		s.words = nil
		if err := s.write(words); err != nil {
			return err
		}
	}
}

// supersede drops the live words of a turn whose record is written (C-28.8).
func (s *stream) supersede(turn int) {
	s.live.Supersede(turn)
	if s.words != nil && s.words.Turn <= turn {
		s.words = nil
	}
}

// leave frees what the stream holds.
func (s *stream) leave() {
	s.pipe.close()
	s.tail.Close()
	s.live.Close()
}

func (s *stream) add(f frame) {
	s.frames = f.append(s.frames)
	s.count(f.event)
}

func (s *stream) count(e event) { s.gateway.streams.tally.frames[e].Add(1) }

// cutBy says why a write that failed ends a stream.
func cutBy(err error) StreamEnd {
	if errors.Is(err, errStalled) {
		return EndStalled
	}
	return EndLeft
}

// flush writes the frames. An idle stream keeps no buffer.
func (s *stream) flush() error {
	if len(s.frames) == 0 {
		return nil
	}
	frames := s.frames
	s.frames = nil
	return s.write(frames)
}

// write writes frames that are not the stream's own.
func (s *stream) write(frames []byte) error {
	err := s.pipe.send(frames)
	s.written = time.Now()
	return err
}

// end writes the last frame. A client that does not take it is gone, or too slow
// to be told; in the middle of another frame it would be none.
func (s *stream) end(f frame) {
	if s.pipe.torn {
		return
	}
	s.pipe.still = nil
	s.add(f)
	s.flush()
}

// close tells that the conversation is over, and how (C-30.8).
func (s *stream) close(ctx context.Context) StreamEnd {
	info, err := s.gateway.client.Status(ctx, s.x.caller, s.x.id)
	if err != nil {
		return s.fail(ctx, err)
	}
	s.end(frame{event: eventClosed, data: info})
	return EndClosed
}

// fail ends the stream with what a route would have answered (C-30.14).
func (s *stream) fail(ctx context.Context, err error) StreamEnd {
	if ctx.Err() != nil {
		return EndLeft
	}
	r := s.gateway.explain(err)
	s.end(frame{event: eventError, data: r})
	if r.Status == http.StatusUnauthorized || r.Status == http.StatusNotFound {
		return EndRefused
	}
	return EndFailed
}

// comeBack is the one frame of a stream that there is no room for, and the last
// of one that ends with its server.
func comeBack() frame {
	return frame{event: eventReconnect, retry: between(2*time.Second, 10*time.Second), data: struct{}{}}
}

// between draws a time, so that clients do not come back all at once.
func between(least, most time.Duration) time.Duration {
	return least + rand.N(most-least)
}
