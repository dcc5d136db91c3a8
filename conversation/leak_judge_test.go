package conversation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// judge holds what people were given against what they may see, which it finds out
// by itself: from the records as they stand in the log, and from the driver's notes
// of who was cleared for what, and took part, at which time.
type judge struct {
	*warren
	t       *testing.T
	records []Record
	byTurn  map[int]*turnOfLeaks
	byN     map[int]*turnOfLeaks
	members []memberVerdict
	seen    tallies
}

// memberVerdict is a recorded one on whether an asker takes part.
type memberVerdict struct {
	id     string
	member bool
	at     time.Time
}

// turnOfLeaks is a turn as it is on record.
type turnOfLeaks struct {
	n               int
	asker           identity.Identity
	question, reply Record
	visibleAt       time.Time // of the verdict, zero where there is none
}

func (t *turnOfLeaks) classes() []string { return union(t.question.Classes, t.reply.Classes) }

// newJudge reads the log.
func newJudge(w *warren) *judge {
	j := &judge{warren: w, t: w.t, byTurn: map[int]*turnOfLeaks{}, byN: map[int]*turnOfLeaks{}}
	visible := map[string]time.Time{}
	for g := 0; ; g++ {
		events := w.read(kernel.StreamOf("room", g))
		if len(events) == 0 {
			return j
		}
		for _, e := range events {
			j.membership(e)
			if strings.HasSuffix(e.ID, ":visible") {
				visible[e.ID] = e.Time
			}
			r, ok := RecordOf(e)
			if !ok {
				continue
			}
			r.Cursor = Cursor{Generation: g, Seq: e.Seq}
			j.records = append(j.records, r)
			n := 0
			if _, err := fmt.Sscanf(e.ID, "conv#o%d:", &n); err != nil {
				j.t.Fatal(err)
			}
			switch {
			case r.Status == StatusAccepted:
				turn := &turnOfLeaks{n: n, asker: *r.Asker, question: r, visibleAt: visible[idVisible(n)]}
				j.byTurn[r.Turn], j.byN[n] = turn, turn
			case r.Role == RoleAssistant:
				j.byN[n].reply = r
			}
		}
	}
}

// rehearse replays all logs: those of the turns are given what the log of the
// conversation tells, and must ask for what they asked before (C-44.3, K15).
func (j *judge) rehearse() {
	ran := 0
	for _, turn := range j.byN {
		if turn.reply.TurnExecutionID == "" {
			continue
		}
		ran++
		if got, err := j.rt.Rehearse(j.t.Context(), turn.reply.TurnExecutionID, 0); err != nil || !got.Ended {
			j.t.Errorf("the rehearsal of the turn of message %d: %+v, %v", turn.n, got, err)
		}
	}
	for g := 0; len(j.records) > 0 && g <= j.records[len(j.records)-1].Cursor.Generation; g++ {
		if _, err := j.rt.Rehearse(j.t.Context(), "room", g); err != nil {
			j.t.Errorf("the rehearsal of generation %d: %v", g, err)
		}
	}
	if ran < len(j.byN) {
		j.t.Errorf("%d of %d turns have an execution", ran, len(j.byN))
	}
}

// membership holds a recorded verdict against who took part then (C-39.3).
func (j *judge) membership(e journal.Event) {
	if !strings.HasSuffix(e.ID, ":member") {
		return
	}
	decided, err := kernel.DecodeEvent[kernel.Decided](e)
	if err != nil {
		j.t.Fatal(err)
	}
	member := strings.Contains(string(decided.Value), `"member":true`)
	j.members = append(j.members, memberVerdict{e.ID, member, e.Time})
}

// cleared reports whether somebody was cleared for classes at a time, and takesPart
// whether they took part.
func (j *judge) cleared(who string, classes []string, at time.Time) bool {
	var now []string
	for _, c := range j.history {
		if c.cleared && c.who == who && !c.at.After(at) {
			now = c.classes
		}
	}
	for _, class := range classes {
		if !slices.Contains(now, class) {
			return false
		}
	}
	return true
}

func (j *judge) takesPart(who string, at time.Time) bool {
	in := who == ann.Actor
	for _, c := range j.history {
		if !c.cleared && c.who == who && !c.at.After(at) {
			in = c.member
		}
	}
	return in
}

// judge judges all that was given to anybody.
func (j *judge) judge() tallies {
	for _, r := range j.records {
		j.record(r)
	}
	for _, s := range j.sent {
		j.out(s)
	}
	for _, r := range j.runs {
		j.seen.Runs++
		need, known := classOfTool[r.tool]
		if !known {
			need = []string{Unclassified}
		}
		j.bears(fmt.Sprintf("the answer to message %d, which has called %s", r.n, r.tool), j.byN[r.n].reply.Classes, need)
	}
	for _, m := range j.members {
		n := 0
		_, _ = fmt.Sscanf(m.id, "conv#o%d:", &n)
		j.verdict(n, m)
	}
	for _, r := range j.received {
		j.in(r)
	}
	if found := canary.FindString(j.logged.String()); found != "" {
		j.t.Errorf("the log of the process has %s", found)
	}
	j.whole()
	return j.seen
}

// verdict: whoever was let speak took part then, and the other way round.
func (j *judge) verdict(n int, m memberVerdict) {
	for _, r := range j.records {
		if turn := j.byN[n]; turn != nil && r.Ord == turn.question.Ord {
			if in := j.takesPart(turn.asker.Actor, m.at); !in || !m.member {
				j.t.Errorf("message %d of %s's was accepted, who takes part: %v, on record: %v", n, turn.asker.Actor, in, m.member)
			}
		}
	}
}

