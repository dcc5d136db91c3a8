package conversation

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"strconv"
	"sync"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/fault"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
)

// turnVersion is the version of a turn's order.
const turnVersion = 1

// turnOrder is what the execution of a turn is started with. It names the earlier
// turns that stand before the question and has none of their texts (K11): those are
// in the log of the conversation, and what is in one log is in no other.
type turnOrder struct {
	V            int               `json:"v"`
	Conversation string            `json:"conversation"`
	Generation   int               `json:"generation"`
	N            int               `json:"n"`
	Turn         int               `json:"turn"`
	Message      string            `json:"message"` // the id of its envelope
	Asker        identity.Identity `json:"asker"`
	Owner        identity.Identity `json:"owner"` // of the conversation
	Text         taint.Text        `json:"text"`  // as the prompt has it (C-27.10)
	Shown        []int             `json:"shown"` // ords of the earlier turns in the prompt
	Summary      bool              `json:"summary,omitzero"`
}

// parseTurnOrder reads a start input as the hostile JSON that it may be, since
// anybody whom the policy lets start may start the flow of turns.
func parseTurnOrder(input []byte) (turnOrder, error) {
	var order turnOrder
	if len(input) > kernel.MaxPayloadBytes || json.Unmarshal(input, &order, json.RejectUnknownMembers(true)) != nil ||
		order.V != turnVersion || order.Generation < 0 || order.N <= 0 || order.Turn <= 0 || len(order.Shown) > maxCarriedTurns ||
		!idPattern.MatchString(order.Conversation) || !isSenderKey(order.Message) ||
		order.Asker.Validate() != nil || order.Owner.Validate() != nil || !isSaid(order.Text) {
		return turnOrder{}, errTurnOrder
	}
	return order, nil
}

var (
	errTurnOrder     = fault.New("TURN_ORDER", "the start input is no order of a turn")
	errTurnForged    = fault.New("TURN_FORGED", "an execution that is not ours stands at the id of a turn")
	errTurnPrincipal = fault.New("TURN_PRINCIPAL", "no principal stands for the asker of a turn")
	errTurnCancelled = fault.New("TURN_CANCELLED", "the execution of the turn was cancelled")
	errTurnStuck     = fault.New("TURN_STUCK", "the execution of the turn cannot go on")
)

// turnID is the id of a turn's execution: known before it starts, and to nobody
// without the key (C-35.2, C-35.3).
func turnID(key identity.Secret, conversation string, n int) string {
	h := hmac.New(sha256.New, []byte(key.Reveal()))
	h.Write([]byte(conversation + "|" + strconv.Itoa(n)))
	return TurnPrefix + conversation + ":o" + strconv.Itoa(n) + ":" + hex.EncodeToString(h.Sum(nil))[:24]
}

// ranTurn is the result of a turn's step.
type ranTurn struct {
	Execution string `json:"execution"`
	answered
}

// given is what the coordinator hands to the execution of a turn beside its order,
// as long as both are in one process: what it would have to read, and the watch
// over the inbox.
type given struct {
	history []agent.Message
	watch   *cutIn // nil where nothing cuts turns
	words   *stopwatch
}

// handed holds what is on its way to the executions of turns.
type handed struct {
	mu   sync.Mutex
	byID map[string]*given
}

func (h *handed) put(id string, g *given) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.byID[id] = g
}

func (h *handed) find(id string) *given {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.byID[id]
}

func (h *handed) drop(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.byID, id)
}

// turnEffect starts the execution of a turn under its asker's principal, or finds
// the one that an earlier run of the step has started, and waits for its end
// (C-35.1). Cancelling the coordinator cancels it too (C-35.4).
func (f *Flow) turnEffect(ctx context.Context, input jsontext.Value) (any, error) {
	ran, err := f.executeTurn(ctx, input)
	if err != nil {
		agent.Report(ctx, TurnEffect, err)
		return nil, err
	}
	return ran, nil
}

func (f *Flow) executeTurn(ctx context.Context, input jsontext.Value) (ran ranTurn, err error) {
	step, _ := kernel.StepFrom(ctx)
	order, err := parseTurnOrder(input)
	if err != nil || order.Conversation != step.Execution {
		return ranTurn{}, errTurnOrder
	}
	principal, err := f.config.Shared.principal(ctx, order.Asker)
	if err != nil {
		return ranTurn{}, fmt.Errorf("%w: %w", errTurnPrincipal, err)
	}
	runtime := step.Runtime()
	id := turnID(f.config.Keys.signing, order.Conversation, order.N)
	if g, ok := step.Input.(*given); ok {
		f.handed.put(id, g)
		defer f.handed.drop(id)
	}
	if step.Again {
		f.endFormer(ctx, runtime, order)
	}
	_, created, err := runtime.Start(ctx, kernel.By(principal), kernel.StartRequest{
		Flow: turnFlow(f.config.Name), ID: id, Input: input, ChildOf: step,
	})
	if err == nil && !created {
		err = f.checkAdopted(ctx, runtime.Store(), id, input, order)
	}
	if err != nil {
		return ranTurn{}, err
	}
	info, err := runtime.Wait(ctx, runtime.System(), id)
	if err != nil {
		return ranTurn{}, err
	}
	return turnResult(ctx, runtime, info)
}

