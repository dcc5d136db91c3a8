package taint

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Stranger lets what a stranger says of itself, such as the description of a
// tool of somebody's server, into an instruction position (C-8.3). It is the one
// way there for a text that is not ours, and it is narrow: a text that is longer
// than limit bytes, that a person who looks at it cannot see all of, or that
// imitates the fence, is refused. The error says what is wrong and repeats
// nothing of the text.
//
// What it cannot judge is the meaning. Whoever names the server has decided to
// trust what its tools say they are for.
func Stranger(text string, limit int) (Text, error) {
	if len(text) > limit {
		return Text{}, fmt.Errorf("it is longer than %d bytes", limit)
	}
	if !utf8.ValidString(text) {
		return Text{}, errors.New("it is not UTF-8")
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	before := rune(-1)
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t':
		case unicode.IsControl(r):
			return Text{}, fmt.Errorf("it has the control character %U", r)
		case hidden(r, before):
			return Text{}, fmt.Errorf("it has the invisible character %U", r)
		}
		before = r
	}
	if neutralise(text) != text {
		return Text{}, errors.New("it imitates the fence around what is not ours")
	}
	return Plain(text), nil
}

// hidden reports whether a rune shows nothing of itself: what has no width, turns
// the direction of writing, looks like a space and is a letter, or has no agreed
// look at all. The mark that makes an emoji colourful is none where it follows a
// visible rune.
func hidden(r, before rune) bool {
	if r == '\uFE0F' {
		return before == '\uFE0F' || before < '!'
	}
	switch r {
	case '\u115F', '\u1160', '\u3164', '\uFFA0', '\u2800':
		return true
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co,
		unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point)
}
