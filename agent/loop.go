package agent

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// SourceCheckpoint is the source of the loop's decisions: bookkeeping (C-6.3).
const SourceCheckpoint kernel.Source = "agent-checkpoint"

// ErrTooLarge says that history and prompt are more than a step can be given.
var ErrTooLarge = errors.New("history and prompt are too large for a model call")

// Run turns the prompt into a reply. It asks for these facts, each of which a
// re-run is served, in this order, for each round r from 1:
//
//	<loop>#recall               only with a memory: the facts that it gave (C-10.13)
//	<loop>#abort:model:<r>      the checkpoint before the model call (C-10.8)
//	<loop>#compact:<r>          only above the limit of the compaction (C-10.12)
//	<loop>#model:<r>            the model call
//	<loop>#model:<r>:interrupt  only if the call was interrupted: that it was
//	<loop>#abort:tools:<r>      the checkpoint before a batch of tools
//	<loop>#tool:<r>.<i>         its i-th call, side by side with the others
//	<loop>#write                only with a write-back, after a complete reply
//
// A loop needs an id of its own within its execution: a second one under the
// same id is served the steps of the first where it asks for the same, and
// diverges where it does not (C-10.3).
//
// A run that is interrupted ends at the next checkpoint, or in the model call
// that is being made; a tool call that has begun is not cut (C-10.11).
//
// Besides the reply's text Run returns an [*InterruptedError] for such a run; a
// [*ModelError] if a model call failed;
// [kernel.ErrDenied] if the model or a tool is not granted (C-10.16);
// [ErrTooLarge]. The Reply is what there was until then. A run that hits one of
// its limits ends without an error and says so in its reply.
func Run(c *kernel.Context, def Definition, req Request) (Reply, error) {
	if req.LoopID == "" {
		req.LoopID = def.ID
	}
	if req.LoopID == "" || req.Prompt == "" {
		return Reply{}, errors.New("a run of the loop needs an id and a prompt")
	}
	l := &loop{c: c.With(req.Signal.Within), id: req.LoopID, def: def, signal: req.Signal, limits: def.Limits.WithDefaults()}
	draft, err := newDraft(req, l.recall(req.Prompt))
	if err != nil {
		return Reply{}, err
	}
	if draft.full() {
		return Reply{}, ErrTooLarge
	}
	l.draft = draft
	err = l.run()
	l.reply.Text = cut(l.reply.Text, replyCut)
	if l.complete {
		l.writeBack(draft.prompt())
	}
	if errors.Is(err, errInterrupted) {
		err = &InterruptedError{Partial: l.reply.Text}
	}
	return l.reply, err
}

// loop is one run.
type loop struct {
	c      *kernel.Context
	id     string
	def    Definition // acts inside effects and deciders only
	signal Signal
	limits Limits
	draft  draft
	calls  int
	reply  Reply

	uncompacted int  // compactions that failed
	reported    bool // that there is nothing to cut
	complete    bool // the model has said all it wanted
}

func (l *loop) run() error {
	for round := 1; ; round++ {
		if err := l.checkpoint("model:" + strconv.Itoa(round)); err != nil {
			return err
		}
		l.compact(round)
		if l.draft.full() {
			l.reply.Text = join(l.reply.Text, "[This turn was ended early: its tools returned more than a model call can be given.]")
			return nil
		}
		said, err := l.ask(round)
		if err != nil || len(said.Calls) == 0 {
			l.complete = err == nil && said.Reason == model.FinishStop
			return err
		}
		if limit := l.limit(round, said); limit != "" {
			l.reply.Text = join(l.reply.Text, "[This turn was ended early: it reached its limit of "+limit+".]")
			return nil
		}
		if err := l.use(round, said); err != nil {
			return err
		}
	}
}

