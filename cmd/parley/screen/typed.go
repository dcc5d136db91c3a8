package screen

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/parley-run/parley/cmd/parley/printable"
)

// maxTyped is how much of what was typed before the screen is there is read, in bytes.
const maxTyped = 64 << 10

// typed takes in what was typed before the screen was there. The terminal was still
// gathering lines then and had made a line break of Enter, so each ends a message.
// Other keys than those of letters did nothing.
func (s *state) typed(text string) {
	lines := strings.Split(ansi.Strip(strings.ToValidUTF8(text, "")), "\n")
	for i, line := range lines {
		letters := strings.Map(func(r rune) rune {
			if !printable.Harmless(r) {
				return -1
			}
			return r
		}, strings.ReplaceAll(line, "\t", "    "))
		s.field.InsertString(letters)
		if i < len(lines)-1 {
			s.enter()
		}
	}
}
