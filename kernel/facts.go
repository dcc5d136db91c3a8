package kernel

import (
	"fmt"

	"github.com/parley-run/parley/journal"
)

// factKind says which operation of a Context a fact answers.
type factKind string

const (
	factConsumed factKind = "message"
	factDecision factKind = "decision"
	factStep     factKind = "step"
)

// fact is one recorded ask of a flow with what is known of its outcome.
type fact struct {
	kind   factKind
	detail string // a decision's source, a step's effect, a message's topic
	hash   string // of a step's input
	in     string // the decision around it

	settled bool // the outcome is known
	outcome outcome
	seq     journal.Seq // of the event that holds the outcome
	freed   bool        // the outcome was served and its bytes let go; seq finds them again

	served bool
}

// facts is what an activation knows of its generation's log: each recorded ask
// by its id. Facts beneath a recorded decision are forgotten: a re-run takes
// the decision's value and does not ask for them (C-6.14), and their ids are
// free again.
type facts struct {
	byID     map[string]*fact
	order    []string            // ids of asks in log order, for next; trimmed as they are served
	beneath  map[string][]string // of a decision that is not recorded: the ids it holds
	unserved int                 // recorded asks that the re-run has not met yet (K8)
}

func newFacts() *facts {
	return &facts{byID: map[string]*fact{}, beneath: map[string][]string{}}
}

// load adds one event of the log, in order. Of a consumption it returns the
// data.
func (fs *facts) load(event journal.Event) (*Consumed, error) {
	switch event.Kind {
	case KindConsumed:
		data, err := DecodeEvent[Consumed](event)
		if err != nil {
			return nil, err
		}
		fs.ask(event.ID, &fact{
			kind: factConsumed, detail: data.Topic, settled: true,
			outcome: outcome{value: data.Message.Payload}, seq: event.Seq,
		})
		return &data, nil
	case KindDecided:
		data, err := DecodeEvent[Decided](event)
		if err != nil {
			return nil, err
		}
		fs.forgetBeneath(event.ID)
		fs.ask(event.ID, &fact{
			kind: factDecision, detail: string(data.Source), in: data.In, settled: true,
			outcome: outcome{value: data.Value, fault: data.Fault}, seq: event.Seq,
		})
	case KindRequested:
		data, err := DecodeEvent[Requested](event)
		if err != nil {
			return nil, err
		}
		fs.ask(event.ID, &fact{kind: factStep, detail: string(data.Effect), hash: data.Hash, in: data.In})
	case KindSettled:
		data, err := DecodeEvent[Settled](event)
		if err != nil {
			return nil, err
		}
		f := fs.byID[event.ID]
		if f == nil || f.kind != factStep {
			return nil, fmt.Errorf("event %d settles %q, which was not requested", event.Seq, event.ID)
		}
		f.settle(outcome{value: data.Value, fault: data.Fault}, event.Seq)
	default:
		return nil, fmt.Errorf("event %d is of unknown kind %q", event.Seq, event.Kind)
	}
	return nil, nil
}

// ask adds a recorded ask that is still to be met by the re-run.
func (fs *facts) ask(id string, f *fact) {
	fs.add(id, f)
	fs.order = append(fs.order, id)
	fs.unserved++
}

// add puts a fact into the table.
func (fs *facts) add(id string, f *fact) {
	fs.byID[id] = f
	if f.in != "" {
		fs.beneath[f.in] = append(fs.beneath[f.in], id)
	}
}

// forgetBeneath drops what stands beneath a decision that is now recorded.
func (fs *facts) forgetBeneath(id string) {
	for _, inner := range fs.beneath[id] {
		if f := fs.byID[inner]; f != nil && !f.served {
			fs.unserved--
		}
		delete(fs.byID, inner)
		fs.forgetBeneath(inner)
	}
	delete(fs.beneath, id)
}

// met marks a recorded ask as met by the re-run.
func (fs *facts) met(f *fact) {
	if !f.served {
		f.served = true
		fs.unserved--
	}
}

// next returns the first recorded ask that was not met, and its fact; "" where
// all were.
func (fs *facts) next() (string, *fact) {
	for len(fs.order) > 0 {
		if f := fs.byID[fs.order[0]]; f != nil && !f.served {
			return fs.order[0], f
		}
		fs.order = fs.order[1:]
	}
	fs.order = nil
	return "", nil
}

// settle records the outcome of a step.
func (f *fact) settle(out outcome, seq journal.Seq) {
	f.settled, f.outcome, f.seq, f.freed = true, out, seq, false
}

// String describes the fact for a divergence error: no payload.
func (f *fact) String() string { return describe(f.kind, f.detail, f.hash) }

func describe(kind factKind, detail, hash string) string {
	if hash != "" {
		return fmt.Sprintf("%s %q (input %.12s…)", kind, detail, hash)
	}
	return fmt.Sprintf("%s %q", kind, detail)
}
