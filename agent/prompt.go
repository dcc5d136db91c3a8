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
	req.Messages = make([]model.Message, 0, len(t.Messages)+1)
	fenced := len(p.tools) > 0
	for _, e := range t.Messages {
		message, err := boundary(e)
		if err != nil {
			return model.Request{}, err
		}
		fenced = fenced || e.Text.IsTainted()
		req.Messages = appendMessage(req.Messages, message)
	}
	if len(req.Messages) == 0 {
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

// appendMessage keeps the promises of a request: no message is empty, the user
// begins, and two neighbours of one role are one message (C-9.6).
func appendMessage(messages []model.Message, next model.Message) []model.Message {
	if next.Text == "" && len(next.Calls) == 0 && len(next.Results) == 0 {
		return messages
	}
	if len(messages) == 0 {
		if next.Role == model.Assistant {
			messages = append(messages, model.Message{Role: model.User, Text: "(no message)"})
		}
		return append(messages, next)
	}
	last := &messages[len(messages)-1]
	if last.Role != next.Role {
		return append(messages, next)
	}
	last.Text = join(last.Text, next.Text)
	last.Calls = append(last.Calls, next.Calls...)
	last.Results = append(last.Results, next.Results...)
	return messages
}
