package conversation_test

import (
	"context"
	"encoding/json/jsontext"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
)

// recall is a memory that counts what it is asked.
type recall struct{ calls *tally }

func (r recall) Recall(_ context.Context, scope, query string) ([]agent.Fact, error) {
	r.calls.add("recall")
	return []agent.Fact{{Text: "In the " + scope + " somebody said: " + query}}, nil
}

// beside gives an agent a memory, a compaction and a write-back, and returns the
// host's effects for them (C-10.12, C-10.13).
func beside(definition *agent.Definition, calls *tally) []kernel.Effect {
	definition.Memory, definition.Compactor, definition.WriteBack = recall{calls}, "summarize", "keep"
	definition.Limits = agent.Limits{Compaction: agent.Compaction{Messages: 8}, MemoryScope: "garden", WriteBackScope: "garden"}
	run := func(name kernel.EffectID, mode kernel.Mode) kernel.Effect {
		return kernel.Effect{ID: name, Mode: mode, Run: func(_ context.Context, input jsontext.Value) (any, error) {
			calls.add(string(name))
			text, err := taint.SummarizerText(input)
			return map[string]string{"summary": text}, err
		}}
	}
	return []kernel.Effect{run("summarize", kernel.Repeatable), run("keep", kernel.Once)}
}
