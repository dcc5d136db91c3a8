package agent

import (
	"strings"
	"unicode/utf8"
)

// MaxTextBytes bounds a reply and a tool's result. A longer text is cut, and
// says so.
const MaxTextBytes = 256 << 10

// maxEncodedBytes bounds the same text in JSON, where a control character takes
// six bytes: an event must be able to hold it.
const maxEncodedBytes = 2 * MaxTextBytes

const (
	replyCut  = "\n\n[The reply was cut here: it reached the limit of 256 KiB.]"
	resultCut = "\n\n[The result was cut here: it reached the limit of 256 KiB.]"
)

// scrub makes a text valid UTF-8.
func scrub(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// room is what is left of the limits of a text.
type room struct{ raw, encoded int }

func newRoom(remark string) room {
	return room{raw: MaxTextBytes - len(remark), encoded: maxEncodedBytes - encodedLen(remark)}
}

// take returns the longest prefix of a valid text that fits, whole code points
// only, and whether that is all of it.
func (r *room) take(text string) (prefix string, all bool) {
	if len(text) <= r.raw && 6*len(text) <= r.encoded {
		r.raw -= len(text)
		r.encoded -= encodedLen(text)
		return text, true
	}
	for i, c := range text {
		raw, encoded := utf8.RuneLen(c), runeCost(c)
		if raw > r.raw || encoded > r.encoded {
			return text[:i], false
		}
		r.raw -= raw
		r.encoded -= encoded
	}
	return text, true
}

// roomBehind is what is left for a round of a reply behind what was said before,
// so that all that is shown is in the reply.
func roomBehind(before string) room {
	r := newRoom(roundBreak + replyCut)
	if before != "" {
		r.raw -= len(before) + len(roundBreak)
		r.encoded -= encodedLen(before) + encodedLen(roundBreak)
	}
	return r
}

// cut returns the text if it leaves room for the remark or ends with it and fits,
// else its beginning and the remark.
func cut(text, remark string) string {
	if strings.HasSuffix(text, remark) && len(text) <= MaxTextBytes && encodedLen(text) <= maxEncodedBytes {
		return text
	}
	left := newRoom(remark)
	if prefix, all := left.take(text); !all {
		return prefix + remark
	}
	return text
}

func encodedLen(text string) int {
	n := 0
	for _, c := range text {
		n += runeCost(c)
	}
	return n
}

// runeCost is how many bytes a code point takes in a JSON string.
func runeCost(c rune) int {
	switch {
	case c == '"' || c == '\\' || c == '\b' || c == '\f' || c == '\n' || c == '\r' || c == '\t':
		return 2
	case c < ' ':
		return 6
	}
	return utf8.RuneLen(c)
}

// join puts what a model said in one round behind what it said before.
func join(before, text string) string {
	if before == "" || text == "" {
		return before + text
	}
	return before + roundBreak + text
}

// roundBreak stands in a reply between the texts of two rounds.
const roundBreak = "\n\n"
