package taint

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// pattern is what makes a marker a marker: the letters that both marker lines
// share. Nothing inside a fence may read as these letters in this order,
// whatever stands between them that is no letter.
const pattern = "parleyfence"

// breakAt is the index in pattern before which an imitation is broken up.
const breakAt = len("parley")

// breaker is what breaks it up. It begins with a letter that pattern lacks, so
// it makes no imitation with what stands around it.
const breaker = "[quoted]"

const (
	breakBit = 1 << breakAt
	wholeBit = 1 << (len(pattern) - 1)
)

// neutralise returns s with the breaker inside each imitation of pattern.
//
// It is a bit-parallel search: bit i of state says that pattern[:i+1] can be
// read up to here. A rune that looks like a letter moves every reading on; one
// that may as well be overlooked (white space, zero width, punctuation, marks)
// leaves every reading where it is; one that is both does both.
func neutralise(s string) string {
	var out strings.Builder
	var state uint16
	written, cut := 0, 0
	for i := 0; i < len(s); {
		next, passed, size := step(state, s[i:])
		if passed&breakBit != 0 {
			cut = i // the newest place, so that every reading that ends later crosses it
		}
		state = next
		if state&wholeBit == 0 {
			i += size
			continue
		}
		out.WriteString(s[written:cut])
		out.WriteString(breaker)
		written, state = cut, 0
		i = cut
	}
	if written == 0 {
		return s
	}
	out.WriteString(s[written:])
	return out.String()
}

// step returns the readings after the first rune of s, those that were reached
// within it, and its size.
func step(state uint16, s string) (next, passed uint16, size int) {
	if c := s[0]; c < utf8.RuneSelf {
		passed = (state<<1 | 1) & ascii[c].places
		return passed | state&ascii[c].keep, passed, 1
	}
	r, size := utf8.DecodeRuneInString(s)
	if letters := reading(r, s); letters != "" {
		next = state
		for i := range len(letters) {
			next = (next<<1 | 1) & ascii[letters[i]].places
			passed |= next
		}
	}
	if overlooked(r) {
		next |= state
	}
	return next, passed, size
}

// ascii says of each ASCII character which places of pattern its reading has,
// and which readings it keeps by being overlooked: all or none.
var ascii = func() (table [utf8.RuneSelf]struct{ places, keep uint16 }) {
	for r := range rune(utf8.RuneSelf) {
		for i := range len(pattern) {
			if asciiReading(r) == pattern[i:i+1] {
				table[r].places |= 1 << i
			}
		}
		if overlooked(r) {
			table[r].keep = 1<<len(pattern) - 1
		}
	}
	return table
}()

// overlooked reports whether a reader may pass over the rune within a word.
func overlooked(r rune) bool {
	switch r {
	case '\u115F', '\u1160', '\u3164', '\uFFA0': // letters by category, and blank
		return true
	}
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) || unicode.Is(unicode.Lm, r)
}

// reading returns the letters that r, the first rune of s, can be read as, in
// order; "" where it reads as none.
func reading(r rune, s string) string {
	if r < utf8.RuneSelf {
		return asciiReading(r)
	}
	if letter, ok := lookalikes[r]; ok {
		return letter
	}
	for _, first := range alphabets {
		if first <= r && r < first+26 {
			return asciiReading('a' + r - first)
		}
	}
	var letters []byte
	for _, part := range string(norm.NFKD.PropertiesString(s).Decomposition()) {
		letter, ok := lookalikes[part]
		if !ok && part < utf8.RuneSelf {
			letter = asciiReading(part)
		}
		letters = append(letters, letter...)
	}
	return string(letters)
}

// asciiReading folds case and reads i, 1 and | as l. A letter outside pattern
// is read as itself, which fits no place.
func asciiReading(r rune) string {
	switch {
	case r == 'i' || r == 'I' || r == '1' || r == '|':
		r = 'l'
	case 'A' <= r && r <= 'Z':
		r += 'a' - 'A'
	case r < 'a' || r > 'z':
		return ""
	}
	return latin[r-'a' : r-'a'+1]
}

const latin = "abcdefghijklmnopqrstuvwxyz"

// alphabets are the runs of A to Z that compatibility decomposition leaves
// alone: negative circled, negative squared, regional indicators, and tags.
var alphabets = []rune{0x1F150, 0x1F170, 0x1F1E6, 0xE0041, 0xE0061}

// lookalikes are the runes of other scripts, and the small capitals, that look
// like a letter of pattern. Compatibility forms and accents are not here:
// decomposition finds those.
var lookalikes = func() map[rune]string {
	table := map[rune]string{}
	for letter, others := range map[string]string{
		"p": "рРρΡᴘᏢⲣⲢƿ⍴ᑭꓑ",
		"a": "аАαΑᴀɑᎪ⍺ᗅꓮ",
		"r": "гГᴦʀᎡᏒꭇꭈᖇꓣ",
		"l": "ӏӀΙιІіʟᏞıǀ∣ɩⲒᒪꓡ׀ا",
		"e": "еЕεΕҽᴇɛᎬєЄ℮ⴹꓰ",
		"y": "уУΥυγүҮʏᎩᎽỿɣყⲩꓬ",
		"f": "ϜϝꜰƒſքꞙꞘᖴꓝ",
		"n": "пΝηոɴᏁŋⲚռꓠ",
		"c": "сСϲϹᴄᏟⲥⲤꓚ©¢",
	} {
		for _, other := range others {
			table[other] = letter
		}
	}
	return table
}()
