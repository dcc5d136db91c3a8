// Package bodytest is what an adapter of the body is, in executable form.
//
// An adapter is finished when [Run] passes over it. What a simulator proves of
// the rules this proves of the adapter, as far as its body goes; a simulated run
// is not one of the real thing (L-31.2).
package bodytest

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/parley-run/parley/body"
)

// Subject is an adapter with a body that is not alive yet, and what the suite
// needs to know of it.
type Subject struct {
	Adapter body.Adapter

	Act     Step // does something harmless that brings the body to life
	Leave   Step // leaves a [Mark] behind in the body
	Look    Step // answers with whatever of the kind is there to see
	Hang    Step // does not end by itself
	Unknown Step // an action that there is not
	Bad     Step // an action whose input cannot be meant

	// Alive looks at the body itself, past the adapter.
	Alive func(of body.Incarnation) bool

	// Reopen makes an adapter over the same body as a new process would, which
	// remembers nothing. Nil: a body cannot outlive its process.
	Reopen func(t *testing.T) body.Adapter

	// Idle makes the adapter close the body of the incarnation by itself, and
	// returns when it was reported and taken. Nil: it never does that.
	Idle func(ctx context.Context, of body.Incarnation) error

	Grace time.Duration // within which a cut call returns; 0 means 5 s
}

// Step is an action with its input.
type Step struct {
	Action string
	Input  jsontext.Value
}

// Mark is a text that one life leaves and the next must not find.
const Mark = "the mark of the life before"

// Run holds an adapter against the contract of [body.Adapter]. Each call of open
// gives a subject of its own, which open arranges to give back.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			if s.Grace == 0 {
				s.Grace = 5 * time.Second
			}
			h := &spyHost{ended: make(chan body.Evidence, 16)}
			s.Adapter.Attach(h)
			c.run(t, &trial{Subject: s, host: h})
		})
	}
}

var cases = []struct {
	name string
	run  func(t *testing.T, s *trial)
}{
	{"an effect asks once and is carried out", actsOnce},
	{"an effect that may not begin touches nothing", refusedBegin},
	{"what cannot be meant is refused and touches nothing", badInput},
	{"a call that was cut before it began touches nothing", cutBefore},
	{"a call that was cut is not known to have ended", cutDuring},
	{"a living body is no evidence, however often it is looked at", alive},
	{"a life that never began is over", neverBegan},
	{"a stop that may not touches nothing", refusedStop},
	{"a stop ends the life, and the check proves it", stops},
	{"a stop of a life that is over is no error", stopsTwice},
	{"a stop touches no other life", stopsNoOther},
	{"a check speaks of exactly one life", checksNoOther},
	{"nothing of one life reaches the next", handover},
	{"a new process tells the truth about an old body", reopened},
	{"an idle close is reported until it is taken", idleClose},
}

// trial is a subject under one case.
type trial struct {
	Subject
	host *spyHost
	n    int
}

// call is one effect, and what it came to.
type call struct {
	effect body.Effect
	asked  int
	noted  jsontext.Value
}

// effect makes an effect of a life whose Begin answers with refusal.
func (s *trial) effect(of body.Incarnation, step Step, refusal error) *call {
	s.n++
	c := &call{}
	c.effect = body.Effect{
		Incarnation: of, Operation: fmt.Sprintf("%s.%d", of, s.n), Number: s.n, Action: step.Action, Input: step.Input,
		Begin: func(context.Context) error {
			c.asked++
			return refusal
		},
		Note: func(_ context.Context, reference jsontext.Value) error {
			c.noted = reference.Clone()
			return nil
		},
	}
	return c
}

// must carries out an effect that has to succeed, and returns the life as it is
// then.
func (s *trial) must(t *testing.T, of body.Incarnation, step Step) (jsontext.Value, body.Life) {
	t.Helper()
	c := s.effect(of, step, nil)
	result, err := s.Adapter.Perform(t.Context(), c.effect)
	if err != nil {
		t.Fatalf("Perform(%s) = %v", step.Action, err)
	}
	return result, body.Life{Incarnation: of, Begun: s.n, Reference: c.noted}
}

// stop stops a life, whose guard answers with refusal.
func (s *trial) stop(t *testing.T, of body.Life, refusal error) (asked int, err error) {
	t.Helper()
	err = s.Adapter.Stop(t.Context(), of, func(context.Context) error {
		asked++
		return refusal
	})
	return asked, err
}

// over wants evidence that a life is over.
func (s *trial) over(t *testing.T, adapter body.Adapter, of body.Life) {
	t.Helper()
	evidence, err := adapter.Check(t.Context(), of)
	if err != nil || evidence.Incarnation != of.Incarnation || evidence.Proof == "" {
		t.Errorf("Check(%s) = %+v, %v; want evidence of exactly that life", of.Incarnation, evidence, err)
	}
	if s.Alive(of.Incarnation) {
		t.Errorf("the body of %s lives, and there is evidence that it is over", of.Incarnation)
	}
}

// living wants no evidence, and the body alive.
func (s *trial) living(t *testing.T, adapter body.Adapter, of body.Life) {
	t.Helper()
	evidence, err := adapter.Check(t.Context(), of)
	if !errors.Is(err, body.ErrAlive) {
		t.Errorf("Check(%s) of a living body = %+v, %v; want ErrAlive", of.Incarnation, evidence, err)
	}
	if !s.Alive(of.Incarnation) {
		t.Errorf("the body of %s is dead; want it untouched", of.Incarnation)
	}
}