// record: an answer bears the classes of all that is in it.
func (j *judge) record(r Record) {
	switch {
	case r.Status == StatusAccepted:
		j.seen.Turns++
		if r.Role == RoleNotice {
			j.seen.Notices++
		}
		j.bears(fmt.Sprint("the message of turn ", r.Turn), r.Classes, j.births[canary.FindString(r.Text)].need)
	case r.Status == StatusRejected:
		j.seen.Rejected++
	case r.Status == StatusInterrupted:
		j.seen.Cut++
		j.cutBy(r)
	case r.Status == StatusFailed:
		j.seen.Failed++
	}
	if r.Role != RoleAssistant {
		return
	}
	question := j.byTurn[r.Turn].question
	if len(question.Classes) > 0 {
		j.seen.Spread++
	}
	j.bears(fmt.Sprint("the answer of turn ", r.Turn), r.Classes, question.Classes)
	for _, name := range canary.FindAllString(r.Text, -1) {
		j.bears(fmt.Sprintf("the answer of turn %d, which has %s", r.Turn, name), r.Classes, j.need(name))
	}
}

// cutBy: a turn is cut by its asker, who said something afterwards or stopped it, or
// by who owns the conversation (C-39.2, C-46.5).
func (j *judge) cutBy(r Record) {
	for _, e := range j.read(kernel.InboxStream("room")) {
		message, err := kernel.DecodeEvent[kernel.Message](e)
		if err != nil || e.Kind != kernel.KindMessage {
			continue
		}
		envelope, _ := split(message.Payload)
		b, _ := envelope.read()
		if b.Asker == nil { // a notice cuts nothing (C-45.6)
			continue
		}
		own := *b.Asker == *r.Asker && !strings.Contains(b.Text, canary.FindString(j.byTurn[r.Turn].question.Text))
		if own && b.Kind != KindStop || b.Kind == KindStop && *b.Turn == r.Turn && (own || *b.Asker == ann.Identity) {
			return
		}
	}
	j.t.Errorf("turn %d of %s's was cut by nobody who may", r.Turn, r.Asker.Actor)
}

// need is the least that bears a canary: what the tool, the memory or the record in
// which it came up bears.
func (j *judge) need(name string) []string {
	b := j.births[name]
	switch b.kind {
	case "question":
		for _, turn := range j.byN {
			if strings.Contains(turn.question.Text, name) {
				return turn.question.Classes
			}
		}
	case "answer":
		if turn := j.byN[b.n]; turn != nil {
			return turn.reply.Classes
		}
	}
	return b.need
}

func (j *judge) bears(what string, classes, need []string) {
	j.t.Helper()
	for _, class := range need {
		if !slices.Contains(classes, class) {
			j.t.Errorf("%s bears %v, and not %s", what, classes, class)
		}
	}
}

// out judges what was sent in a turn: of its asker's, or in the summarizer's case of
// what everybody may see.
func (j *judge) out(s sent) {
	turn := j.byN[s.n]
	if turn == nil {
		j.t.Errorf("something went to the %s for message %d, which began no turn", s.kind, s.n)
		return
	}
	j.seen.Sent++
	for _, name := range canary.FindAllString(s.text, -1) {
		switch s.kind {
		case "summarizer":
			j.seen.Folded++
			if !j.open(name) {
				j.t.Errorf("the summarizer was given %s (%+v) for message %d", name, j.births[name], s.n)
			}
		default:
			if !j.given(name, turn) {
				j.t.Errorf("the %s was given %s (%+v) in a turn of %s's, message %d", s.kind, name, j.births[name], turn.asker.Actor, s.n)
			}
		}
		if b := j.births[name]; s.kind == "model" && b.n != s.n && b.kind != "summary" {
			j.bears(fmt.Sprintf("the question of message %d, before which stands %s", s.n, name), turn.question.Classes, j.need(name))
		}
	}
	switch {
	case s.kind == "recall":
		j.seen.Recalls++
	case s.kind == "note":
		j.seen.Kept++
	}
	if s.scope != "" && s.scope != turn.asker.Actor {
		j.t.Errorf("the memory of %s was used in a turn of %s's", s.scope, turn.asker.Actor)
	}
}

// open reports whether a canary is in a turn that bears no class.
func (j *judge) open(name string) bool {
	if j.births[name].kind == "summary" {
		return true
	}
	for _, turn := range j.byN {
		if turn.has(name) && len(turn.classes()) == 0 {
			return true
		}
	}
	return false
}

func (t *turnOfLeaks) has(name string) bool {
	return strings.Contains(t.question.Text, name) || strings.Contains(t.reply.Text, name)
}

// given reports whether a canary may be in what a turn is about: it came up there,
// its asker has said it, or it is in an earlier turn that the asker may be given.
func (j *judge) given(name string, turn *turnOfLeaks) bool {
	b := j.births[name]
	if b.n == turn.n || b.kind == "question" && b.who == turn.asker.Actor || b.kind == "summary" {
		return true
	}
	for _, earlier := range j.byN {
		if earlier.n >= turn.n || !earlier.has(name) {
			continue
		}
		classes := earlier.classes()
		if len(classes) == 0 || earlier.asker == turn.asker ||
			!turn.visibleAt.IsZero() && j.cleared(turn.asker.Actor, classes, turn.visibleAt) {
			return true
		}
	}
	return false
}
