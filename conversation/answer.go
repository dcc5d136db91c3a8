package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// asking is what is asked in a turn, and what stands before it.
type asking struct {
	n     int // message ordinal
	turn  int
	key   string // id of the envelope
	asker *identity.Identity
	text  taint.Text

	shown   []int // ords of the earlier turns in the prompt
	summary bool  // the summary stands before them
	history []agent.Message
	classes []string // of all that is before the answer; shared conversations only
	tokens  int      // predicted by the fit, 0 without a budget
}

// answered is what came of it: a reply, what there was of one that was cut
// (C-14.7), or a failure with a fixed reason and an id (C-25.1). It is what the
// execution of a turn of a shared conversation puts out.
type answered struct {
	Status  Status   `json:"status"`
	Text    string   `json:"text,omitzero"`
	Reason  Reason   `json:"reason,omitzero"`
	ErrorID string   `json:"errorId,omitzero"`
	Called  []string `json:"called,omitempty"` // tools, as a sorted set
	Scope   string   `json:"scope,omitzero"`   // of the memory that was used

	FirstInput int  `json:"firstInput,omitzero"` // as in agent.Reply
	Overflow   bool `json:"overflow,omitzero"`   // the first request was too large for the model

	execution string // that ran the turn
}

// kept is the record of it. A whole answer says itself what was done.
func (a answered) kept() keptRecord {
	r := keptRecord{Record: Record{Status: a.Status, Text: a.Text, Reason: a.Reason, ErrorID: a.ErrorID}}
	if a.Status != StatusComplete {
		r.Called = a.Called
	}
	return r
}

// answer makes the record of an answer: in a conversation of one owner here, with
// the owner's authority (C-13.21), else in an execution of the asker's own.
func (d *dialogue) answer(ctx context.Context, a asking, s *scratch) keptRecord {
	if d.shared != nil {
		return d.delegate(ctx, a, s)
	}
	call := saying{
		flow: d.flow, c: d.c, conversation: d.c.Execution(), asking: a, limits: d.settings.Agent,
		signal: s.watch.interrupts(), trouble: &s.trouble, words: &s.words,
	}
	came := call.answer(ctx)
	d.compare(a.tokens, came)
	return came.kept()
}

// saying is one run of the agent's loop for a turn.
type saying struct {
	flow         *Flow
	c            *kernel.Context
	conversation string
	asking       asking
	listener     *identity.Identity // who hears the words as they come; nil: everybody who may read
	limits       agent.Limits
	signal       agent.Signal
	trouble      *trouble
	words        *stopwatch
}

// answer runs the loop. The cause of a failure goes to the host alone (C-25.2 to
// C-25.4).
func (s saying) answer(ctx context.Context) answered {
	reply, err := s.run()
	came := answered{
		Status: StatusComplete, Text: reply.Text, Scope: s.limits.MemoryScope, FirstInput: reply.FirstInput,
		Called: slices.Compact(slices.Sorted(slices.Values(reply.Called))),
	}
	if err == nil {
		return came
	}
	came.Overflow = errors.Is(err, model.ErrOverflow) && len(reply.Called) == 0 // later requests are not the fit's
	if _, cut := errors.AsType[*agent.InterruptedError](err); cut {
		came.Status = StatusInterrupted
		return came
	}
	came.Status = StatusFailed
	came.Reason, came.ErrorID = reasonOf(err), kernel.NewID()
	cause := errors.Join(append([]error{err}, s.trouble.all()...)...)
	s.flow.report(ctx, came.ErrorID, cause, Where{ConversationID: s.conversation, Turn: s.asking.turn})
	return came
}

// run runs the loop. A panic of it is a failure like others.
func (s saying) run() (reply agent.Reply, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w in the agent's loop: %T", kernel.ErrPanic, r)
		}
	}()
	definition := s.flow.config.Agent
	definition.Limits = s.limits
	scoped := s.c.With(func(ctx context.Context) context.Context { return agent.Observe(ctx, s.trouble.add) })
	if s.flow.config.OnTurn != nil {
		scoped = scoped.With(s.words.within)
	}
	if hub := s.flow.config.Hub; hub != nil {
		voice := hub.begin(s.conversation, s.asking.turn, s.listener)
		defer voice.end() // before the record of the turn is durable
		scoped = scoped.With(voice.within)
	}
	origin := s.asking.text.Origin()
	text, err := taint.Reveal(s.asking.text, origin)
	if err != nil {
		return agent.Reply{}, err
	}
	return agent.Run(scoped, definition, agent.Request{
		LoopID: loopID(s.asking.n), History: s.asking.history, Prompt: text, PromptOrigin: origin, Signal: s.signal,
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
