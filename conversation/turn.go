package conversation

import (
	"context"
	"encoding/json/jsontext"
	"slices"
	"time"

	"github.com/parley-run/parley/identity"
)

// consume takes one envelope through admission and does what it asks for. It
// reports whether the conversation is over.
func (d *dialogue) consume(payload jsontext.Value) (closed bool) {
	d.consumed++
	d.ord++
	n := d.ord
	v, err := d.c.Decide(idAdmit(n), SourceAdmit, func(context.Context) (verdict, error) {
		v := d.admission().judge(payload, now())
		d.flow.toldRejected(v.Reason)
		return v, nil
	})
	if err != nil {
		return false // no verdict admits nothing
	}
	e, _ := split(payload)
	b, _ := e.read()
	if v.Reason == "" {
		v.Reason = d.enter(n, b)
	}
	switch {
	case v.Reason != "":
		d.reject(n, b, v)
	case b.Kind == KindStop: // whatever it was to end has ended (C-46.4)
	case b.Kind == KindClose:
		_, _ = d.c.Decide(idClosed, SourceRecord, func(context.Context) (Closed, error) {
			return Closed{Asker: b.Asker, Time: v.At}, nil
		})
		return true
	default:
		d.hear(n, b, v)
	}
	return false
}

func (d *dialogue) admission() admission {
	a := admission{
		keys: d.flow.config.Keys, conversation: d.c.Execution(), owner: d.owner,
		maxTurnChars: d.settings.MaxTurnChars, maxAge: d.flow.config.MaxEnvelopeAge, replay: &d.replay,
	}
	if d.shared != nil {
		a.shared, a.genuine = true, sameAsker(owner(d.c), &d.shared.Service)
	}
	return a
}

// enter puts a fresh envelope's id into the replay set, and goes on with the
// checks behind it. That of an edit follows from the dialogue alone and needs no
// decision (C-27.3).
func (d *dialogue) enter(n int, b body) Reason {
	reason := d.member(n, b)
	if reason == "" && b.EditOf != nil && d.edited(b) == nil {
		reason = ReasonEditInvalid
	}
	d.replay.enter(Seen{Key: b.ID, IssuedAt: b.IssuedAt, Turn: b.Kind == KindUser && reason == ""})
	return reason
}

// edited is the turn that a message edits, nil where there is none that it may: one
// in the window, and of several people's one of the asker's own (C-27.3).
func (d *dialogue) edited(b body) *Turn {
	turn := d.window.find(*b.EditOf)
	if turn != nil && d.shared != nil && !sameAsker(turn.Asker, b.Asker) {
		return nil
	}
	return turn
}

// hear takes an admitted message into a turn, if it fits into the model's window
// (C-20.5).
func (d *dialogue) hear(n int, b body, v verdict) {
	turn := Turn{Turn: d.seq + 1, Asker: b.speaker(), User: b.said()}
	user := Record{Turn: turn.Turn, Role: b.role(), Status: StatusAccepted, Text: b.Text, Topic: b.Topic, Asker: turn.Asker, Time: v.At}
	if b.EditOf != nil {
		edited := d.edited(b)
		user.EditOf, user.EditOfTurn, turn.Edits = edited.Ord, edited.Turn, edited.quote()
		user.Classes = edited.Classes // also where it is not shown to the model (C-27.11)
	}
	p := d.plan(n, turn)
	if !p.fit.OK {
		d.replay.withdraw()
		v.Reason = ReasonPromptTooLarge
		d.reject(n, b, v)
		return
	}
	if d.shared != nil {
		user.Classes = union(user.Classes, b.stated(), d.window.classes(p.shown)) // C-36.5
	}
	d.turn(n, turn, user, b.ID, p)
}

// countedReasons are those of invalid envelopes, of which only so many are
// recorded (C-13.13).
var countedReasons = []Reason{
	ReasonMalformed, ReasonUnauthenticated, ReasonReplayed, ReasonStale, ReasonNotParticipant,
}

// dropStep is how many dropped rejections one counter fact stands for (C-13.12).
const dropStep = 100

