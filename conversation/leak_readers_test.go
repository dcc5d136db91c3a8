package conversation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/parley-run/parley/identity"
)

// in judges what somebody has received.
func (j *judge) in(r received) {
	names := canary.FindAllString(r.text, -1)
	turn := 0
	switch _, err := fmt.Sscanf(r.kind, "live %d", &turn); {
	case err == nil:
		j.live(r, turn, names)
	case r.kind == "entry":
		j.entryOf(r)
	case r.kind == "waiting":
		for _, name := range names {
			if b := j.births[name]; b.kind != "question" || b.who != r.who.Actor {
				j.t.Errorf("%s is told of %s (%+v), which waits", r.who.Actor, name, b)
			}
		}
	case r.kind == "list":
		for _, name := range names {
			if b := j.births[name]; b.who != r.who.Actor && !(j.open(name) || j.cleared(r.who.Actor, j.need(name), r.at)) {
				j.t.Errorf("%s has the title %s (%+v)", r.who.Actor, name, b)
			}
		}
	case len(names) > 0:
		j.t.Errorf("%s received %v in %s", r.who.Actor, names, r.kind)
	}
	if len(names) > 0 && r.kind != "entry" && turn == 0 && !j.takesPart(r.who.Actor, r.at) {
		j.t.Errorf("%s takes no part, and received %v in %s", r.who.Actor, names, r.kind)
	}
}

// live: words are of one's own turn (C-37.9).
func (j *judge) live(r received, number int, names []string) {
	j.seen.Words++
	turn := j.byTurn[number]
	if turn == nil || turn.asker != r.who.Identity {
		j.t.Errorf("%s hears of turn %d: %s", r.who.Actor, number, r.text)
		return
	}
	for _, name := range names {
		if !j.given(name, turn) {
			j.t.Errorf("%s hears %s (%+v) in turn %d", r.who.Actor, name, j.births[name], number)
		}
	}
}

// entryOf: an entry is that of the log, as its reader may see it at that moment.
func (j *judge) entryOf(r received) {
	j.seen.Entries++
	if !j.takesPart(r.who.Actor, r.at) {
		j.t.Errorf("%s takes no part, and received %s", r.who.Actor, r.text)
	}
	if want := string(encoded(j.t, j.shown(j.records[r.record.Ord-1], r.who, r.at))); r.text != want {
		j.t.Errorf("%s received\n%s, want\n%s", r.who.Actor, r.text, want)
	}
}

// shown is a record as somebody may see it at a time.
func (j *judge) shown(r Record, who *identity.Principal, at time.Time) Record {
	if r.Asker != nil && *r.Asker == who.Identity {
		return r
	}
	r.TurnExecutionID = ""
	if r.Status == StatusRejected {
		r.Text = ""
		return r
	}
	if j.cleared(who.Actor, r.Classes, at) {
		return r
	}
	j.seen.Placeholders++
	return Record{Turn: r.Turn, Ord: r.Ord, Role: r.Role, Status: StatusRestricted, Asker: r.Asker, Time: r.Time, Cursor: r.Cursor}
}

// whole: who reads a history is told of every entry; and what was kept from askers
// is counted.
func (j *judge) whole() {
	for _, c := range j.counts {
		durable := 0
		for _, r := range j.records {
			if !r.Time.After(c.at) {
				durable++
			}
		}
		if c.n > durable {
			j.t.Errorf("a history has %d entries, %d are on record by then", c.n, durable)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(j.byN)) {
		turn := j.byN[n]
		for _, earlier := range j.byN {
			if earlier.n < n && len(earlier.classes()) > 0 && earlier.asker != turn.asker && !turn.visibleAt.IsZero() &&
				!j.cleared(turn.asker.Actor, earlier.classes(), turn.visibleAt) {
				j.seen.Withheld++
			}
		}
	}
	if n := len(j.counts); n > 0 && j.counts[n-1].n != len(j.records) {
		j.t.Errorf("the last history has %d entries, %d are on record", j.counts[n-1].n, len(j.records))
	}
}
