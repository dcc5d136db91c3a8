package conversation

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
)

// checkShared refuses what would let one asker's turn act as another, or as nobody
// in particular.
func (c *Config) checkShared() error {
	switch limits := c.Agent.Limits; {
	case limits.MemoryScope != "" || limits.WriteBackScope != "":
		return errors.New("the agent's limits name a scope of memory for everybody; with shared conversations Shared.MemoryScope names one for each asker (C-35.8)")
	case c.Shared.MemoryScope == nil && (c.Agent.Memory != nil || c.Agent.WriteBack != ""):
		return errors.New("an agent with a memory needs Shared.MemoryScope in shared conversations (C-35.8)")
	}
	return c.Shared.check()
}

// maxScopeBytes bounds the name of a scope of memory, as the agent does.
const maxScopeBytes = 256

// limitsOf are the agent's limits in a turn that runs as somebody: where
// conversations may be shared the scopes of its memory are theirs. Those of the
// service, which recalls nothing itself, say whether its turns may, so that the fit
// leaves room for it. It is called in deciders.
func (c *Config) limitsOf(who *identity.Identity) agent.Limits {
	limits := c.Agent.Limits
	if c.Shared == nil || c.Shared.MemoryScope == nil || who == nil {
		return limits
	}
	if c.Shared.isService(*who) {
		limits.MemoryScope = scopeIf(c.Agent.Memory != nil)
		return limits
	}
	scope := ""
	err := survive(func() error {
		scope = c.Shared.MemoryScope(*who)
		return nil
	})
	if err != nil || len(scope) > maxScopeBytes || !utf8.ValidString(scope) { // what no fact can hold
		scope = ""
	}
	if c.Agent.Memory != nil {
		limits.MemoryScope = scope
	}
	if c.Agent.WriteBack != "" {
		limits.WriteBackScope = scope
	}
	return limits
}

// coordinate is the body of a shared conversation: it takes the messages of its
// participants in the order in which they came (C-39.1), has each turn run as its
// asker, and keeps the transcript. It runs no prompt and no tool itself (C-34.7).
func (f *Flow) coordinate(c *kernel.Context, input jsontext.Value) (any, error) {
	carry, err := CarryOf(input, c.Generation())
	if err != nil {
		return nil, err
	}
	if c.Generation() == 0 {
		stamp, err := ParseStamp(input)
		if err != nil {
			return nil, err
		}
		carry.Owner = stamp.Owner
	}
	if carry.Owner == nil {
		return nil, errStart
	}
	d := f.resume(c, carry)
	d.shared, d.owner = f.config.Shared, carry.Owner
	return nil, d.converse(carry.Pending.Value)
}

// membership is the recorded verdict on whether somebody takes part when their
// message is dequeued (C-39.3).
type membership struct {
	Member  bool `json:"member"`
	Manager bool `json:"manager,omitzero"` // only asked for a close
}

// member judges the asker of a fresh envelope again. In a conversation of one owner
// there is nothing to judge.
func (d *dialogue) member(n int, b body) Reason {
	if d.shared == nil {
		return ""
	}
	m, err := d.c.Decide(idMember(n), SourceSharing, func(ctx context.Context) (membership, error) {
		m := d.membership(ctx, b)
		if !m.passes(b.Kind) {
			d.flow.toldRejected(ReasonNotParticipant)
		}
		return m, nil
	})
	if err != nil || !m.passes(b.Kind) {
		return ReasonNotParticipant
	}
	return ""
}

// passes reports whether an envelope of a member may do what it asks for.
func (m membership) passes(kind Kind) bool { return m.Member && (kind != KindClose || m.Manager) }

// membership asks the directory, again and again for a while where it does not
// answer: the message was accepted, and no answer is a no (C-33.11).
func (d *dialogue) membership(ctx context.Context, b body) (m membership) {
	who := *b.speaker()
	if who == *d.owner {
		return membership{Member: true, Manager: b.Kind == KindClose}
	}
	conversation := d.c.Execution()
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		var roster []Participant
		err := survive(func() (err error) {
			roster, err = d.shared.Participants.Roster(ctx, conversation)
			return err
		})
		if err == nil {
			m.Member = rosterHas(roster, who)
			break
		}
		if wait > maxRosterWait || !pause(ctx, wait) {
			d.flow.log().Error("the participants of a conversation cannot be read, a message is refused", "conversation", conversation, "error", err)
			return membership{}
		}
	}
	m.Manager = m.Member && b.Kind == KindClose && d.shared.manages(ctx, who, d.owner, conversation)
	return m
}

