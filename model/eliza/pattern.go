package eliza

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pattern decomposes a clause. Its elements are a word, which matches itself;
// words joined by "|", of which one matches; "?", which matches any one word;
// "*", which matches any number of words; and "+", which matches one or more.
// A match has a part for each element but the plain words, in their order.
type pattern []string

func parsePattern(text string) pattern { return strings.Fields(text) }

// parts decomposes the clause, and reports whether it could. Each "*" and "+"
// takes as few words as it can.
func (p pattern) parts(c clause) ([][]word, bool) {
	if len(p) == 0 {
		return nil, len(c) == 0
	}
	switch element := p[0]; element {
	case "*", "+":
		least := 0
		if element == "+" {
			least = 1
		}
		for n := least; n <= len(c); n++ {
			if rest, ok := p[1:].parts(c[n:]); ok {
				return slices.Insert(rest, 0, []word(c[:n])), true
			}
		}
		return nil, false
	default:
		if len(c) == 0 || element != "?" && !slices.Contains(strings.Split(element, "|"), c[0].low) {
			return nil, false
		}
		rest, ok := p[1:].parts(c[1:])
		switch {
		case !ok:
		case element == "?":
			rest = slices.Insert(rest, 0, []word(c[:1]))
		case strings.Contains(element, "|"): // no name is among them: no capital
			rest = slices.Insert(rest, 0, []word{{low: c[0].low, raw: c[0].low}})
		}
		return rest, ok
	}
}

// assemble puts the parts of a clause into a line, in the place of {1}, {2}
// and so on, as seen from the other side.
func assemble(line string, parts [][]word) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(line, '{')
		if i < 0 {
			break
		}
		b.WriteString(line[:i])
		b.WriteString(reflect(parts[line[i+1]-'1']))
		line = line[i+len("{n}"):]
	}
	b.WriteString(line)
	return capital(strings.Join(strings.Fields(b.String()), " "))
}

// capital makes the first letter of a sentence a capital.
func capital(text string) string {
	r, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	return string(unicode.ToUpper(r)) + text[size:]
}
