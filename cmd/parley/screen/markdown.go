package screen

import (
	"strings"
	"time"

	"charm.land/glamour/v2"
	style "charm.land/glamour/v2/ansi"
	"github.com/charmbracelet/x/ansi"

	"github.com/parley-run/parley/cmd/parley/printable"
)

// maxMarkdown is how long an answer may be that is taken for Markdown, in bytes, and
// maxNesting how many quotes and lists may begin on one line of it: the time that the
// parser takes grows faster than the text.
const (
	maxMarkdown = 64 << 10
	maxNesting  = 16
)

// paper is what entries are written on.
type paper struct {
	width    int
	zone     *time.Location
	renderer *glamour.TermRenderer // for the width; nil if there is none yet
	persons  persons               // who can write there
}

// resize makes the paper as wide as that.
func (p *paper) resize(width int) {
	if p.width != width {
		p.width, p.renderer = width, nil
	}
}

// markdown is an answer in rows. What cannot be read as Markdown in good time is shown
// as it is.
func (p *paper) markdown(text string) []string {
	if len(text) > maxMarkdown || nested(text) {
		return plain(text, p.width)
	}
	if p.renderer == nil {
		p.renderer, _ = glamour.NewTermRenderer(glamour.WithStyles(styles), glamour.WithWordWrap(p.width))
	}
	rows, ok := p.render(text)
	if !ok {
		return plain(text, p.width)
	}
	return rows
}

// render uses glamour, which has no say about control characters. Two stand-ins keep
// what would be read as HTML from it: a character reference such as &#27; would be
// turned into the character, and a tag would be left out. What comes back may have
// colours, which it is trusted to have made, and nothing else.
func (p *paper) render(text string) (rows []string, ok bool) {
	defer func() {
		if recover() != nil { // a text that it cannot bear is no reason to end
			rows, ok = nil, false
		}
	}()
	text = printable.Lines(strings.ReplaceAll(text, "\t", "    "))
	if p.renderer == nil {
		return nil, false
	}
	out, err := p.renderer.Render(toStandIns.Replace(text))
	if err != nil {
		return nil, false
	}
	out = strings.Trim(fromStandIns.Replace(out), "\n")
	for line := range strings.SplitSeq(ansi.Hardwrap(colours(out), p.width, true), "\n") {
		if line = strings.TrimRight(line, " "); strings.Contains(line, "\x1b") {
			line += ansi.ResetStyle
		}
		rows = append(rows, line)
	}
	return rows, true
}

// The stand-ins are of the private use area. A text that holds one of them shows the
// other character, which does no harm.
var (
	toStandIns   = strings.NewReplacer("&", "\ue0a6", "<", "\ue0bc")
	fromStandIns = strings.NewReplacer("\ue0a6", "&", "\ue0bc", "<", "%EE%82%A6", "&", "%EE%82%BC", "<")
)

// colours leaves a text nothing but printable characters, line breaks, and sequences
// that set a style.
func colours(text string) string {
	var kept strings.Builder
	var state byte
	for len(text) > 0 {
		sequence, width, n, next := ansi.DecodeSequence(text, state, nil)
		switch {
		case sequence == "\n" || width > 0:
			kept.WriteString(harmless(sequence))
		case strings.HasPrefix(sequence, "\x1b[") && strings.HasSuffix(sequence, "m") && strings.Trim(sequence[2:n-1], "0123456789;:") == "":
			kept.WriteString(sequence)
		}
		text, state = text[n:], next
	}
	return kept.String()
}

// harmless is a text with line breaks as they are.
func harmless(text string) string {
	if text == "\n" {
		return text
	}
	return printable.Line(text)
}

// nested reports whether a line begins too many quotes or lists.
func nested(text string) bool {
	for line := range strings.Lines(text) {
		rest := strings.TrimLeft(line, " \t>-*+0123456789.)")
		opening := line[:len(line)-len(rest)]
		if strings.Count(opening, ">")+strings.Count(opening, "- ")+strings.Count(opening, "* ")+strings.Count(opening, "+ ")+strings.Count(opening, ". ")+strings.Count(opening, ") ") > maxNesting {
			return true
		}
		if len(opening) > 40*maxNesting || strings.Count(line, "[") > 1000 || strings.Count(line, "*")+strings.Count(line, "_") > 4000 {
			return true
		}
	}
	return false
}

func of[T any](value T) *T { return &value }

// styles uses the sixteen colours that a terminal has names for, so that they fit a
// dark one and a light one. Code is not coloured: what reads it backtracks, and an
// answer may be made to keep it busy.
var styles = style.StyleConfig{
	BlockQuote: style.StyleBlock{Indent: of(uint(1)), IndentToken: of("│ ")},
	List:       style.StyleList{LevelIndent: 2},
	Heading:    style.StyleBlock{StylePrimitive: style.StylePrimitive{BlockSuffix: "\n", Bold: of(true)}},
	H1:         style.StyleBlock{StylePrimitive: style.StylePrimitive{Prefix: "# "}},
	H2:         style.StyleBlock{StylePrimitive: style.StylePrimitive{Prefix: "## "}},
	H3:         style.StyleBlock{StylePrimitive: style.StylePrimitive{Prefix: "### "}},
	H4:         style.StyleBlock{StylePrimitive: style.StylePrimitive{Prefix: "#### "}},
	H5:         style.StyleBlock{StylePrimitive: style.StylePrimitive{Prefix: "##### "}},
	H6:         style.StyleBlock{StylePrimitive: style.StylePrimitive{Prefix: "###### "}},

	Strikethrough:  style.StylePrimitive{CrossedOut: of(true)},
	Emph:           style.StylePrimitive{Italic: of(true)},
	Strong:         style.StylePrimitive{Bold: of(true)},
	HorizontalRule: style.StylePrimitive{Format: "\n────────\n"},
	Item:           style.StylePrimitive{BlockPrefix: "• "},
	Enumeration:    style.StylePrimitive{BlockPrefix: ". "},
	Task:           style.StyleTask{Ticked: "[x] ", Unticked: "[ ] "},
	Link:           style.StylePrimitive{Underline: of(true), Color: of("4")},
	LinkText:       style.StylePrimitive{Bold: of(true)},
	Image:          style.StylePrimitive{Underline: of(true)},
	ImageText:      style.StylePrimitive{Format: "image: {{.text}}"},
	Code:           style.StyleBlock{StylePrimitive: style.StylePrimitive{Color: of("6")}},
	CodeBlock: style.StyleCodeBlock{
		StyleBlock: style.StyleBlock{StylePrimitive: style.StylePrimitive{Color: of("6")}, Margin: of(uint(2))},
	},
	Table: style.StyleTable{CenterSeparator: of("┼"), ColumnSeparator: of("│"), RowSeparator: of("─")},
}
