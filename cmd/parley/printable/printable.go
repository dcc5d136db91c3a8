// Package printable makes the texts of people and models fit for a terminal:
// [Line] and [Lines] leave nothing that it would act on. What they wrote is not
// ours, and may hold escape sequences (C-30.13).
package printable

import (
	"strings"
	"unicode"
)

// Line is a text on one line without anything that a terminal would act on.
func Line(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case Harmless(r):
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// Lines is Line for a text of several lines.
func Lines(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = Line(line)
	}
	return strings.Join(lines, "\n")
}

// Harmless refuses control characters, and the format characters that reorder
// or hide what stands around them. Joiners, which emoji and many scripts need,
// pass.
func Harmless(r rune) bool {
	const joiners = "\u200c\u200d"
	if unicode.Is(unicode.Cf, r) {
		return strings.ContainsRune(joiners, r)
	}
	return !unicode.IsControl(r)
}
