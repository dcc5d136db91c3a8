package model

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Validate reports how the request breaks its contract, as an error that wraps
// [ErrRefused]: a vendor would refuse it, or misunderstand it, which is worse.
// The error repeats no text.
func (r Request) Validate() error {
	if err := r.validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

func (r Request) validate() error {
	if len(r.Messages) == 0 || r.Messages[len(r.Messages)-1].Role != User {
		return errors.New("the request does not end with a user message")
	}
	if !utf8.ValidString(r.System) {
		return errors.New("the system prompt is not valid UTF-8")
	}
	var open []Call // calls of the message before
	for i, msg := range r.Messages {
		want := User
		if i%2 == 1 {
			want = Assistant
		}
		if msg.Role != want {
			return fmt.Errorf("message %d has role %q, want %q", i, msg.Role, want)
		}
		if err := msg.validate(open); err != nil {
			return fmt.Errorf("message %d (%s): %w", i, msg.Role, err)
		}
		open = msg.Calls
	}
	names := map[string]bool{}
	for i, tool := range r.Tools {
		if tool.Name == "" || names[tool.Name] {
			return fmt.Errorf("tool %d has no name of its own", i)
		}
		names[tool.Name] = true
		if !isObject(tool.Schema) {
			return fmt.Errorf("tool %q: the schema is no JSON object", tool.Name)
		}
	}
	return nil
}

// validate reports what is wrong with a message that follows one with the
// given calls.
func (m Message) validate(open []Call) error {
	if m.Text == "" && len(m.Calls) == 0 && len(m.Results) == 0 {
		return errors.New("the message is empty")
	}
	if !utf8.ValidString(m.Text) {
		return errors.New("the text is not valid UTF-8")
	}
	if m.Role == User && len(m.Calls) > 0 || m.Role == Assistant && len(m.Results) > 0 {
		return errors.New("calls and results stand in the wrong role")
	}
	if len(m.Results) != len(open) {
		return fmt.Errorf("%d results for %d calls", len(m.Results), len(open))
	}
	unanswered := map[string]bool{}
	for _, call := range open {
		unanswered[call.ID] = true
	}
	for i, result := range m.Results {
		if !unanswered[result.CallID] {
			return fmt.Errorf("result %d answers no call, or one that is answered", i)
		}
		delete(unanswered, result.CallID)
		if !utf8.ValidString(result.Text) {
			return fmt.Errorf("result %d is not valid UTF-8", i)
		}
	}
	ids := map[string]bool{}
	for i, call := range m.Calls {
		if call.ID == "" || ids[call.ID] || call.Name == "" {
			return fmt.Errorf("call %d has no id of its own, or no name", i)
		}
		ids[call.ID] = true
		if !isObject(call.Args) {
			return fmt.Errorf("call %d: the arguments are no JSON object", i)
		}
	}
	return nil
}

func isObject(value jsontext.Value) bool {
	return value.IsValid() && value.Kind() == jsontext.KindBeginObject
}
