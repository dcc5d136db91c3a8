package agent

import (
	"cmp"
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"time"

	"github.com/parley-run/parley/fault"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// Tool is something that the model may call. Its effect is "tool." and its
// name, which is what a grant names.
type Tool struct {
	Name        string         // 1 to 64 letters, digits, '_' and '-'
	Description taint.Text     // an instruction: never tainted (C-8.3)
	Schema      jsontext.Value // JSON Schema of the arguments, an object; any object where nil

	// Mode says what a crash in mid-call means. Once, the default: the call is
	// never made a second time, and the model is told that its outcome is
	// unknown. Repeatable: it is made again.
	Mode kernel.Mode

	// Run does it. args is one JSON object, not checked against the schema.
	// ctx ends with the tool's time or with the execution; kernel.StepFrom(ctx)
	// names the step, whose execution and id make an idempotency key. An error
	// fails the call; the model is not told its text.
	Run func(ctx context.Context, args jsontext.Value) (Result, error)
}

// Result is what a tool tells the model. A Failed one is the tool's own way to
// say what went wrong.
type Result struct {
	Text   string // cut at 256 KiB
	Failed bool
}

// DefaultToolTimeout is how long a tool call may take.
const DefaultToolTimeout = 120 * time.Second

// toolEffect names the effect of a tool.
func toolEffect(name string) kernel.EffectID { return kernel.EffectID("tool." + name) }

// offer is the tool as a model is told of it.
func (t Tool) offer() (model.Tool, error) {
	if t.Name == "" || word(t.Name) != t.Name {
		return model.Tool{}, fmt.Errorf("tool name %q has other than 1 to %d letters, digits, '_' and '-'", word(t.Name), maxWord)
	}
	if t.Run == nil {
		return model.Tool{}, fmt.Errorf("tool %q does nothing", t.Name)
	}
	description, err := taint.Instruction(t.Description)
	if err != nil {
		return model.Tool{}, fmt.Errorf("description of tool %q: %w", t.Name, err)
	}
	schema := t.Schema
	if schema == nil {
		schema = jsontext.Value(`{"type":"object"}`)
	}
	if !isObject(schema) {
		return model.Tool{}, fmt.Errorf("schema of tool %q is no JSON object", t.Name)
	}
	return model.Tool{Name: t.Name, Description: description, Schema: schema}, nil
}

// newToolEffect makes the effect of a tool. Whatever becomes of a call is a
// value, so that a re-run is served it and takes the same way.
func (d Definition) newToolEffect(tool Tool) kernel.Effect {
	id, timeout := toolEffect(tool.Name), cmp.Or(d.ToolTimeout, DefaultToolTimeout)
	return kernel.Effect{
		ID: id, Mode: tool.Mode,
		Run: func(ctx context.Context, args jsontext.Value) (any, error) {
			did, err := tool.call(ctx, args, timeout)
			if err != nil {
				step, _ := kernel.StepFrom(ctx)
				d.log().Warn("a tool failed", "tool", tool.Name, "execution", step.Execution, "step", step.ID, "code", fault.CodeOf(err))
				observe(ctx, id, err)
			}
			return did, nil
		},
	}
}

// call runs the tool within its time. The error is for the operator.
func (t Tool) call(ctx context.Context, args jsontext.Value, timeout time.Duration) (Did, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer := make(chan Result, 1)
	err := guarded(ctx, func() error {
		result, err := t.Run(ctx, args.Clone())
		answer <- result
		return err
	})
	switch {
	case err == nil:
		result := <-answer
		text := cut(scrub(result.Text), resultCut)
		return Did{Text: taint.Tainted(text, taint.ToolOrigin(t.Name)), Failed: result.Failed}, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && t.Mode == kernel.Once:
		return told(tellUnknown), err // cut in the middle, it may have acted
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return told(tellTimeout), err
	}
	return told(tellFailed), err
}
