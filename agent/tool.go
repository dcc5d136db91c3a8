package agent

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"time"

	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
	"github.com/parley-run/parley/tool"
)

// Tool is something that the model may call. Its effect is "tool." and its
// name, which is what a grant names.
type Tool struct {
	Name        string         // 1 to 64 letters, digits, '_' and '-'
	Description taint.Text     // an instruction: never tainted (C-8.3)
	Schema      jsontext.Value // JSON Schema of the arguments, see [tool.NewSchema]; any object where nil

	// Mode says what a crash in mid-call means. Once, the default: the call is
	// never made a second time, and the model is told that its outcome is
	// unknown. Repeatable: it is made again.
	Mode kernel.Mode

	// Run does it. args is one JSON object that fits the schema. ctx ends with the
	// tool's time or with the execution; kernel.StepFrom(ctx) names the step, whose
	// execution and id make an idempotency key. An error fails the call; the model
	// is not told its text. Where it wraps [context.DeadlineExceeded] or
	// [kernel.ErrOutcomeUnknown] and the tool runs once, the model is told that the
	// outcome is unknown.
	Run func(ctx context.Context, args jsontext.Value) (Result, error)
}

// Result is what a tool tells the model.
type Result = tool.Result

// DefaultToolTimeout is how long a tool call may take.
const DefaultToolTimeout = 120 * time.Second

// toolEffect names the effect of a tool.
func toolEffect(name string) kernel.EffectID { return kernel.EffectID("tool." + name) }

// offer is the tool as a model is told of it, and the schema of its arguments.
func (t Tool) offer() (model.Tool, *tool.Schema, error) {
	if t.Name == "" || word(t.Name) != t.Name {
		return model.Tool{}, nil, fmt.Errorf("tool name %q has other than 1 to %d letters, digits, '_' and '-'", word(t.Name), maxWord)
	}
	if t.Run == nil {
		return model.Tool{}, nil, fmt.Errorf("tool %q does nothing", t.Name)
	}
	description, err := taint.Instruction(t.Description)
	if err != nil {
		return model.Tool{}, nil, fmt.Errorf("description of tool %q: %w", t.Name, err)
	}
	var schema *tool.Schema
	if t.Schema != nil {
		if schema, err = tool.NewSchema(t.Schema); err != nil {
			return model.Tool{}, nil, fmt.Errorf("tool %q: %w", t.Name, err)
		}
	}
	return model.Tool{Name: t.Name, Description: description, Schema: rawSchema(schema)}, schema, nil
}

// newToolEffect makes the effect of a tool.
func (d Definition) newToolEffect(t Tool) kernel.Effect {
	id := toolEffect(t.Name)
	return kernel.Effect{
		ID: id, Mode: t.Mode,
		Run: func(ctx context.Context, args jsontext.Value) (any, error) {
			return d.perform(ctx, id, t.Mode, taint.ToolOrigin(t.Name),
				func(ctx context.Context) (Result, error) { return t.Run(ctx, args.Clone()) }), nil
		},
	}
}