// ask makes the round's model call.
func (l *loop) ask(round int) (Said, error) {
	call := fmt.Sprintf("%s#model:%d", l.id, round)
	said, err := l.c.Execute[Said](call, l.def.modelEffect(), l.draft.input())
	if err != nil {
		return Said{}, err
	}
	l.reply.Text = join(l.reply.Text, said.Text)
	if round == 1 && l.draft.asGiven() {
		l.reply.FirstInput = said.Usage.InputTokens
	}
	l.reply.Usage.InputTokens += said.Usage.InputTokens
	l.reply.Usage.OutputTokens += said.Usage.OutputTokens
	switch {
	case said.Interrupted:
		l.verdict(call+":interrupt", true)
		return said, errInterrupted
	case said.Failed != "":
		return said, &ModelError{Code: said.Failed}
	}
	return said, nil
}

// limit names the limit that keeps a reply's calls from being run, "" where
// there is none. Where no model call can follow, no tool is called.
func (l *loop) limit(round int, said Said) string {
	switch {
	case round >= l.limits.Rounds:
		return fmt.Sprintf("%d model calls", l.limits.Rounds)
	case l.calls+len(said.Calls) > l.limits.Calls:
		return fmt.Sprintf("%d tool calls", l.limits.Calls)
	}
	return ""
}

// errInterrupted ends a run; see [InterruptedError].
var errInterrupted = errors.New("interrupted")

// checkpoint ends the run here if it was interrupted (C-10.8). The loop looks for
// an interruption only at its checkpoints, and the verdict of every one is on
// record, so that a replay ends where the run did, whatever the signal says then
// (C-10.9).
func (l *loop) checkpoint(site string) error {
	if l.verdict(l.id+"#abort:"+site, false) {
		return errInterrupted
	}
	return nil
}

// verdict records whether the run is to end: the known answer, or the signal's.
func (l *loop) verdict(id string, known bool) bool {
	end, err := l.c.Decide(id, SourceCheckpoint, func(ctx context.Context) (bool, error) {
		return known || l.signal.fired(ctx), nil
	})
	return err == nil && end
}

// use runs the calls of one reply side by side, and adds the reply and their
// results.
func (l *loop) use(round int, said Said) error {
	calls := said.Calls
	if err := l.draft.add(entry{Role: model.Assistant, Text: taint.Plain(said.Text), Calls: calls}); err != nil {
		return err
	}
	if err := l.checkpoint("tools:" + strconv.Itoa(round)); err != nil {
		return err
	}
	l.calls += len(calls)
	pending := make([]*kernel.Pending[Did], len(calls))
	for i, call := range calls {
		if call.Problem == "" {
			l.reply.Called = append(l.reply.Called, call.Name)
			id := fmt.Sprintf("%s#tool:%d.%d", l.id, round, i+1)
			effect, input := call.step()
			pending[i] = l.c.Start[Did](id, effect, input)
		}
	}
	var denied error
	results := make([]result, len(calls))
	for i, call := range calls {
		did := Did{}
		if pending[i] == nil {
			did = notRun(call)
		} else {
			var err error
			if did, err = pending[i].Await(); err != nil {
				did = cutOff(err)
			}
			if errors.Is(err, kernel.ErrDenied) {
				denied = err // every started step is awaited before the run ends
			}
		}
		results[i] = result{CallID: call.ID, Name: call.Name, Text: did.Text, Failed: did.Failed}
	}
	if denied != nil {
		return denied
	}
	return l.draft.add(entry{Role: model.User, Results: results})
}

// notRun is what the model is told of a call that could not be made.
func notRun(call Call) Did {
	switch {
	case call.Problem == problemUnknown:
		return told(tellNoTool)
	case call.Misfit != "":
		return Did{Text: taint.Tainted(tellMisfit+call.Misfit, taint.ToolOrigin(call.Name)), Failed: true}
	}
	return told(tellBadArgs)
}

// cutOff is what the model is told of a call that has no outcome of its own.
func cutOff(err error) Did {
	if errors.Is(err, kernel.ErrOutcomeUnknown) {
		return told(tellUnknown)
	}
	return told(tellFailed)
}
