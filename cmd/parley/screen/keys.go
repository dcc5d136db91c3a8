package screen

import (
	tea "charm.land/bubbletea/v2"

	"github.com/parley-run/parley/cmd/parley/printable"
)

// key does what a key is for: the same everywhere, or in the place where the keys go.
func (s *state) key(k tea.KeyPressMsg) {
	s.note = ""
	page := max(s.transcript.height-1, 1)
	if s.place == inHelp && k.String() != "ctrl+c" {
		s.helpKey(k, page)
		return
	}
	switch k.String() {
	case "ctrl+c":
		s.brake()
	case "ctrl+d":
		if s.field.Value() != "" {
			s.field, _ = s.field.Update(k)
			return
		}
		s.leave()
	case "ctrl+x":
		s.halt()
	case "ctrl+z":
		s.want(suspend{})
	case "ctrl+n":
		s.tell("starting a thread")
		s.want(start{})
	case "ctrl+t":
		s.toggleThreads()
	case "ctrl+r":
		s.pick(1)
	case "pgup":
		s.transcript.scroll(page)
	case "pgdown":
		s.transcript.scroll(-page)
	case "ctrl+end":
		s.transcript.offset, s.transcript.owed = 0, 0
	default:
		s.placeKey(k)
	}
}

// placeKey does what a key is for in the place where the keys go.
func (s *state) placeKey(k tea.KeyPressMsg) {
	switch s.place {
	case inThreads:
		s.threadKey(k)
	case inPick:
		s.pickKey(k)
	default:
		s.fieldKey(k)
	}
}

// helpKey turns the pages of the help, or leaves it.
func (s *state) helpKey(k tea.KeyPressMsg, page int) {
	switch k.String() {
	case "up":
		s.helpFrom--
	case "down":
		s.helpFrom++
	case "pgup":
		s.helpFrom -= page
	case "pgdown":
		s.helpFrom += page
	default:
		s.place, s.helpFrom = inField, 0
	}
	s.helpFrom = max(min(s.helpFrom, len(s.helpRows())-s.transcript.height), 0)
}

// brake ends the answer that is awaited, the first time; then it leaves.
func (s *state) brake() {
	if s.awaiting() && !s.braked {
		s.braked = true
		s.halt()
		s.tell("the answer is to end; Ctrl+C once more leaves")
		return
	}
	s.want(leave{})
}

// leave ends the chat as soon as all is sent.
func (s *state) leave() {
	if len(s.outbox) == 0 {
		s.want(leave{})
		return
	}
	s.leaving = true
	s.tell("leaving when your messages are sent; Ctrl+C leaves now")
}

// fieldKey writes into the field.
func (s *state) fieldKey(k tea.KeyPressMsg) {
	empty := s.field.Value() == ""
	switch name := k.String(); {
	case name == "enter":
		s.enter()
	case name == "esc" && s.editOf > 0:
		s.editOf = 0
		s.field.Reset()
	case name == "esc" && s.awaiting():
		s.halt()
	case name == "up" && empty:
		s.transcript.scroll(1)
	case name == "down" && empty:
		s.transcript.scroll(-1)
	case len(s.field.Value()) < maxText:
		s.field, _ = s.field.Update(k)
	default:
		s.tell("a message has at most %d bytes", maxText)
	}
}

// pick goes to an older message of the person's, or to a newer one. The first time it
// begins with the newest.
func (s *state) pick(direction int) {
	t := &s.transcript
	var newer *entry
	found := s.picked == nil
	for e := range t.backward {
		switch {
		case !e.editable(&t.paper.persons):
		case e == s.picked && direction < 0:
			s.pickUp(newer)
			return
		case e == s.picked:
			found = true
		case found:
			s.pickUp(e)
			return
		default:
			newer = e
		}
	}
	if s.picked == nil {
		s.tell("there is no message of yours to edit here")
		return
	}
	t.scroll(t.height) // further back, where more may come
}

// pickUp picks an entry, none if it is nil.
func (s *state) pickUp(e *entry) {
	if s.picked = e; e == nil {
		s.place = inField
		return
	}
	s.place = inPick
	s.transcript.show(e)
}

// pickKey picks another message, or takes the picked one into the field.
func (s *state) pickKey(k tea.KeyPressMsg) {
	switch k.String() {
	case "up":
		s.pick(1)
	case "down":
		s.pick(-1)
	case "enter":
		s.editOf = s.picked.record.Ord
		s.field.SetValue(printable.Lines(s.picked.record.Text))
		s.transcript.offset = 0
		s.pickUp(nil)
	case "esc":
		s.transcript.offset = 0
		s.pickUp(nil)
	}
}
