package screen

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/parley-run/parley/cmd/parley/printable"
	"github.com/parley-run/parley/conversation"
)

var (
	faint  = lipgloss.NewStyle().Faint(true)
	strong = lipgloss.NewStyle().Bold(true)
	warn   = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	chosen = lipgloss.NewStyle().Reverse(true)
)

// entry is one piece of the transcript: a message that is on its way, a reply that is
// being written, or what is on record of either.
type entry struct {
	record    *conversation.Record // nil until there is one
	turn      int                  // of a reply without a record
	said      strings.Builder      // what there is of it
	cut       bool                 // the beginning of that is missing
	id        string               // of a message without a record
	text      string               // the same's
	sent      bool                 // the server has the message
	unsent    string               // why a message will not be sent
	editOf    int
	place     int  // at which a message waits; 0 if that is not known
	elsewhere bool // it was sent, but not from here

	rows  []string // as shown; nil if they are to be made again
	width int      // for which they were made
	live  flow     // of a reply that is being written
}

// recorded puts a record in the place of what there was.
func (e *entry) recorded(record conversation.Record) {
	e.record, e.rows, e.live = &record, nil, flow{}
}

// say takes in words of a reply.
func (e *entry) say(words conversation.Words) {
	switch words.Kind {
	case conversation.WordsReset, conversation.WordsPartial:
		e.said.Reset()
		e.cut, e.live = words.Truncated, flow{}
	}
	e.said.WriteString(words.Text)
	e.rows = nil
}

// height is how many rows the entry takes.
func (e *entry) height(paper *paper) int { return len(e.lines(paper)) }

// lines returns the rows of the entry, the last of which is empty. They are made once
// for each width, and anew with each word.
func (e *entry) lines(paper *paper) []string {
	if e.rows != nil && e.width == paper.width {
		return e.rows
	}
	if e.width != paper.width {
		e.live = flow{}
	}
	e.width = paper.width
	author, facts := ansi.Truncate(e.author(&paper.persons), paper.width, "…"), e.facts(paper.zone)
	facts = ansi.Truncate(facts, max(paper.width-ansi.StringWidth(author), 0), "")
	e.rows = append([]string{strong.Render(author) + faint.Render(facts)}, e.body(paper)...)
	if text := e.mark(); text != "" {
		for _, line := range plain(text, paper.width) {
			e.rows = append(e.rows, warn.Render(line))
		}
	}
	e.rows = append(e.rows, "")
	return e.rows
}

// body is the text: a whole answer as Markdown, everything else as it is.
func (e *entry) body(paper *paper) []string {
	switch {
	case e.record == nil && e.turn > 0:
		lines := e.live.wrap(e.said.String(), paper.width)
		if e.cut {
			lines = append([]string{"…"}, lines...)
		}
		return lines
	case e.record == nil:
		return plain(e.text, paper.width)
	case e.record.Text == "":
		return nil
	case e.record.Role == conversation.RoleAssistant:
		return paper.markdown(e.record.Text)
	}
	return plain(e.record.Text, paper.width)
}

// author says whose entry it is. Where nobody else can write, what is not the agent's
// is the person's own, whatever name their token has.
func (e *entry) author(persons *persons) string {
	switch {
	case e.record == nil && e.turn > 0, e.record != nil && e.record.Role == conversation.RoleAssistant:
		return "agent"
	case e.record != nil && e.record.Role == conversation.RoleNotice:
		return "notice"
	case e.record != nil && !persons.mine(e.record):
		return persons.name(e.record.Asker)
	}
	return "you"
}

// facts is what stands beside the author.
func (e *entry) facts(zone *time.Location) string {
	switch {
	case e.record == nil && e.turn > 0:
		return "  writing"
	case e.record == nil && e.unsent != "":
		return ""
	case e.record == nil && e.place > 0:
		return "  " + nth(e.place)
	case e.record == nil && e.sent:
		return "  waiting"
	case e.record == nil:
		return "  on its way"
	}
	facts := e.record.Time.In(zone).Format("  2006-01-02 15:04")
	if e.record.Ord > 0 {
		facts += fmt.Sprintf("  #%d", e.record.Ord)
	}
	if e.record.EditOf > 0 {
		facts += fmt.Sprintf(" edits #%d", e.record.EditOf)
	}
	return facts
}

// mark is what is to be known of the entry.
func (e *entry) mark() string {
	switch {
	case e.record != nil:
		return mark(e.record)
	case e.unsent != "":
		return "[not sent: " + e.unsent + "]"
	}
	return ""
}

// editable reports whether the person may edit the entry (C-27).
func (e *entry) editable(persons *persons) bool {
	return e.record != nil && persons.mine(e.record) && e.record.Role == conversation.RoleUser && e.record.Status == conversation.StatusAccepted && e.record.Ord > 0
}

// plain is a text in rows of a width. Wrapping at words alone leaves some rows too
// long, such as those of hyphens.
func plain(text string, width int) []string {
	text = printable.Lines(strings.ReplaceAll(text, "\t", "    "))
	return strings.Split(ansi.Hardwrap(ansi.Wrap(text, width, ""), width, true), "\n")
}

// flow wraps a text that grows. What stands before its last line break is wrapped
// once.
type flow struct {
	taken int // bytes of the text
	rows  []string
}

// wrap returns the rows of the text, which begins with what it was the last time.
func (f *flow) wrap(text string, width int) []string {
	if end := strings.LastIndexByte(text, '\n'); end >= f.taken {
		f.rows = append(f.rows, plain(text[f.taken:end], width)...)
		f.taken = end + 1
	}
	return append(f.rows[:len(f.rows):len(f.rows)], plain(text[f.taken:], width)...)
}