// reject records a rejection, or counts it where enough are on record.
func (d *dialogue) reject(n int, b body, v verdict) {
	if slices.Contains(countedReasons, v.Reason) {
		if d.invalid >= d.settings.MaxInvalidRecords {
			d.drop(n)
			return
		}
		d.invalid++
	}
	r := Record{Role: RoleUser, Status: StatusRejected, Reason: v.Reason, Time: v.At}
	if v.Proven && b.isNotice() {
		r.Role, r.Topic = RoleNotice, b.Topic
	}
	if v.Proven { // C-13.23
		r.Asker = b.Asker
		if d.speaks(b.Asker, v.Reason) {
			r.Text = b.Text
		}
	}
	d.record(idUser(n), func(context.Context) keptRecord {
		if !slices.Contains(countedReasons, r.Reason) { // the others were told with their verdict
			d.flow.toldRejected(r.Reason)
		}
		return keptRecord{Record: r}
	})
}

// speaks reports whether the asker of a rejected message is known to be somebody
// who may speak here, so that its text may stand in the transcript. Of several
// people's that is known once it was found that they take part.
func (d *dialogue) speaks(asker *identity.Identity, reason Reason) bool {
	if d.shared == nil {
		return sameAsker(asker, d.owner)
	}
	return !slices.Contains(countedReasons, reason)
}

// Dropped is the value of the counter fact of rejections that were not
// recorded.
type Dropped struct {
	Dropped int `json:"dropped"`
}

func (d *dialogue) drop(n int) {
	d.dropped++
	if d.dropped%dropStep == 0 {
		_, _ = d.c.Decide(idDropped(n), SourceRecord, func(context.Context) (Dropped, error) {
			return Dropped{d.dropped}, nil
		})
	}
}

// scratch is what a run of a turn knows beside its facts. It lives as long as
// the process.
type scratch struct {
	watch   *cutIn // nil where nothing cuts turns
	trouble trouble
	words   stopwatch
}

// turn records the message, answers it, and records the answer (C-13.16). The
// answer's decision stands around all that makes it: a replay takes the record and
// does not reach the loop (C-13.20, C-25.6). key is the id of the envelope.
func (d *dialogue) turn(n int, turn Turn, user Record, key string, p plan) {
	d.seq++
	d.window.price(p.fit.Counted, p.visible)
	a := asking{
		n: n, turn: turn.Turn, key: key, asker: turn.Asker, text: turn.asked(), classes: user.Classes,
		shown: d.window.ords(p.shown), history: d.window.messages(p.shown),
	}
	s := scratch{watch: d.watch(turn.Asker)}
	defer s.watch.end()
	turn.Ord = d.record(idUser(n), func(ctx context.Context) keptRecord {
		s.watch.open(ctx)
		return keptRecord{Record: user}
	}).Ord
	a.summary, a.tokens = d.fold(n, p, s.watch)
	if a.summary {
		a.history = slices.Concat(d.summary.part().Messages, a.history)
	}
	reply := d.record(idReply(n), func(ctx context.Context) keptRecord {
		r := d.answer(ctx, a, &s)
		r.Turn, r.Role, r.Asker, r.Time = turn.Turn, RoleAssistant, user.Asker, now()
		d.flow.toldTurn(user.Time, r.Record, &s.words)
		return r
	})
	turn.Reply, turn.Status, turn.Called = reply.Text, reply.Status, reply.Called
	turn.Classes = union(user.Classes, reply.Classes)
	d.window.add(turn)
}

// record makes a transcript record under the next ordinal (C-15.7). A record
// that could not be made stands as a failed one.
func (d *dialogue) record(id string, make func(context.Context) keptRecord) keptRecord {
	d.rec++
	ord := d.rec
	r, err := d.c.Decide(id, SourceRecord, func(ctx context.Context) (keptRecord, error) {
		r := make(ctx)
		r.Ord = ord
		return r, nil
	})
	if err != nil {
		return keptRecord{Record: Record{Ord: ord, Status: StatusFailed}}
	}
	return r
}

// now is the clock of a decider: UTC, whole milliseconds.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
