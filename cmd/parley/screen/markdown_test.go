package screen

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// C-30.13: an answer that is made to keep the parser busy is shown as it is, and no
// row is wider than the paper. One that keeps it busy for good meets the time limit
// of the test run.
func TestMarkdownBounds(t *testing.T) {
	repeated := func(text string) string { return strings.Repeat(text, maxMarkdown/len(text)) }
	for name, text := range map[string]string{
		"quotes":        repeated("> "),
		"quotes alone":  repeated(">"),
		"lists":         repeated("- "),
		"brackets":      repeated("["),
		"images":        repeated("![a]("),
		"stars":         repeated("*a "),
		"underlines":    repeated("_a_*b"),
		"back quotes":   repeated("`a``b"),
		"pipes":         "|" + strings.Repeat("a|", 2000) + "\n|" + strings.Repeat("-|", 2000) + "\n" + strings.Repeat(strings.Repeat("a|", 500)+"\n", 50),
		"short lines":   repeated("> > > - a\n"),
		"deeper lists":  stairs(200),
		"brackets down": repeated("[a\n"),
		"stars down":    repeated("*a\n"),
		"links":         repeated("[a](http://x.example/b) "),
		"references":    repeated("[a]: <b>\n[a] "),
		"wide":          strings.Repeat("\u65e5\u672c", 9000),
		"long":          strings.Repeat("word ", 60000),
	} {
		t.Run(name, func(t *testing.T) {
			p := &paper{zone: time.UTC}
			p.resize(40)
			for _, row := range p.markdown(text) {
				if width := ansi.StringWidth(row); width > 40 {
					t.Fatalf("a row is %d wide: %.200q", width, row)
				}
			}
		})
	}
}

// stairs is a list in a list in a list.
func stairs(depth int) string {
	var text strings.Builder
	for i := range depth {
		text.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	return text.String()
}
