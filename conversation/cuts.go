package conversation

import (
	"context"

	"github.com/parley-run/parley/identity"
)

// cutRule judges which messages cut a turn while it runs.
type cutRule struct {
	flow         *Flow
	conversation string
	turn         int
	owner        *identity.Identity
	asker        *identity.Identity    // whose turn it is
	shared       *Shared               // nil in a conversation of one owner
	begun        func(key string) bool // a turn was begun under the key (C-14.9)
}

// watch makes the watch of the turn that begins, nil where nothing cuts turns.
func (d *dialogue) watch(asker *identity.Identity) *cutIn {
	return cutRule{
		flow: d.flow, conversation: d.c.Execution(), turn: d.seq,
		owner: d.owner, asker: asker, shared: d.shared, begun: d.replay.begunTurn,
	}.watch(d.c.Generation())
}

// watch makes a watch over the inbox of the conversation, whose newest generation
// is the one given.
func (r cutRule) watch(generation int) *cutIn {
	if r.flow.config.BargeIn == nil {
		return nil
	}
	return &cutIn{
		source: r.flow.config.BargeIn, conversation: r.conversation, generation: generation,
		cuts: r.cuts, log: r.flow.log(), fired: make(chan struct{}),
	}
}

// cuts reports whether an arrival cuts the turn. A retry of a turn that was begun
// does not, of this one above all (C-14.9), if it bears its key out (C-14.10). A
// stop that the host signed cuts the turn that it names and no other (C-46.3).
// Every other message of the owner's cuts, and in a shared conversation one that
// the host signed for the turn's own asker (C-39.2); unless messages wait.
func (r cutRule) cuts(ctx context.Context, a Arrival) bool {
	e, _ := split(a.Message.Payload)
	b, shaped := e.read()
	if b.ID != "" && b.ID == a.key() && r.begun(b.ID) {
		return false
	}
	signed := func() bool {
		return shaped && r.flow.config.Keys.verify(e) && b.ConversationID == r.conversation
	}
	if b.Kind == KindNotice && signed() {
		return false // it queues (C-45.6)
	}
	if r.shared == nil {
		if b.Kind == KindStop && sameAsker(b.Asker, r.owner) && signed() {
			return *b.Turn == r.turn
		}
		return !r.flow.config.StopOnly
	}
	if b.ID != a.key() || !a.Message.Host || !signed() {
		return false
	}
	if b.Kind == KindStop {
		return *b.Turn == r.turn && r.mayStop(ctx, b.Asker)
	}
	return sameAsker(b.Asker, r.asker) && !r.flow.config.StopOnly
}

// mayStop reports whether somebody may stop the turn of a shared conversation: its
// asker, and who manages the conversation (C-46.5).
func (r cutRule) mayStop(ctx context.Context, who *identity.Identity) bool {
	switch {
	case who == nil:
		return false
	case *who == *r.asker || sameAsker(who, r.owner):
		return true
	}
	var roster []Participant
	err := survive(func() (err error) {
		roster, err = r.shared.Participants.Roster(ctx, r.conversation)
		return err
	})
	return err == nil && rosterHas(roster, *who) && r.shared.manages(ctx, *who, r.owner, r.conversation)
}
