package conversation_test

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/kernel"
)

// budgeted is a dialogue whose turns leave the window by number and by tokens,
// with a message that fits nowhere, and with summaries that succeed and fail.
func budgeted() plan {
	return plan{
		script: `when replies 3
  say "With three replies before it: "
  reply
when replies 2
  say "With two: "
  call look {}
then
  results
otherwise
  reply`,
		settings: conversation.Settings{
			MaxWindowTurns: 2,
			Budget:         conversation.Budget{ContextWindow: 900, ReserveOutputTokens: 300, MaxSummaryTokens: 20, Summarizer: "summarize"},
		},
		say: func(h *house) {
			for i, text := range []string{
				"one", "two", "unspeakable", "four", strings.Repeat("never ", 500), "five", strings.Repeat("much ", 250), "six", "seven",
			} {
				h.ask(fmt.Sprint(i), text)
			}
		},
	}
}

// summing is a summarizer whose summaries follow from what it is given; it fails
// where that has the word "unspeakable".
func summing(calls *tally) kernel.Effect {
	return kernel.Effect{ID: "summarize", Mode: kernel.Repeatable, Run: func(ctx context.Context, input jsontext.Value) (any, error) {
		calls.add("summarize")
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if bytes.Contains(input, []byte("unspeakable")) {
			return nil, errors.New("it cannot be said")
		}
		return agent.Summary{Text: fmt.Sprintf("%d bytes ending in %s", len(input), input[max(0, len(input)-40):])}, nil
	}}
}
