package screen

import (
	"fmt"
	"strconv"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	"charm.land/lipgloss/v2"

	"github.com/parley-run/parley/cmd/parley/printable"
	"github.com/parley-run/parley/conversation"
)

const (
	// maxText is the longest text that the field takes, in bytes, and maxLines the
	// lines that it can have: it lays out all of them for each key, and with more a
	// person waits for theirs. The server's own bound is smaller than maxText.
	maxText  = 256 << 10
	maxLines = 1000
	// fieldHeight is how many rows the field grows to.
	fieldHeight = 6
	// entriesBack is how far /history goes unless it is told.
	entriesBack = 10
)

// newField is an empty field.
func newField() textarea.Model {
	field := textarea.New()
	field.Prompt, field.ShowLineNumbers = "> ", false
	field.CharLimit, field.MaxWidth = 0, 0
	field.DynamicHeight, field.MinHeight, field.MaxHeight = true, 1, fieldHeight
	field.MaxContentHeight = 10 * maxLines
	field.SetVirtualCursor(false)
	plain := textarea.StyleState{Selection: lipgloss.NewStyle().Reverse(true)}
	field.SetStyles(textarea.Styles{Focused: plain, Blurred: plain})
	keys := textarea.DefaultKeyMap()
	keys.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "ctrl+j", "shift+enter"))
	keys.Paste.SetEnabled(false) // the terminal pastes; the clipboard of this machine may be another
	keys.CopySelection.SetEnabled(false)
	field.KeyMap = keys
	field.Focus()
	return field
}

// paste puts a text into the field as it is: its line breaks send nothing.
func (s *state) paste(text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	if len(text)+len(s.field.Value()) > maxText || strings.Count(text, "\n")+s.field.LineCount() > maxLines {
		s.tell("not pasted: a message has at most %d bytes and %d lines", maxText, maxLines)
		return
	}
	s.note = ""
	if s.place != inField {
		s.place, s.picked = inField, nil
	}
	s.field.InsertString(printable.Lines(strings.ReplaceAll(text, "\t", "    ")))
}

// enter does what the field says. What it cannot do stays there.
func (s *state) enter() {
	text := strings.TrimSpace(s.field.Value())
	mistake := ""
	switch {
	case text == "":
		return
	case s.closed:
		mistake = "the conversation is closed; Ctrl+N starts another"
	case strings.HasPrefix(text, "//"):
		s.say(conversation.Message{Text: text[1:], EditOf: s.editOf})
	case text[0] == '/':
		mistake = s.command(text)
	default:
		s.say(conversation.Message{Text: text, EditOf: s.editOf})
	}
	if mistake != "" {
		s.note = mistake
		return
	}
	s.field.Reset()
	s.editOf = 0
}

// command does what a text that begins with a slash asks for, and says what is wrong
// with it. That repeats nothing of the text.
func (s *state) command(text string) (mistake string) {
	name, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	switch {
	case name == "/help" && rest == "":
		s.place, s.sheet = inHelp, help
	case name == "/stop" && rest == "":
		s.halt()
	case name == "/share" && rest == "":
		s.tell("starting a thread in which others can take part")
		s.want(start{shared: true})
	case name == "/people", name == "/add", name == "/remove":
		return s.peopleCommand(name, rest)
	case name == "/edit":
		number, text, _ := strings.Cut(rest, " ")
		ord, err := strconv.Atoi(number)
		if text = strings.TrimSpace(text); err != nil || ord <= 0 || text == "" {
			return "an edit is /edit ORD TEXT; the ORD of a message stands beside it, behind #"
		}
		s.say(conversation.Message{Text: text, EditOf: ord})
	case name == "/history":
		n, err := strconv.Atoi(rest)
		if rest == "" {
			n, err = entriesBack, nil
		}
		if err != nil || n <= 0 || n > conversation.MaxPage {
			return fmt.Sprintf("a history is /history N, with N from 1 to %d", conversation.MaxPage)
		}
		s.back = n
		s.goBack()
	default:
		return "this is no command; /help lists them, and a text that begins with a slash is sent with two: //"
	}
	return ""
}
