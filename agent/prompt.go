package agent

import (
	"errors"
	"fmt"
	"slices"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// prompter makes model requests of transcripts: the prompt boundary.
type prompter struct {
	system    string
	tools     []model.Tool
	maxOutput int
}

// newPrompter holds every instruction against the taint of its text (C-8.3).
func newPrompter(d Definition) (*prompter, error) {
	system, err := taint.Instruction(d.System)
	if err != nil {
		return nil, fmt.Errorf("system prompt: %w", err)
	}
	p := &prompter{system: system, maxOutput: d.MaxOutputTokens}
	for _, tool := range d.Tools {
		offer, err := tool.offer()
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(p.tools, func(other model.Tool) bool { return other.Name == offer.Name }) {
			return nil, fmt.Errorf("two tools are named %q", offer.Name)
		}
		p.tools = append(p.tools, offer)
	}
	return p, nil
}

// has reports whether the agent has a tool of that name.
func (p *prompter) has(name string) bool {
	return slices.ContainsFunc(p.tools, func(tool model.Tool) bool { return tool.Name == name })
}

// request is what goes to the model. Where something is fenced, or may come to
// be in the same turn, the system prompt explains the fence.
func (p *prompter) request(t transcript) (model.Request, error) {
	req := model.Request{System: p.system, Tools: p.tools, MaxOutputTokens: p.maxOutput}
	messages := make([]model.Message, len(t.Messages))
	fenced := len(p.tools) > 0
	for i, e := range t.Messages {
		message, err := boundary(e)
		if err != nil {
			return model.Request{}, err
		}
		fenced = fenced || e.Text.IsTainted()
		messages[i] = message
	}
	if req.Messages = normalise(messages); len(req.Messages) == 0 {
		return model.Request{}, errors.New("a request without a message")
	}
	if fenced {
		req.System = join(req.System, taint.Explanation)
	}
	return req, nil
}

// boundary passes one entry over the prompt boundary: what is tainted is
// fenced and stands in a user position (C-8.4, C-8.5).
func boundary(e entry) (model.Message, error) {
	message := model.Message{Role: e.Role}
	if e.Role == model.Assistant {
		text, err := taint.Assistant(e.Text)
		if err != nil {
			return model.Message{}, err
		}
		message.Text = text
		for _, call := range e.Calls {
			message.Calls = append(message.Calls, model.Call{ID: call.ID, Name: call.Name, Args: call.Args})
		}
		return message, nil
	}
	if e.Role != model.User {
		return model.Message{}, errors.New("a message of neither the user nor the assistant")
	}
	message.Text = taint.Fence(e.Text)
	for _, r := range e.Results {
		message.Results = append(message.Results, model.Result{
			CallID: r.CallID, Name: r.Name, Text: taint.Fence(r.Text), Failed: r.Failed,
		})
	}
	return message, nil
}
