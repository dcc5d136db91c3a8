package screen

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/parley-run/parley/cmd/parley/printable"
	"github.com/parley-run/parley/conversation"
)

// threads is the list of conversations, the newest activity first.
type threads struct {
	all      []conversation.Listed
	next     string // where the list goes on
	done     bool   // it does not
	fetching bool
	chosen   int
}

// toggleThreads lets the keys go to the list, or back to the field.
func (s *state) toggleThreads() {
	if s.place == inThreads {
		s.place = inField
		return
	}
	s.place, s.picked, s.threads.chosen = inThreads, nil, 0
	for i, listed := range s.threads.all {
		if listed.ID == s.id {
			s.threads.chosen = i
		}
	}
	s.want(list{})
}

// threadKey chooses a conversation, and opens it.
func (s *state) threadKey(k tea.KeyPressMsg) {
	list := &s.threads
	switch k.String() {
	case "up":
		list.chosen--
	case "down":
		list.chosen++
	case "home":
		list.chosen = 0
	case "end":
		list.chosen = len(list.all)
	case "esc":
		s.place = inField
	case "enter":
		s.place = inField
		if list.chosen < len(list.all) && list.all[list.chosen].ID != s.id {
			s.visitTo(list.all[list.chosen].ID)
		}
	}
	list.chosen = max(min(list.chosen, len(list.all)-1), 0)
	s.moreThreads()
}

// moreThreads asks for the next page when the end of the list is near.
func (s *state) moreThreads() {
	l := &s.threads
	if !l.done && !l.fetching && l.next != "" && l.chosen+s.height >= len(l.all) {
		l.fetching = true
		s.want(list{after: l.next})
	}
}

// listed takes in a page. The first one begins the list anew; the thread that was
// chosen stays so.
func (s *state) listed(news listed) {
	l := &s.threads
	l.fetching = false
	if news.err != nil {
		s.tell("the threads cannot be listed: %s", refusal(news.err))
		return
	}
	if news.after != "" && news.after != l.next {
		return // of a list that was begun anew meanwhile
	}
	was := ""
	if l.chosen < len(l.all) {
		was = l.all[l.chosen].ID
	}
	if news.after == "" {
		l.all = nil
	}
	l.all = append(l.all, news.page.Conversations...)
	l.next, l.done = news.page.Next, news.page.Done
	for i, listed := range l.all {
		if listed.ID == was {
			l.chosen = i
		}
	}
	l.chosen = max(min(l.chosen, len(l.all)-1), 0)
}

// started shows a conversation that was started.
func (s *state) started(news started) {
	if news.err != nil {
		s.tell("no thread was started: %s", refusal(news.err))
		return
	}
	s.note = ""
	s.visitTo(news.id)
	s.want(list{})
}

// rows returns the list in rows of a width, as many as the height.
func (l *threads) rows(width, height int, shown string, active bool) []string {
	rows := make([]string, 0, height)
	rows = append(rows, fill(strong.Render("threads"), width))
	first := max(0, l.chosen-height+2)
	for i := first; i < len(l.all) && len(rows) < height; i++ {
		listed := l.all[i]
		sign := "  "
		if listed.ID == shown {
			sign = "• "
		}
		row := fill(sign+threadTitle(listed), width)
		if active && i == l.chosen {
			row = chosen.Render(row)
		}
		rows = append(rows, row)
	}
	for len(rows) < height {
		rows = append(rows, strings.Repeat(" ", width))
	}
	return rows
}

// threadTitle is what a conversation is called.
func threadTitle(listed conversation.Listed) string {
	title := printable.Line(listed.Title)
	if title == "" {
		title = "new, " + listed.ID[:min(8, len(listed.ID))]
	}
	if listed.Shared {
		title = "+ " + title // several people
	}
	if listed.State != conversation.StateOpen {
		title = "(" + string(listed.State) + ") " + title
	}
	return title
}

// title is what the conversation that is shown is called.
func (s *state) title() string {
	for _, listed := range s.threads.all {
		if listed.ID == s.id {
			return threadTitle(listed)
		}
	}
	return s.id
}

// fill makes a text exactly as wide as that.
func fill(text string, width int) string {
	text = ansi.Truncate(text, width, "…")
	return text + strings.Repeat(" ", max(width-ansi.StringWidth(text), 0))
}
