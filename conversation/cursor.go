package conversation

import (
	"math"
	"strconv"
	"strings"

	"github.com/parley-run/parley/journal"
)

// Cursor names a place in the chain of one conversation, "<generation>.<sequence>"
// on the wire (C-17.5). It means nothing in another conversation, and shows
// nothing of the one it came from.
type Cursor struct {
	Generation int
	Seq        journal.Seq
}

// maxCursorDigits bounds each number of a cursor (C-17.7).
const maxCursorDigits = 15

// endOfGeneration is the largest sequence that a cursor can write. As a place
// it lies beyond every tip, and so stands for the end of its generation (C-17.8).
const endOfGeneration journal.Seq = 999_999_999_999_999

// ParseCursor reads a cursor from its wire form: two decimal integers without
// sign or leading zeros, at most 15 digits each, joined by one dot (C-17.7).
//
// Errors: [ErrInvalidCursor], which repeats nothing of the text (C-17.6).
func ParseCursor(text string) (Cursor, error) {
	generation, seq, found := strings.Cut(text, ".")
	g, okG := parseDigits(generation)
	s, okS := parseDigits(seq)
	if !found || !okG || !okS {
		return Cursor{}, ErrInvalidCursor
	}
	// A generation that does not fit an int lies beyond every head, as MaxInt does.
	return Cursor{Generation: int(min(g, math.MaxInt)), Seq: journal.Seq(s)}, nil
}

func parseDigits(text string) (int64, bool) {
	if text == "" || len(text) > maxCursorDigits || (text[0] == '0' && len(text) > 1) {
		return 0, false
	}
	var n int64
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// String returns the wire form.
func (c Cursor) String() string {
	return strconv.Itoa(c.Generation) + "." + strconv.FormatInt(int64(c.Seq), 10)
}

// MarshalText writes the wire form.
func (c Cursor) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the wire form, see [ParseCursor].
func (c *Cursor) UnmarshalText(text []byte) (err error) {
	*c, err = ParseCursor(string(text))
	return err
}
