package screen

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// A pasted text that the field could not bear is refused, and leaves what stands there.
func TestPasteTooLong(t *testing.T) {
	for name, text := range map[string]string{
		"lines": strings.Repeat("a line\n", maxLines+1),
		"bytes": strings.Repeat("x", maxText+1),
	} {
		p := newPlay(t)
		p.do("type before")
		p.state.update(tea.PasteMsg{Content: text})
		if got := p.state.field.Value(); got != "before" || !strings.HasPrefix(p.state.note, "not pasted: ") {
			t.Errorf("%s: the field holds %d bytes, the note is %q, want what was typed and that nothing was pasted", name, len(got), p.state.note)
		}
		p.state.update(tea.PasteMsg{Content: strings.Repeat("y\n", maxLines-1)})
		if got := strings.Count(p.state.field.Value(), "\n"); got != maxLines-1 {
			t.Errorf("%s: of %d lines the field takes %d", name, maxLines-1, got)
		}
	}
}
