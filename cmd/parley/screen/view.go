package screen

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/parley-run/parley/cmd/parley/printable"
)

const (
	// wide is how wide a terminal is on which the list stands beside the transcript.
	wide = 80
	// listWidth is how wide it is then.
	listWidth = 26
)

// layout gives everything its place. From above: a title, the transcript, a line of
// state, the field. It changes nothing where the sizes have not changed.
func (s *state) layout() {
	t := &s.transcript
	width := s.width
	if s.width >= wide {
		width -= listWidth + 1
	}
	s.field.MaxHeight = max(min(fieldHeight, s.height/3), 1)
	s.field.SetWidth(s.width)
	s.field, _ = s.field.Update(nil) // it scrolls to its cursor
	height := max(s.height-2-s.field.Height(), 0)
	if width == t.paper.width && height == t.height {
		return
	}
	t.hold(func() { t.paper.resize(width) })
	t.height = height
	t.scroll(0)
}

// view draws everything.
func (s *state) view() tea.View {
	rows := []string{strong.Render(fill("parley · "+s.title(), s.width))}
	rows = append(rows, s.middle()...)
	rows = append(rows, faint.Render(fill(s.line(), s.width)))
	above := len(rows)
	rows = append(rows, strings.Split(s.field.View(), "\n")...)
	rows = rows[:min(len(rows), s.height)]
	for i, row := range rows { // the field needs three columns, and a letter may need two
		rows[i] = ansi.Truncate(row, s.width, "")
	}
	view := tea.NewView(strings.Join(rows, "\n"))
	view.AltScreen = true
	if cursor := s.field.Cursor(); cursor != nil && (s.place == inField) {
		cursor.Y += above
		if cursor.Y < s.height {
			view.Cursor = cursor
		}
	}
	return view
}

// middle is the transcript, with the list beside it or in its place, or the help.
func (s *state) middle() []string {
	t := &s.transcript
	switch {
	case s.place == inHelp:
		rows := s.helpRows()
		rows = rows[min(s.helpFrom, len(rows)):]
		rows = append(rows, make([]string, max(t.height-len(rows), 0))...)
		return rows[:t.height]
	case s.width < wide && s.place == inThreads:
		return s.threads.rows(s.width, t.height, s.id, true)[:t.height]
	case s.width < wide:
		return t.rows(s.picked)
	}
	rows := s.threads.rows(listWidth, max(t.height, 1), s.id, s.place == inThreads)[:t.height]
	for i, row := range t.rows(s.picked) {
		rows[i] += faint.Render("│") + row
	}
	return rows
}

// helpRows is the help, or what is shown in its place, in rows that fit.
func (s *state) helpRows() []string {
	return strings.Split(ansi.Wrap(s.sheet, s.width, ""), "\n")
}

// line says how things are, and what can be done.
func (s *state) line() string {
	var parts []string
	add := func(when bool, text string) {
		if when {
			parts = append(parts, text)
		}
	}
	add(s.lost, "the connection is lost; trying again")
	add(s.note != "", printable.Line(s.note))
	add(s.editOf > 0, fmt.Sprintf("edits #%d; Esc gives it up", s.editOf))
	add(s.place == inPick, "Up and Down pick a message, Enter edits it, Esc leaves it")
	add(s.place == inThreads, "Enter opens a thread, Ctrl+N starts one, Esc leaves")
	add(s.place == inHelp, "PgDn goes on, any other key back")
	add(s.loading || s.transcript.owed > 0, "reading")
	add(s.running > 0 && s.other == "", "the agent writes; Esc stops it")
	add(s.other != "", s.other+" is being answered")
	add(s.other != "" && s.haltable(), "Esc stops it")
	add(s.transcript.offset > 0, "scrolled back; Ctrl+End returns")
	add(s.closed, "closed")
	if len(parts) == 0 {
		return "Enter sends · Ctrl+T threads · /help"
	}
	return strings.Join(parts, " · ")
}