// turnResult makes the result of the step of an execution that has stopped. One
// that cannot go on is ended: nobody will take its answer.
func turnResult(ctx context.Context, runtime *kernel.Runtime, info kernel.Info) (ranTurn, error) {
	ran := ranTurn{Execution: info.ID}
	switch info.State {
	case kernel.Completed:
		if err := json.Unmarshal(info.Output, &ran.answered); err != nil {
			return ranTurn{}, errTurnForged
		}
		return ran, nil
	case kernel.Cancelled:
		return ranTurn{}, errTurnCancelled
	case kernel.Stuck:
		if err := runtime.Cancel(ctx, runtime.System(), info.ID); err != nil {
			return ranTurn{}, err
		}
		return ranTurn{}, errTurnStuck
	}
	return ranTurn{}, errTurnForged
}

// endFormer cancels what a run before this one may have started under a key that
// was replaced meanwhile: the turn begins anew (C-41.2), and runs once.
func (f *Flow) endFormer(ctx context.Context, runtime *kernel.Runtime, order turnOrder) {
	for _, key := range f.config.Keys.valid[1:] {
		// There is seldom one, and another's would be no loss.
		_ = runtime.Cancel(ctx, runtime.System(), turnID(key, order.Conversation, order.N))
	}
}

// checkAdopted holds an execution that was there before against everything that
// makes it the one that this step would have started (C-35.5). The flow may be of
// another version.
func (f *Flow) checkAdopted(ctx context.Context, store journal.Store, id string, input jsontext.Value, order turnOrder) error {
	events, err := store.ReadRange(ctx, id, 0, 1, journal.Forward)
	if err != nil {
		return fmt.Errorf("read the execution of a turn: %w", err)
	}
	if len(events) == 0 || events[0].Kind != kernel.KindStarted {
		return errTurnForged
	}
	started, err := kernel.DecodeEvent[kernel.Started](events[0])
	if err != nil {
		return errTurnForged
	}
	found := started.Input.Clone()
	if found.Canonicalize() != nil || !bytes.Equal(found, input) ||
		started.Flow != turnFlow(f.config.Name) || started.Parent != order.Conversation ||
		started.Principal == nil || *started.Principal != order.Asker {
		return errTurnForged
	}
	return nil
}

// turnBegun is the recorded verdict at the beginning of a turn's execution, with
// the limits under which it runs.
type turnBegun struct {
	Genuine bool         `json:"genuine"`
	Limits  agent.Limits `json:"limits"`
}

const (
	idTurnBegun  = "turn#begun"
	idTurnAnswer = "turn#answer"
)

// runTurn is the body of a turn's execution, whose principal is the asker: what
// the agent does in it is judged as theirs (C-35.6). One that was started past the
// coordinator reads nothing and runs nothing.
func (f *Flow) runTurn(c *kernel.Context, input jsontext.Value) (any, error) {
	order, err := parseTurnOrder(input)
	if err != nil {
		return nil, err
	}
	begun, err := c.Decide(idTurnBegun, SourceSharing, func(context.Context) (turnBegun, error) {
		return turnBegun{
			Genuine: c.Execution() == turnID(f.config.Keys.signing, order.Conversation, order.N) && sameAsker(owner(c), &order.Asker),
			Limits:  f.config.limitsOf(&order.Asker),
		}, nil
	})
	if err != nil || !begun.Genuine {
		return nil, errTurnForged
	}
	g := c.Load(func(ctx context.Context) (*given, error) { return f.given(ctx, order) })
	if g.words == nil { // it is ours, and so is the watch
		g.words = new(stopwatch)
		defer g.watch.end()
	}
	return c.Decide(idTurnAnswer, SourceSharing, func(ctx context.Context) (answered, error) {
		return saying{
			flow: f, c: c, conversation: order.Conversation, listener: &order.Asker, limits: begun.Limits,
			asking: asking{n: order.N, turn: order.Turn, text: order.Text, history: g.history},
			signal: g.watch.interrupts(), trouble: new(trouble), words: g.words,
		}.answer(ctx), nil
	})
}

// given is what the coordinator has handed over; where it has not, because this
// execution was taken up again by itself, the same from its log.
func (f *Flow) given(ctx context.Context, order turnOrder) (*given, error) {
	step, _ := kernel.StepFrom(ctx)
	if g := f.handed.find(step.Execution); g != nil {
		return g, nil
	}
	past, err := readPast(ctx, step.Runtime().Store(), order)
	if err != nil {
		return nil, err
	}
	return &given{history: past.history(order), watch: cutRule{
		flow: f, conversation: order.Conversation, turn: order.Turn,
		owner: &order.Owner, asker: &order.Asker, shared: f.config.Shared, begun: past.replay.begunTurn,
	}.watch(order.Generation)}, nil
}
