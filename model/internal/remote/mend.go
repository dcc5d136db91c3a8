package remote

import (
	"bufio"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A service may split a character over two deltas: between the bytes of its
// UTF-8, or between the halves of a surrogate pair. Each delta is JSON of its
// own, so a decoder sees two broken texts and puts U+FFFD in the place of each
// half. Therefore a [mender] reads the stream first and puts a stand-in of
// plane 16 in the place of each half, and a [joiner] puts the halves of
// decoded deltas together again.
const (
	byteStandIn      = 0x10FE00 // + the byte, 0x80 to 0xFF
	surrogateStandIn = 0x10F000 // + the surrogate - 0xD800
)

// mender reads a stream of JSON texts and replaces halves of characters.
type mender struct {
	from   *bufio.Reader
	closer io.Closer
	buf    []byte // the room of out
	out    []byte // mended, and not yet read
	err    error  // behind out
}

func newMender(from io.ReadCloser) *mender {
	return &mender{from: bufio.NewReader(from), closer: from, buf: make([]byte, 0, 8<<10)}
}

// Close closes what it reads from.
func (m *mender) Close() error { return m.closer.Close() }

// Read returns as soon as there is something to read, so that a delta is not
// held back. It looks ahead only where a character is not complete.
func (m *mender) Read(p []byte) (int, error) {
	if len(m.out) == 0 {
		m.out = m.buf[:0]
	}
	for m.err == nil && len(m.out) < len(p) && (len(m.out) == 0 || m.from.Buffered() > 0) {
		if m.plain(); m.from.Buffered() > 0 || len(m.out) == 0 {
			m.step()
		}
	}
	n := copy(p, m.out)
	m.out = m.out[n:]
	if n == 0 && len(p) > 0 {
		return 0, m.err
	}
	return n, nil
}

// plain copies what is at hand and needs no mending.
func (m *mender) plain() {
	ahead, _ := m.from.Peek(m.from.Buffered())
	n := 0
	for n < len(ahead) && ahead[n] < utf8.RuneSelf && ahead[n] != '\\' {
		n++
	}
	m.out = append(m.out, ahead[:n]...)
	m.from.Discard(n)
}

// step mends one character or one escape.
func (m *mender) step() {
	c, err := m.from.ReadByte()
	switch {
	case err != nil:
		m.err = err
	case c < utf8.RuneSelf && c != '\\':
		m.out = append(m.out, c)
	case c != '\\':
		m.character(c)
	default:
		m.escape()
	}
}

// character takes the rest of a character, or a stand-in for its first byte.
func (m *mender) character(first byte) {
	char := [utf8.UTFMax]byte{first}
	for n := 1; !utf8.FullRune(char[:n]); n++ {
		ahead, _ := m.from.Peek(n)
		if len(ahead) < n {
			break
		}
		char[n] = ahead[n-1]
	}
	r, size := utf8.DecodeRune(char[:])
	if size == 1 {
		m.out = utf8.AppendRune(m.out, byteStandIn+rune(first))
		return
	}
	m.from.Discard(size - 1)
	m.out = utf8.AppendRune(m.out, r)
}

// escape takes what follows a backslash, or a stand-in for half a pair.
func (m *mender) escape() {
	high, ok := m.unit(0)
	switch {
	case !ok: // another escape, of which the next byte is enough
		m.out = append(m.out, '\\')
		if next, _ := m.from.Peek(1); len(next) == 1 && next[0] < utf8.RuneSelf {
			m.out = append(m.out, next[0])
			m.from.Discard(1)
		}
	case !utf16.IsSurrogate(high):
		m.copyUnit()
	default:
		if low, ok := m.pairWith(high); ok {
			m.from.Discard(len("uXXXX\\uXXXX"))
			m.out = utf8.AppendRune(m.out, utf16.DecodeRune(high, low))
			return
		}
		m.from.Discard(len("uXXXX"))
		m.out = utf8.AppendRune(m.out, surrogateStandIn+high-0xD800)
	}
}

// copyUnit copies an escape such as u00e9.
func (m *mender) copyUnit() {
	unit, _ := m.from.Peek(len("uXXXX"))
	m.out = append(append(m.out, '\\'), unit...)
	m.from.Discard(len(unit))
}

// pairWith reads ahead to the second half of a pair.
func (m *mender) pairWith(high rune) (low rune, ok bool) {
	const first = len("uXXXX")
	if ahead, _ := m.from.Peek(first + 1); len(ahead) <= first || ahead[first] != '\\' {
		return 0, false
	}
	low, ok = m.unit(first + 1)
	return low, ok && utf16.DecodeRune(high, low) != utf8.RuneError
}

// unit reads ahead to an escape such as u00e9, skip bytes from here. It waits
// for no more than it needs: an escape stands in a text that goes on.
func (m *mender) unit(skip int) (rune, bool) {
	unit := rune(0)
	for i := range len("uXXXX") {
		ahead, _ := m.from.Peek(skip + i + 1)
		if len(ahead) <= skip+i {
			return 0, false
		}
		c := ahead[skip+i]
		if i == 0 {
			if c != 'u' {
				return 0, false
			}
			continue
		}
		digit := strings.IndexByte("0123456789abcdef", c|0x20)
		if digit < 0 || c < '0' {
			return 0, false
		}
		unit = unit<<4 | rune(digit)
	}
	return unit, true
}

// joiner puts characters together whose halves stand in different deltas.
type joiner struct {
	bytes []byte // the beginning of a character
	high  rune   // the first half of a pair, or 0
}

// join returns as much of the text, behind what it has kept, as is whole.
func (j *joiner) join(delta string) string {
	var out strings.Builder
	for _, r := range delta {
		switch {
		case r >= byteStandIn+utf8.RuneSelf && r <= byteStandIn+0xFF:
			j.dropHigh(&out)
			j.bytes = append(j.bytes, byte(r-byteStandIn))
			for len(j.bytes) > 0 && utf8.FullRune(j.bytes) {
				whole, size := utf8.DecodeRune(j.bytes)
				out.WriteRune(whole)
				j.bytes = j.bytes[size:]
			}
		case r >= surrogateStandIn && r < surrogateStandIn+0x800:
			j.dropBytes(&out)
			unit := r - surrogateStandIn + 0xD800
			if whole := utf16.DecodeRune(j.high, unit); whole != utf8.RuneError {
				out.WriteRune(whole)
				j.high = 0
				continue
			}
			j.dropHigh(&out)
			if unit >= 0xDC00 {
				out.WriteRune(utf8.RuneError)
				continue
			}
			j.high = unit
		default:
			j.dropBytes(&out)
			j.dropHigh(&out)
			out.WriteRune(r)
		}
	}
	return out.String()
}

// rest gives up on what it has kept.
func (j *joiner) rest() string {
	var out strings.Builder
	j.dropBytes(&out)
	j.dropHigh(&out)
	return out.String()
}

func (j *joiner) dropBytes(out *strings.Builder) {
	if len(j.bytes) > 0 {
		out.WriteRune(utf8.RuneError)
		j.bytes = nil
	}
}

func (j *joiner) dropHigh(out *strings.Builder) {
	if j.high != 0 {
		out.WriteRune(utf8.RuneError)
		j.high = 0
	}
}

// joined returns a whole text with its halves put together.
func joined(text string) string {
	var j joiner
	return j.join(text) + j.rest()
}
