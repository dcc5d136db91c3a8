package screen

import (
	"errors"
	"slices"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
)

// say sends a message behind those that wait to be sent.
func (s *state) say(m conversation.Message) {
	m.ID = s.ids()
	s.outbox = append(s.outbox, post{id: s.id, message: m})
	s.wait(m)
	s.transcript.offset, s.transcript.owed, s.braked = 0, 0, false
	s.send()
}

// wait shows a message that has no record yet.
func (s *state) wait(m conversation.Message) {
	s.transcript.waiting = append(s.transcript.waiting, &entry{id: m.ID, text: m.Text, editOf: m.EditOf})
}

// send sends the next message, unless one is on its way.
func (s *state) send() {
	if !s.sending && len(s.outbox) > 0 {
		s.sending = true
		s.want(s.outbox[0])
	}
}

// posted takes in what became of the message that was on its way. Where the server is
// away it waits until that is back; where it was refused its text goes back into the
// field, if that is empty.
func (s *state) posted(err error) {
	s.sending = false
	p := s.outbox[0]
	refused, answered := errors.AsType[*client.Error](err)
	passes := !answered || refused.Status >= 500
	if err != nil && passes && s.lost {
		return
	}
	s.outbox = s.outbox[1:]
	if err != nil {
		s.notSent(p, refusal(err))
	} else if e := s.waitingAs(p); e != nil {
		e.sent, e.rows = true, nil
		if p.id == s.id && s.running > 0 {
			s.askLine()
		}
	}
	if s.leaving && len(s.outbox) == 0 && err == nil {
		s.want(leave{})
	}
	s.send()
}

// notSent shows that a message will not be sent.
func (s *state) notSent(p post, why string) {
	s.leaving = false
	s.tell("not sent: %s", why)
	t := &s.transcript
	i := slices.IndexFunc(t.waiting, func(e *entry) bool { return e.id == p.message.ID })
	if i >= 0 && s.field.Value() == "" {
		s.field.SetValue(p.message.Text)
		s.editOf = p.message.EditOf
		t.took(i)
		return
	}
	if e := s.waitingAs(p); e != nil {
		e.unsent, e.rows = why, nil
	}
}

// waitingAs returns the entry of a message without a record, of whichever conversation,
// nil if it has got one.
func (s *state) waitingAs(p post) *entry {
	all := s.waiting[p.id]
	if p.id == s.id {
		all = s.transcript.waiting
	}
	i := slices.IndexFunc(all, func(e *entry) bool { return e.id == p.message.ID })
	if i < 0 {
		return nil
	}
	return all[i]
}

// awaiting reports whether an answer is written, or to come.
func (s *state) awaiting() bool {
	return s.haltable() || slices.ContainsFunc(s.transcript.waiting, func(e *entry) bool { return e.unsent == "" })
}

// halt ends the answer that is being written (C-46), or the one to the first message
// that waits, as soon as its turn is known.
func (s *state) halt() {
	switch i := slices.IndexFunc(s.transcript.waiting, func(e *entry) bool { return e.unsent == "" }); {
	case s.haltable():
		s.want(halt{id: s.id, turn: s.running})
		s.tell("the answer is to end")
	case i >= 0:
		s.stop = s.transcript.waiting[i].id
		s.tell("the answer is to end")
	default:
		s.tell("no answer is being written")
	}
}
