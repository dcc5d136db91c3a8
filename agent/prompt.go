package agent

import (
	"errors"
	"fmt"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// prompter makes model requests of transcripts: the prompt boundary.
type prompter struct {
	system    string
	shelf     *shelf
	maxOutput int
}

// newPrompter holds every instruction against the taint of its text (C-8.3).
func newPrompter(d Definition) (*prompter, error) {
	system, err := taint.Instruction(d.System)
	if err != nil {
		return nil, fmt.Errorf("system prompt: %w", err)
	}
	tools, err := newShelf(d)
	if err != nil {
		return nil, err
	}
	return &prompter{system: system, shelf: tools, maxOutput: d.MaxOutputTokens}, nil
}

// request is what goes to the model. Where something is fenced, or may come to
// be in the same turn, the system prompt explains the fence.
func (p *prompter) request(t transcript, offered catalogue) (model.Request, error) {
	req := model.Request{System: p.system, Tools: offered.tools, MaxOutputTokens: p.maxOutput}
	messages := make([]model.Message, len(t.Messages))
	fenced := len(offered.tools) > 0 || len(p.shelf.sets) > 0
	for i, e := range t.Messages {
		message, err := boundary(e)
		if err != nil {
			return model.Request{}, err
		}
		fenced = fenced || e.Text.IsTainted() || len(e.Results) > 0
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