// maxRosterWait is the longest wait before the directory is asked again.
const maxRosterWait = 8 * time.Second

// pause waits, and reports whether the context lasted.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// visible is which of the newest turns an asker may be given, by their place in the
// window, oldest first (C-38.1). A turn counts as a whole: a question whose answer
// is not for them is not for them either (C-38.2). Where the host has to be asked
// the verdict is recorded.
func (d *dialogue) visible(n int, who *identity.Identity, newest int) []int {
	places := placesOf(len(d.window.turns))[len(d.window.turns)-newest:]
	open := func(place int) bool {
		turn := d.window.turns[place]
		return len(turn.Classes) == 0 || sameAsker(turn.Asker, who)
	}
	if !slices.ContainsFunc(places, func(place int) bool { return !open(place) }) {
		return places
	}
	ords, err := d.c.Decide(idVisible(n), SourceSharing, func(ctx context.Context) ([]int, error) {
		cleared := d.shared.clearanceOf(*who)
		ords := []int{}
		for _, place := range places {
			if open(place) || cleared.covers(ctx, d.window.turns[place].Classes) {
				ords = append(ords, d.window.turns[place].Ord)
			}
		}
		return ords, nil
	})
	return slices.DeleteFunc(places, func(place int) bool {
		return err != nil || !slices.Contains(ords, d.window.turns[place].Ord)
	})
}

// delegate has a turn run in an execution of its asker's own, and makes the record
// of what that put out (C-35.1).
func (d *dialogue) delegate(ctx context.Context, a asking, s *scratch) keptRecord {
	came, err := d.execute(a, s)
	if err != nil {
		came = answered{Status: StatusFailed, Reason: delegationReason(err), ErrorID: kernel.NewID()}
		d.flow.report(ctx, came.ErrorID, errors.Join(append([]error{err}, s.trouble.all()...)...),
			Where{ConversationID: d.c.Execution(), Turn: a.turn})
	}
	d.compare(a.tokens, came)
	r := came.kept()
	r.TurnExecutionID = came.execution
	r.Classes, err = d.c.Decide(idClasses(a.n), SourceSharing, func(context.Context) ([]string, error) {
		return d.shared.ofAnswer(a.classes, came.Called, came.Scope), nil
	})
	if err != nil {
		r.Classes = union(a.classes, []string{Unclassified})
	}
	return r
}

// execute runs the step of a turn.
func (d *dialogue) execute(a asking, s *scratch) (answered, error) {
	order := turnOrder{
		V: turnVersion, Conversation: d.c.Execution(), Generation: d.c.Generation(), N: a.n, Turn: a.turn,
		Message: a.key, Asker: *a.asker, Owner: *d.owner, Text: a.text, Shown: a.shown, Summary: a.summary,
	}
	data, err := json.Marshal(order)
	if err == nil {
		err = (*jsontext.Value)(&data).Canonicalize()
	}
	if err != nil {
		return answered{}, err
	}
	input := kernel.Canonical{JSON: data, Value: &given{history: a.history, watch: s.watch, words: &s.words}}
	scoped := d.c.With(func(ctx context.Context) context.Context { return agent.Observe(ctx, s.trouble.add) })
	ran, err := scoped.Execute[ranTurn](idTurn(a.n), TurnEffect, input)
	ran.answered.execution = ran.Execution
	return ran.answered, err
}

// delegationReason is all that readers are told of a turn that could not be run.
func delegationReason(err error) Reason {
	switch {
	case errors.Is(err, kernel.ErrDenied):
		return ReasonDenied
	case errors.Is(err, errTurnCancelled):
		return ReasonCancelled
	}
	return ReasonTurnFailed
}
