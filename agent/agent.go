package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/parley-run/parley/fault"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
	"github.com/parley-run/parley/tool"
)

// Definition says what an agent is. All of it but Limits and ModelEffect is
// configuration that acts inside effects: changing it makes no log diverge. Under
// another ModelEffect a run that was cut in a model call is stuck until the effect
// has its former name again.
type Definition struct {
	ID     string     // the default of Request.LoopID
	System taint.Text // the operator's system prompt; never tainted (C-8.3)
	Model  model.Model
	Tools  []Tool

	// Toolsets are tools that come and go. A model meets a tool of a set under the
	// name of the set, '_' and its own name, as far as that is 64 letters, digits,
	// '_' and '-'; it is offered what is there when it is asked, 128 tools in all.
	Toolsets []tool.Set

	ModelEffect     kernel.EffectID // "model" if empty
	MaxOutputTokens int             // 0: the model's own limit
	ModelLimits     model.Limits    // of the time of a model call
	ToolTimeout     time.Duration   // of a tool call; 120 s if 0
	Limits          Limits

	Compactor kernel.EffectID // summarises what Limits.Compaction cuts, see [Compaction]; registered by the host
	Memory    Memory          // knows the facts of Limits.MemoryScope
	WriteBack kernel.EffectID // keeps what a run came to in Limits.WriteBackScope, see [Note]; registered by the host

	// OnDelta is called with each piece of a reply as the model says it, never
	// on a replay (C-9.4). The pieces of a turn are, one after another, the text
	// of its reply, unless that is cut or ends with a remark of the loop's.
	// kernel.StepFrom(ctx) tells whose it is, and whether an earlier attempt may
	// have said something already. Nil drops them.
	OnDelta func(ctx context.Context, d Delta)

	// OnModelCall is told of each call of the model when it has ended, never on a
	// replay. It is to return soon; a panic of it stops nothing.
	OnModelCall func(ModelCall)

	Log *slog.Logger // slog.Default if nil
}

// Delta is a piece of a reply.
type Delta struct {
	Text   string // whole code points, never empty
	Before string // what the earlier model calls of the run have said, those on record included
}

// Message is an earlier message that a run is given. An assistant's text is
// never tainted (C-8.5).
type Message struct {
	Role model.Role
	Text taint.Text

	encoded []byte // as NewMessage made it, nil otherwise
}

// NewMessage makes a message that is encoded once, for those who give the same
// message to many runs.
func NewMessage(role model.Role, text taint.Text) Message {
	encoded, err := encode(entry{Role: role, Text: text})
	if err != nil {
		encoded = nil // a run says what is wrong with it
	}
	return Message{Role: role, Text: text, encoded: encoded}
}

// Request asks for one run of the loop.
type Request struct {
	LoopID       string       // the prefix of the ids of the run, its own within the execution (C-10.2); Definition.ID if empty
	History      []Message    // earlier messages, oldest first; the caller sizes it (C-10.4)
	Prompt       string       // what is to be answered; never empty
	PromptOrigin taint.Origin // set for a prompt that is a third party's, which is then tainted (C-10.5)
	Signal       Signal       `json:"-"` // interrupts the run; nil never does
}

// Reply is what a run came to.
type Reply struct {
	Text   string      // everything that the model said in the run, at most 256 KiB
	Called []string    // the tools that were called, in order, with repeats (C-10.15)
	Usage  model.Usage // of all model calls together

	// FirstInput is the input tokens that the vendor reported for the first call, if
	// that had history and prompt as they were given; 0 where it reported none, and
	// where recalled facts or a summary were in it.
	FirstInput int
}

// ModelError says that a model call failed. Its code is that of the model's
// error, whose text goes to the observer only, see [Observe].
type ModelError struct{ Code string }

// Error names the code.
func (e *ModelError) Error() string { return "the model call failed: " + e.Code }

// Is makes errors.Is find the model's sentinel by its code.
func (e *ModelError) Is(target error) bool {
	sentinel, ok := target.(*fault.Error)
	return ok && sentinel.Code == e.Code
}

// FaultCode returns the code of the model's error.
func (e *ModelError) FaultCode() string { return e.Code }

// Effects returns the agent's effects: the model's, and one per tool and per set
// of tools. It refuses a definition that cannot work: without a model, with a
// tainted instruction ([taint.ErrTaintedContent]), with tools that do not fit, or
// with a limit that is none.
func (d Definition) Effects() ([]kernel.Effect, error) {
	prompt, err := newPrompter(d)
	if err != nil {
		return nil, err
	}
	if d.Model == nil {
		return nil, errors.New("an agent needs a model")
	}
	if err := d.checkLimits(); err != nil {
		return nil, err
	}
	effects := []kernel.Effect{d.newModelEffect(prompt)}
	for _, t := range d.Tools {
		effects = append(effects, d.newToolEffect(t))
	}
	for _, set := range d.Toolsets {
		effects = append(effects, d.newSetEffect(set))
	}
	return effects, nil
}

func (d Definition) modelEffect() kernel.EffectID {
	if d.ModelEffect == "" {
		return "model"
	}
	return d.ModelEffect
}

func (d Definition) log() *slog.Logger {
	if d.Log == nil {
		return slog.Default()
	}
	return d.Log
}

// Observe returns a context whose effects report what really went wrong: the
// error of a failed model or tool call, which no log, record or reply holds. The
// observer may be called from several goroutines.
func Observe(ctx context.Context, observer func(kernel.EffectID, error)) context.Context {
	return context.WithValue(ctx, observerKey{}, observer)
}

type observerKey struct{}

// Report gives an error to the observer of a context, if it has one.
func Report(ctx context.Context, effect kernel.EffectID, err error) {
	if observer, ok := ctx.Value(observerKey{}).(func(kernel.EffectID, error)); ok {
		observer(effect, fmt.Errorf("%s: %w", effect, err))
	}
}
