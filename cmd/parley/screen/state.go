package screen

import (
	"fmt"
	"slices"
	"time"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/kernel"
)

// place is where the keys go.
type place int

const (
	inField place = iota
	inThreads
	inPick // of a message to edit
	inHelp
)

// state is the whole chat. It does nothing but change: what it wants done it says.
type state struct {
	width, height int
	place         place
	field         textarea.Model
	threads       threads
	wishes        []wish

	id         string
	visit      int // of the conversation that is shown
	transcript transcript
	loading    bool
	closed     bool   // nothing more can be said here
	running    int    // the turn whose answer is being written; 0 if none is
	other      string // who is answered, if it is not the person
	heard      int    // how often it was asked which messages wait, and what made the last answer too old
	stop       string // the id of a message whose answer is not wanted any more
	braked     bool   // Ctrl-C has ended an answer, and the next one leaves

	picked   *entry
	sheet    string              // what is shown in the place of the transcript: the help, or who takes part
	helpFrom int                 // the first row of it that is shown
	editOf   int                 // what the field holds is in place of this message of the person's
	back     int                 // entries to scroll back over, when they are there
	note     string              // what is to be told, until the next key
	lost     bool                // the server is not reached
	missed   int                 // entries that came while it was not
	outbox   []post              // in the order in which they were written
	sending  bool                // the first of them is on its way
	waiting  map[string][]*entry // messages without a record, of conversations that are not shown
	leaving  bool                // when all is sent
	ids      func() string       // gives messages their ids
}

// newState is a chat that begins with a conversation.
func newState(id string, zone *time.Location) *state {
	s := &state{width: 80, height: 24, id: id, field: newField(), ids: kernel.NewID, waiting: map[string][]*entry{}}
	s.transcript.paper.zone = zone
	s.layout()
	return s
}

// begin returns the first wishes.
func (s *state) begin() []wish {
	s.want(list{})
	s.visitTo(s.id)
	return s.taken()
}

// want wants something of the world.
func (s *state) want(w wish) { s.wishes = append(s.wishes, w) }

// taken returns the wishes, once.
func (s *state) taken() []wish {
	wishes := s.wishes
	s.wishes = nil
	return wishes
}

// update takes in a key, or news, and returns what is wanted then.
func (s *state) update(msg tea.Msg) []wish {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = max(msg.Width, 1), max(msg.Height, 1)
	case tea.KeyPressMsg:
		s.key(msg)
	case tea.PasteMsg:
		s.paste(msg.Content)
	case opened:
		s.opened(msg)
	case read:
		s.read(msg)
	case happened:
		if msg.visit == s.visit {
			s.happened(msg)
		}
	case listed:
		s.listed(msg)
	case started:
		s.started(msg)
	case met:
		s.met(msg)
	case changed:
		s.changed(msg)
	case lined:
		s.lined(msg)
	case posted:
		s.posted(msg.err)
	case halted:
		if msg.err != nil {
			s.tell("the answer was not stopped: %s", refusal(msg.err))
		}
	case away:
		s.reached(!bool(msg))
	}
	s.layout()
	s.wantOlder()
	return s.taken()
}

// tell notes something for the person, until their next key.
func (s *state) tell(format string, args ...any) { s.note = fmt.Sprintf(format, args...) }

// visitTo shows a conversation from its end, and what waits in it.
func (s *state) visitTo(id string) {
	s.visit++
	left := s.id
	s.id, s.loading, s.closed, s.running, s.other, s.stop, s.missed = id, true, false, 0, "", "", 0
	s.picked, s.editOf, s.back, s.place = nil, 0, 0, inField
	t := &s.transcript
	s.waiting[left] = t.waiting
	t.paper.persons = persons{}
	s.transcript = transcript{paper: t.paper, height: t.height, done: true, waiting: s.waiting[id]}
	delete(s.waiting, id)
	s.want(open{visit: s.visit, id: id})
}

