package main

import (
	"strings"
	"unicode"
)

// printable is a text on one line without anything that a terminal would act
// on: what people and models wrote is not ours, and may hold escape sequences
// (C-30.13).
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case isHarmless(r):
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// printableLines is printable for a text of several lines.
func printableLines(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = printable(line)
	}
	return strings.Join(lines, "\n")
}

// isHarmless refuses control characters, and the format characters that reorder
// or hide what stands around them. Joiners, which emoji and many scripts need,
// pass.
func isHarmless(r rune) bool {
	const joiners = "\u200c\u200d"
	if unicode.Is(unicode.Cf, r) {
		return strings.ContainsRune(joiners, r)
	}
	return !unicode.IsControl(r)
}
