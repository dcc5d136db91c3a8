package conversation

import (
	"context"
	"sync"

	"github.com/parley-run/parley/identity"
)

// WordsKind says what words tell.
type WordsKind string

const (
	WordsDelta   WordsKind = "delta"   // they follow what was told of the turn so far
	WordsPartial WordsKind = "partial" // they are the reply so far, and stand for all that was told of it
	WordsReset   WordsKind = "reset"   // the reply begins again; what was told of it is void
)

// Words are news of a reply in progress. They may be lost; the durable record of
// the turn takes their place.
type Words struct {
	Kind      WordsKind `json:"-"`
	Turn      int       `json:"turn"`
	Text      string    `json:"text,omitzero"`      // whole code points; none with a reset
	Truncated bool      `json:"truncated,omitzero"` // of a partial: its beginning is missing (C-28.7)
}

// Piece is words that several readers may be given.
type Piece struct {
	Words

	once    sync.Once
	encoded []byte
}

// Encoded returns what encode makes of the words. It is made once for all
// readers who are given them, by the encode of the first; nobody may change it.
func (p *Piece) Encoded(encode func(Words) []byte) []byte {
	p.once.Do(func() { p.encoded = encode(p.Words) })
	return p.encoded
}

// Live follows the live words of a conversation, in a shared one those of the
// reader's own turns (C-37.9): take all there is with
// [Live.Next], wait until [Live.Hint] receives, take again. It belongs to one
// goroutine, and starts none. A reader who is slow is given more at a time, and
// one who is too slow a partial. [Live.Close] frees its place.
type Live struct {
	channel *channel           // nil without a hub: there is never a word
	who     *identity.Identity // who reads
	hint    chan struct{}

	fresh      bool // is to be given a partial first
	turn       int  // the place: of this turn,
	take       int  // in this take of it,
	at         int  // behind this byte
	superseded int  // nothing is told of the turns up to this one
	closed     bool
}

// Live begins to follow the live words of a conversation. Where a reply is in
// progress the first are a partial. Without a hub, and where the model runs in
// another process, there are none (C-28.10). The caller is judged once, here.
//
// Errors: [ErrNotFound], [ErrTooManyReaders].
func (c *Client) Live(ctx context.Context, caller *identity.Principal, id string) (*Live, error) {
	if err := c.AuthorizeRead(ctx, caller, id); err != nil {
		return nil, err
	}
	if c.hub == nil {
		return &Live{}, nil
	}
	return c.hub.follow(id, asker(caller))
}

func (h *Hub) follow(id string, who *identity.Identity) (*Live, error) {
	c := h.use(id)
	c.mu.Lock()
	full := len(c.readers) >= h.maxReaders
	l := &Live{channel: c, who: who, hint: make(chan struct{}, 1), turn: c.reply.turn, take: c.reply.take, at: c.reply.end()}
	if !full {
		c.readers[l] = struct{}{}
		if c.voice != nil && l.at > 0 && c.reply.isFor(who) { // of a turn that has ended nothing is repeated (T37)
			l.fresh = true
			l.wake()
		}
	}
	c.mu.Unlock()
	if full {
		c.leave()
		return nil, ErrTooManyReaders
	}
	return l, nil
}

// Close gives up the place. It may be called again.
func (l *Live) Close() {
	if l.channel == nil || l.closed {
		return
	}
	l.closed = true
	l.channel.mu.Lock()
	delete(l.channel.readers, l)
	l.channel.mu.Unlock()
	l.channel.leave()
}

// Hint receives when there may be words to take.
func (l *Live) Hint() <-chan struct{} { return l.hint }

func (l *Live) wake() {
	select {
	case l.hint <- struct{}{}:
	default:
	}
}

// Next takes what there is to tell, merged into one piece, nil if there is
// nothing. Readers at the same place are given the same.
func (l *Live) Next() *Piece {
	if l.channel == nil {
		return nil
	}
	l.channel.mu.Lock()
	defer l.channel.mu.Unlock()
	r := &l.channel.reply
	if r.over || r.turn <= l.superseded || !r.isFor(l.who) {
		return nil
	}
	if l.turn != r.turn {
		l.turn, l.take, l.at, l.fresh = r.turn, 0, 0, false
	}
	if l.take != r.take {
		l.take, l.at = r.take, 0
		if !l.fresh {
			return &Piece{Words: Words{Kind: WordsReset, Turn: r.turn}}
		}
	}
	place := l.at
	if l.fresh {
		place = -1
	} else if place == r.end() {
		return nil
	}
	l.at, l.fresh = r.end(), false
	return r.from(place)
}

// Supersede says that the reader has the durable record of a turn: from now on
// it is given nothing of that turn, nor of an earlier one (C-28.8).
func (l *Live) Supersede(turn int) {
	l.superseded = max(l.superseded, turn)
	if l.channel == nil {
		return
	}
	l.channel.mu.Lock()
	defer l.channel.mu.Unlock()
	if c := l.channel; c.voice == nil && c.reply.turn <= turn {
		c.reply.finish()
	}
}
