package conversation

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"slices"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
)

// past is what a shared conversation had come to when a turn of it began, as its
// log tells: for the execution of a turn that the coordinator has handed nothing.
type past struct {
	window  window // turns are never evicted: the order names those that count
	summary Rolling
	replay  replaySet

	n       int
	message body   // the n-th
	turn    *Turn  // that the message began
	folded  string // what the newest summarizer said
}

// errPast says that the log is not that of a conversation in which the turn began.
var errPast = errors.New("the log of the conversation does not tell what the turn was given")

// readPast reads the log of a generation up to the step of the turn.
func readPast(ctx context.Context, store journal.Store, order turnOrder) (*past, error) {
	p := new(past)
	stream := kernel.StreamOf(order.Conversation, order.Generation)
	for from := journal.Seq(0); ; from += blockEvents {
		events, err := store.ReadRange(ctx, stream, from, blockEvents, journal.Forward)
		if err != nil {
			return nil, err
		}
		for _, event := range events {
			if event.Kind == kernel.KindRequested && event.ID == idTurn(order.N) {
				return p, nil
			}
			if err := p.take(event, order.Generation); err != nil {
				return nil, err
			}
		}
		if len(events) < blockEvents {
			return nil, errPast
		}
	}
}

// take goes one event on.
func (p *past) take(event journal.Event, generation int) error {
	switch event.Kind {
	case kernel.KindStarted:
		started, err := kernel.DecodeEvent[kernel.Started](event)
		if err != nil {
			return err
		}
		carry, err := CarryOf(started.Input, generation)
		if err != nil {
			return err
		}
		p.window, p.summary, p.replay, p.n = newWindow(carry.Turns), carry.Summary, carry.replaySet, carry.Ord
		if generation > 0 {
			p.consume(carry.Pending.Value)
		}
	case kernel.KindConsumed:
		consumed, err := kernel.DecodeEvent[kernel.Consumed](event)
		if err != nil {
			return err
		}
		if consumed.Topic == Topic {
			p.consume(consumed.Message.Payload)
		}
	case kernel.KindDecided:
		return p.decided(event)
	}
	return nil
}

// consume goes on to the next message.
func (p *past) consume(payload jsontext.Value) {
	p.n++
	e, _ := split(payload)
	p.message, _ = e.read()
	p.turn = nil
}

// decided takes in what the coordinator has decided of the message.
func (p *past) decided(event journal.Event) error {
	decided, err := kernel.DecodeEvent[kernel.Decided](event)
	if err != nil {
		return err
	}
	switch event.ID {
	case idUser(p.n):
		return p.heard(decided)
	case idReply(p.n):
		return p.replied(decided)
	case idSummarized(p.n):
		var out summarized
		if err := json.Unmarshal(decided.Value, &out); err != nil {
			return err
		}
		p.folded, _ = taint.Reveal(out.Text, taint.OriginSummary)
	case idSummary(p.n):
		var cut summaryCut
		if decided.Fault == "" && json.Unmarshal(decided.Value, &cut) == nil && cut.Bytes > 0 && cut.Bytes <= len(p.folded) {
			p.summary = Rolling{Text: taint.Tainted(p.folded[:cut.Bytes], taint.OriginSummary), Tokens: cut.Tokens}
		}
	}
	return nil
}

// heard takes in the record of a message, which may be a rejection.
func (p *past) heard(decided kernel.Decided) error {
	var r Record
	if err := json.Unmarshal(decided.Value, &r); err != nil {
		return errPast
	}
	if r.Status != StatusAccepted {
		return nil
	}
	p.turn = &Turn{Turn: r.Turn, Ord: r.Ord, Asker: r.Asker, User: p.message.said()}
	if r.EditOf > 0 {
		edited := p.window.find(r.EditOf)
		if edited == nil {
			return errPast
		}
		p.turn.Edits = edited.quote()
	}
	p.replay.enter(Seen{Key: p.message.ID, IssuedAt: p.message.IssuedAt, Turn: true})
	return nil
}

// replied takes in the record of an answer.
func (p *past) replied(decided kernel.Decided) error {
	if p.turn == nil {
		return errPast
	}
	reply := keptRecord{Record: Record{Status: StatusFailed}} // where there is no record of it
	if decided.Fault == "" {
		if err := json.Unmarshal(decided.Value, &reply); err != nil {
			return errPast
		}
	}
	p.turn.Reply, p.turn.Status, p.turn.Called = reply.Text, reply.Status, reply.Called
	p.window.add(*p.turn)
	return nil
}

// history is what stands before the question of a turn.
func (p *past) history(order turnOrder) []agent.Message {
	var history []agent.Message
	if order.Summary {
		history = p.summary.part().Messages
	}
	var places []int
	for place, turn := range p.window.turns {
		if slices.Contains(order.Shown, turn.Ord) {
			places = append(places, place)
		}
	}
	return slices.Concat(history, p.window.messages(places))
}
