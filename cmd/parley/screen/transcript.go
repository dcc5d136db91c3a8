package screen

import (
	"slices"

	"github.com/parley-run/parley/conversation"
)

// transcript is what is known of a conversation, and which part of it is shown.
type transcript struct {
	paper   paper
	height  int // rows that are shown
	entries []*entry
	live    *entry   // the reply that is being written; nil if none is
	waiting []*entry // messages that have no record yet
	offset  int      // rows that are hidden beneath what is shown
	owed    int      // rows to scroll back by when older entries are there

	before   conversation.Cursor // where entries are older than those here
	done     bool                // there are none
	fetching bool
}

// backward yields the entries from the last one on.
func (t *transcript) backward(yield func(*entry) bool) {
	for _, e := range slices.Backward(t.waiting) {
		if !yield(e) {
			return
		}
	}
	if t.live != nil && !yield(t.live) {
		return
	}
	for _, e := range slices.Backward(t.entries) {
		if !yield(e) {
			return
		}
	}
}

// hold changes the transcript without a jump: who has scrolled back goes on reading
// the same row.
func (t *transcript) hold(change func()) {
	if t.offset == 0 {
		change()
		return
	}
	lowest, hidden := t.lowest()
	change()
	if below, ok := t.below(lowest); ok {
		t.offset = max(below+min(hidden, lowest.height(&t.paper)-1), 1)
	}
}

// lowest returns the entry in the last row that is shown, nil if there is none, and
// how many of its rows are hidden beneath.
func (t *transcript) lowest() (lowest *entry, hidden int) {
	hidden = t.offset
	for e := range t.backward {
		height := e.height(&t.paper)
		if hidden < height {
			return e, hidden
		}
		hidden -= height
	}
	return nil, 0
}

// below returns how many rows stand below an entry, and whether it is there.
func (t *transcript) below(wanted *entry) (rows int, ok bool) {
	for e := range t.backward {
		if e == wanted {
			return rows, true
		}
		rows += e.height(&t.paper)
	}
	return 0, false
}

// scroll goes back by a number of rows, or forward if it is negative. It goes no
// further than what there is; the rest of the way is owed until older entries come.
func (t *transcript) scroll(rows int) {
	if rows != 0 {
		t.owed = 0
	}
	t.offset = max(t.offset+rows, 0)
	above := t.offset + t.height
	for e := range t.backward {
		if above -= e.height(&t.paper); above <= 0 {
			return
		}
	}
	if rows > 0 && !t.done {
		t.owed = min(above, rows)
	}
	t.offset = max(t.offset-above, 0)
}

// short reports whether older entries are wanted: less than a page stands above what
// is shown.
func (t *transcript) short() bool {
	if t.done || t.fetching {
		return false
	}
	wanted := t.offset + 2*t.height
	for e := range t.backward {
		if wanted -= e.height(&t.paper); wanted <= 0 {
			return false
		}
	}
	return true
}

// show scrolls until the first rows of an entry are shown.
func (t *transcript) show(wanted *entry) {
	below, ok := t.below(wanted)
	if !ok {
		return
	}
	top := below + wanted.height(&t.paper)
	if top > t.offset+t.height || top <= t.offset {
		t.offset = max(top-t.height, 0)
	}
}

// rows returns what is shown: as many rows as the height, the first of them empty
// where there is too little. The author of the picked entry is marked.
func (t *transcript) rows(picked *entry) []string {
	rows := make([]string, 0, t.height)
	skip := t.offset
	for e := range t.backward {
		lines := e.lines(&t.paper)
		for i, line := range slices.Backward(lines) {
			if skip > 0 {
				skip--
				continue
			}
			if len(rows) == t.height {
				break
			}
			if e == picked && i == 0 {
				line = chosen.Render("▸") + line
			}
			rows = append(rows, line)
		}
		if len(rows) == t.height {
			break
		}
	}
	slices.Reverse(rows)
	return append(make([]string, t.height-len(rows)), rows...)
}

// prepend takes in older entries, the newest first.
func (t *transcript) prepend(records []conversation.Record) {
	older := make([]*entry, 0, len(records)+len(t.entries))
	for _, record := range slices.Backward(records) {
		e := &entry{}
		e.recorded(record)
		older = append(older, e)
	}
	t.entries = append(older, t.entries...)
}

// say takes in words of a reply.
func (t *transcript) say(words conversation.Words) {
	if t.live == nil || t.live.turn != words.Turn {
		t.live = &entry{turn: words.Turn}
	}
	t.live.say(words)
}

// record takes in a new entry. It takes the place of the message that waited for it,
// or of the reply's words, and is returned.
func (t *transcript) record(record conversation.Record) *entry {
	e := &entry{}
	if record.Role == conversation.RoleAssistant {
		if t.live != nil && t.live.turn <= record.Turn {
			if t.live.turn == record.Turn {
				e = t.live
			}
			t.live = nil
		}
	} else if i := t.waitingFor(record); i >= 0 {
		e = t.took(i)
	}
	e.recorded(record)
	t.entries = append(t.entries, e)
	return e
}

// admit takes the message that an entry read from the history is the record of from
// those that wait, and returns it, nil if none is. It may have been admitted before the
// history was read. A text that was said before too is taken for it a moment too early.
func (t *transcript) admit(record conversation.Record) *entry {
	if record.Role != conversation.RoleUser || record.Text == "" {
		return nil
	}
	i := t.waitingFor(record)
	if i < 0 {
		return nil
	}
	return t.took(i)
}

// took takes a message from those that wait.
func (t *transcript) took(i int) *entry {
	e := t.waiting[i]
	t.waiting = slices.Delete(t.waiting, i, i+1)
	return e
}

// waitingFor returns the place of the message that a record is of, -1 if it is none of
// ours. A rejection may have no text, and is then taken for the first that waits.
func (t *transcript) waitingFor(record conversation.Record) int {
	if !t.paper.persons.mine(&record) {
		return -1
	}
	rejected := record.Status == conversation.StatusRejected && record.Text == ""
	return slices.IndexFunc(t.waiting, func(e *entry) bool {
		return e.unsent == "" && (e.text == record.Text || rejected)
	})
}
