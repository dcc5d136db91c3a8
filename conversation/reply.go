package conversation

import (
	"strings"
	"unicode/utf8"

	"github.com/parley-run/parley/identity"
)

// maxPartial is how many code points of a reply in progress are kept: the
// newest (C-28.7).
const maxPartial = 65536

// reply is a reply in progress. Its readers keep a place in it, so that one who
// is behind costs no memory: what is pending for them is the text from their
// place on.
type reply struct {
	turn     int
	listener *identity.Identity // whom the words are for; nil: everybody who reads

	take   int    // rises each time that the reply begins again
	text   []byte // what is kept
	start  int    // where in the reply that begins, in bytes
	points int    // code points of text
	over   bool   // the log has it; nothing is kept

	// pieces are what readers were given since the last word, by their place; the
	// partial is under -1. Those at the same place are given the same.
	pieces map[int]*Piece
}

// isFor reports whether somebody may be given the words.
func (r *reply) isFor(who *identity.Identity) bool {
	return r.listener == nil || sameAsker(r.listener, who)
}

// end is the place behind the last word.
func (r *reply) end() int { return r.start + len(r.text) }

// is reports whether the reply so far is the text.
func (r *reply) is(text string) bool {
	return r.end() == len(text) && strings.HasSuffix(text, string(r.text))
}

// restart begins the reply again, with what is known of it.
func (r *reply) restart(text string) {
	r.take++
	r.text, r.start, r.points = nil, 0, 0
	r.add(text)
}

// add appends whole code points, and lets go of the oldest that are too many.
func (r *reply) add(text string) {
	r.pieces = nil
	r.text = append(r.text, text...)
	r.points += utf8.RuneCountInString(text)
	cut := 0
	for ; r.points > maxPartial; r.points-- {
		_, size := utf8.DecodeRune(r.text[cut:])
		cut += size
	}
	r.text = r.text[cut:]
	r.start += cut
}

// from is the piece for readers at a place: what came behind it, or, where that
// is not kept any more, the partial.
func (r *reply) from(place int) *Piece {
	words := Words{Kind: WordsDelta, Turn: r.turn}
	if place < r.start {
		place = -1
	}
	if p := r.pieces[place]; p != nil {
		return p
	}
	if place < 0 {
		words.Kind, words.Truncated, words.Text = WordsPartial, r.start > 0, string(r.text)
	} else {
		words.Text = string(r.text[place-r.start:])
	}
	if r.pieces == nil {
		r.pieces = map[int]*Piece{}
	}
	p := &Piece{Words: words}
	r.pieces[place] = p
	return p
}

// finish lets go of the text, which the log has now.
func (r *reply) finish() {
	r.text, r.pieces, r.over = nil, nil, true
}