// opened takes in the newest entries, and goes on from there.
func (s *state) opened(news opened) {
	if news.visit != s.visit {
		return
	}
	s.loading = false
	if news.err != nil {
		s.tell("the conversation cannot be shown: %s", refusal(news.err))
		return
	}
	s.closed = news.info.State != conversation.StateOpen
	s.transcript.paper.persons = news.persons
	for _, record := range slices.Backward(news.entries) {
		s.admitted(s.transcript.admit(record), record)
	}
	s.transcript.prepend(news.entries)
	s.transcript.before, s.transcript.done = news.before, news.done
	if record, ok := runningIn(news.entries); ok {
		s.runs(record)
	}
	s.askLine()
	var from *conversation.Cursor
	if len(news.entries) > 0 {
		from = &news.entries[0].Cursor
	}
	s.want(follow{visit: s.visit, id: s.id, from: from})
}

// runningIn returns the question whose answer is being written, and whether there is
// one: a message that was accepted and has no answer says so (C-15.15). The newest
// stand first.
func runningIn(records []conversation.Record) (question conversation.Record, is bool) {
	for _, record := range records {
		if record.Status != conversation.StatusRejected {
			return record, begins(record)
		}
	}
	return question, false
}

// wantOlder asks for older entries where there is too little to scroll to.
func (s *state) wantOlder() {
	t := &s.transcript
	if !s.loading && (t.short() || s.back > len(t.entries) && !t.done && !t.fetching) {
		t.fetching = true
		s.want(older{visit: s.visit, id: s.id, before: t.before})
	}
}

// read takes in older entries.
func (s *state) read(news read) {
	if news.visit != s.visit {
		return
	}
	t := &s.transcript
	t.fetching = false
	if news.err != nil {
		t.done, t.owed = true, 0 // until the conversation is shown anew
		s.tell("older entries cannot be read: %s", refusal(news.err))
		return
	}
	t.hold(func() { t.prepend(news.entries) })
	t.before, t.done = news.before, news.done
	t.scroll(t.owed)
	s.goBack()
}

// goBack scrolls back over as many entries as the person has asked for, when they are
// there.
func (s *state) goBack() {
	t := &s.transcript
	if s.back == 0 || s.back > len(t.entries) && !t.done {
		return
	}
	if n := len(t.entries); n > 0 {
		t.offset = 0
		first := t.entries[max(n-s.back, 0)]
		if below, ok := t.below(first); ok {
			t.scroll(max(below+first.height(&t.paper)-t.height, 0))
		}
	}
	s.back = 0
}

// happened takes in what is told of the conversation.
func (s *state) happened(news happened) {
	if news.err != nil {
		s.ended(news.err)
		return
	}
	t := &s.transcript
	switch event := news.event; event.Kind {
	case client.Lost:
		s.reached(false)
	case client.Status:
		s.reached(true)
	case client.Closed:
		s.closed, s.running, s.other = true, 0, ""
	case client.Delta, client.Partial, client.Reset:
		if event.Words.Turn > s.running {
			s.running, s.other = event.Words.Turn, "" // words come to who asked alone (C-37.9)
		}
		t.hold(func() { t.say(event.Words) })
	case client.Message:
		if event.Missed {
			s.missed++
			s.tell("connected again; %s while the connection was lost", came(s.missed))
		}
		s.record(event.Record)
	}
}

// came says how many entries came.
func came(n int) string { return count(n, "message", "messages") + " came" }

// record takes in a new entry.
func (s *state) record(record conversation.Record) {
	var e *entry
	s.transcript.hold(func() { e = s.transcript.record(record) })
	switch {
	case record.Role == conversation.RoleAssistant:
		if record.Turn >= s.running {
			s.running, s.other, s.braked = 0, "", false
		}
		if s.width >= wide || record.Turn == 1 {
			s.want(list{}) // it is the newest now, and has a title
		}
	case begins(record):
		s.runs(record)
		s.admitted(e, record)
	}
	s.heard++
	if len(s.transcript.waiting) > 0 {
		s.askLine()
	}
}

// admitted ends the turn of a message whose answer is not wanted any more. The entry
// is nil if the message is none of ours.
func (s *state) admitted(e *entry, record conversation.Record) {
	if e != nil && e.id != "" && e.id == s.stop {
		s.stop = ""
		s.want(halt{id: s.id, turn: record.Turn})
	}
}

// reached takes in whether the server is there. What could not be sent is sent again,
// under its id, so that it arrives once (T26).
func (s *state) reached(is bool) {
	switch {
	case s.lost && is:
		s.lost, s.missed = false, 0
		s.tell("connected again")
	case !is:
		s.lost = true
	}
	s.send()
}
