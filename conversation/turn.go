package conversation

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
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
		v.Reason = d.enter(b)
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

// hear takes an admitted message into a turn, if it fits into the model's window
// (C-20.5).
func (d *dialogue) hear(n int, b body, v verdict) {
	turn := Turn{Turn: d.seq + 1, Asker: b.Asker, User: taint.Tainted(b.Text, taint.OriginUser)}
	user := Record{Turn: turn.Turn, Role: RoleUser, Status: StatusAccepted, Text: b.Text, Asker: b.Asker, Time: v.At}
	if b.EditOf != nil {
		edited := d.window.find(*b.EditOf)
		user.EditOf, user.EditOfTurn, turn.Edits = edited.Ord, edited.Turn, edited.quote()
	}
	fit := d.fit(n, turn)
	if !fit.OK {
		d.replay.withdraw()
		v.Reason = ReasonPromptTooLarge
		d.reject(n, b, v)
		return
	}
	d.turn(n, turn, user, fit)
}

func (d *dialogue) admission() admission {
	return admission{
		keys: d.flow.config.Keys, conversation: d.c.Execution(), owner: d.owner,
		maxTurnChars: d.settings.MaxTurnChars, maxAge: d.flow.config.MaxEnvelopeAge, replay: &d.replay,
	}
}

// enter puts a fresh envelope's id into the replay set, and goes on with the
// checks behind it: what follows from the dialogue alone needs no decision
// (C-27.3).
func (d *dialogue) enter(b body) Reason {
	var reason Reason
	if b.EditOf != nil && d.window.find(*b.EditOf) == nil {
		reason = ReasonEditInvalid
	}
	d.replay.enter(Seen{Key: b.ID, IssuedAt: b.IssuedAt, Turn: b.Kind == KindUser && reason == ""})
	return reason
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
	if v.Proven { // C-13.23
		r.Asker = b.Asker
		if sameAsker(b.Asker, d.owner) {
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
// answer's decision stands around the whole loop: a replay takes the record and
// does not reach the loop (C-13.20, C-25.6).
func (d *dialogue) turn(n int, turn Turn, user Record, fit Fit) {
	d.seq++
	d.window.price(fit.Counted)
	s := scratch{watch: d.watch()}
	defer s.watch.end()
	turn.Ord = d.record(idUser(n), func(ctx context.Context) keptRecord {
		s.watch.open(ctx)
		return keptRecord{Record: user}
	}).Ord
	summary, tokens := d.fold(n, fit, s.watch)
	p := prompt{turn, fit.Keep, summary, tokens}
	reply := d.record(idReply(n), func(ctx context.Context) keptRecord {
		r := d.answer(ctx, n, p, &s)
		r.Turn, r.Role, r.Asker, r.Time = turn.Turn, RoleAssistant, user.Asker, now()
		d.flow.toldTurn(user.Time, r.Record, &s.words)
		return r
	})
	turn.Reply, turn.Status, turn.Called = reply.Text, reply.Status, reply.Called
	d.window.add(turn)
}

// prompt is what a turn's first request is made of.
type prompt struct {
	turn    Turn
	keep    int  // earlier turns, of those in the window
	summary bool // the summary stands before the window
	tokens  int  // predicted by the fit, 0 without a budget
}

// history is what stands before the prompt (C-13.18).
func (d *dialogue) history(p prompt) []agent.Message {
	turns := d.window.newer(p.keep)
	if !p.summary {
		return turns
	}
	return slices.Concat(d.summary.part().Messages, turns)
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

// answer runs the loop and makes what came of it a record: a reply, what there
// was of one that was cut (C-14.7), or a failure with a fixed reason and an id,
// whose cause goes to the host alone (C-25.1 to C-25.4).
func (d *dialogue) answer(ctx context.Context, n int, p prompt, s *scratch) keptRecord {
	reply, err := d.converse(n, p, s)
	d.compare(p.tokens, reply, err)
	r := keptRecord{Record: Record{Status: StatusComplete, Text: reply.Text}}
	if err == nil {
		return r
	}
	r.Called = slices.Compact(slices.Sorted(slices.Values(reply.Called)))
	if _, cut := errors.AsType[*agent.InterruptedError](err); cut {
		r.Status = StatusInterrupted
		return r
	}
	r.Status, r.Reason, r.ErrorID = StatusFailed, reasonOf(err), kernel.NewID()
	cause := errors.Join(append([]error{err}, s.trouble.all()...)...)
	d.flow.report(ctx, r.ErrorID, cause, Where{ConversationID: d.c.Execution(), Turn: d.seq})
	return r
}

// converse runs the loop. A panic of it is a failure like others.
func (d *dialogue) converse(n int, p prompt, s *scratch) (reply agent.Reply, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w in the agent's loop: %T", kernel.ErrPanic, r)
		}
	}()
	definition := d.flow.config.Agent
	definition.Limits = d.settings.Agent
	scoped := d.c.With(func(ctx context.Context) context.Context { return agent.Observe(ctx, s.trouble.add) })
	if d.flow.config.OnTurn != nil {
		scoped = scoped.With(s.words.within)
	}
	if hub := d.flow.config.Hub; hub != nil {
		voice := hub.begin(d.c.Execution(), d.seq)
		defer voice.end() // before the record of the turn is durable
		scoped = scoped.With(voice.within)
	}
	text, err := taint.Reveal(p.turn.asked(), taint.OriginUser)
	if err != nil {
		return agent.Reply{}, err
	}
	return agent.Run(scoped, definition, agent.Request{
		LoopID: loopID(n), History: d.history(p), Prompt: text, PromptOrigin: taint.OriginUser, Signal: s.watch.interrupts(),
	})
}

// watch makes the watch of the turn that begins, nil where nothing cuts turns.
func (d *dialogue) watch() *cutIn {
	if d.flow.config.BargeIn == nil {
		return nil
	}
	turn := d.seq
	return &cutIn{
		source: d.flow.config.BargeIn, conversation: d.c.Execution(), generation: d.c.Generation(),
		cuts: func(a Arrival) bool { return d.cuts(a, turn) }, log: d.flow.log(), fired: make(chan struct{}),
	}
}

// cuts reports whether an arrival cuts the turn. A retry of a turn that was begun
// does not, of this one above all (C-14.9), if it bears its key out (C-14.10). A
// stop that the host signed cuts the turn that it names and no other (C-46.3);
// every other message cuts, unless messages wait.
func (d *dialogue) cuts(a Arrival, turn int) bool {
	e, _ := split(a.Message.Payload)
	b, shaped := e.read()
	if b.ID != "" && b.ID == a.key() && d.replay.begunTurn(b.ID) {
		return false
	}
	if b.Kind == KindStop && shaped && d.flow.config.Keys.verify(e) && b.ConversationID == d.c.Execution() && sameAsker(b.Asker, d.owner) {
		return *b.Turn == turn
	}
	return !d.flow.config.StopOnly
}

// reasonOf is all that readers are told of a failure (C-25.2).
func reasonOf(err error) Reason {
	if _, ok := errors.AsType[*agent.ModelError](err); ok {
		return ReasonModelError
	}
	if errors.Is(err, kernel.ErrDenied) {
		return ReasonDenied
	}
	return ReasonTurnFailed
}

// now is the clock of a decider: UTC, whole milliseconds.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
