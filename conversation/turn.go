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
		return d.admission().judge(payload, now()), nil
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
	case b.Kind == KindClose:
		_, _ = d.c.Decide(idClosed, SourceRecord, func(context.Context) (Closed, error) {
			return Closed{Asker: b.Asker, Time: v.At}, nil
		})
		return true
	default:
		d.turn(n, b, v)
	}
	return false
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
	if b.EditOf != nil {
		reason = ReasonEditInvalid // there is no turn that can be edited
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
	d.record(idUser(n), func(context.Context) Record { return r })
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

// turn records the message, answers it, and records the answer (C-13.16). The
// answer's decision stands around the whole loop: a replay takes the record and
// does not reach the loop (C-13.20, C-25.6).
func (d *dialogue) turn(n int, b body, v verdict) {
	d.seq++
	d.window.fit(d.settings.MaxWindowTurns, d.settings.windowBytes())
	user := d.record(idUser(n), func(context.Context) Record {
		return Record{Turn: d.seq, Role: RoleUser, Status: StatusAccepted, Text: b.Text, Asker: b.Asker, Time: v.At}
	})
	reply := d.record(idReply(n), func(ctx context.Context) Record {
		r := d.answer(ctx, n, b.Text)
		r.Turn, r.Role, r.Asker, r.Time = d.seq, RoleAssistant, b.Asker, now()
		return r
	})
	d.window.add(Turn{
		Turn: d.seq, Ord: user.Ord, Asker: b.Asker, User: taint.Tainted(b.Text, taint.OriginUser),
		Reply: reply.Text, Status: reply.Status,
	})
}

// record makes a transcript record under the next ordinal (C-15.7). A record
// that could not be made stands as a failed one.
func (d *dialogue) record(id string, make func(context.Context) Record) Record {
	d.rec++
	ord := d.rec
	r, err := d.c.Decide(id, SourceRecord, func(ctx context.Context) (Record, error) {
		r := make(ctx)
		r.Ord = ord
		return r, nil
	})
	if err != nil {
		return Record{Ord: ord, Status: StatusFailed}
	}
	return r
}

// answer runs the loop and makes what came of it a record: a reply, or a
// failure with a fixed reason and an id, whose cause goes to the host alone
// (C-25.1 to C-25.4).
func (d *dialogue) answer(ctx context.Context, n int, text string) Record {
	var t trouble
	reply, err := d.converse(n, text, &t)
	if err == nil {
		return Record{Status: StatusComplete, Text: reply.Text}
	}
	r := Record{Status: StatusFailed, Text: reply.Text, Reason: reasonOf(err), ErrorID: kernel.NewID()}
	cause := errors.Join(append([]error{err}, t.all()...)...)
	d.flow.report(ctx, r.ErrorID, cause, Where{ConversationID: d.c.Execution(), Turn: d.seq})
	return r
}

// converse runs the loop. A panic of it is a failure like others.
func (d *dialogue) converse(n int, text string, t *trouble) (reply agent.Reply, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w in the agent's loop: %T", kernel.ErrPanic, r)
		}
	}()
	definition := d.flow.config.Agent
	definition.Limits = d.settings.Agent
	scoped := d.c.With(func(ctx context.Context) context.Context { return agent.Observe(ctx, t.add) })
	if hub := d.flow.config.Hub; hub != nil {
		voice := hub.begin(d.c.Execution(), d.seq)
		defer voice.end() // before the record of the turn is durable
		scoped = scoped.With(voice.within)
	}
	return agent.Run(scoped, definition, agent.Request{
		LoopID: loopID(n), History: d.window.history, Prompt: text, PromptOrigin: taint.OriginUser,
	})
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
