package agent

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"

	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
	"github.com/parley-run/parley/tool"
)

// setCall is the input of a step that calls a tool of a set. All tools of a set
// share one effect, because effects are registered before anybody knows which
// tools there will be.
type setCall struct {
	Tool string         `json:"tool"`
	Args jsontext.Value `json:"args"`
}

// newSetEffect makes the effect of a set of tools.
func (d Definition) newSetEffect(set tool.Set) kernel.Effect {
	id := toolEffect(set.Name())
	return kernel.Effect{
		ID: id, Mode: set.Mode(),
		Run: func(ctx context.Context, input jsontext.Value) (any, error) {
			var asked setCall
			if err := json.Unmarshal(input, &asked); err != nil {
				return nil, fmt.Errorf("the input is no call: %w", err)
			}
			return d.perform(ctx, id, set.Mode(), taint.ToolOrigin(offerName(set.Name(), asked.Tool)),
				func(ctx context.Context) (Result, error) { return set.Call(ctx, asked.Tool, asked.Args.Clone()) }), nil
		},
	}
}
