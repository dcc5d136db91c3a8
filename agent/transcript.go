package agent

import (
	"encoding/json/v2"
	"fmt"

	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// transcript is the input of a model call: conversation data and nothing else.
// System prompt, tools, fences and normalising are added inside the effect, so
// that none of them is in the hash of the step.
type transcript struct {
	Messages []entry `json:"messages"`

	size int // of the JSON
}

// entry is one message of a transcript. A user entry has Text or Results, an
// assistant entry Text, Calls or both.
type entry struct {
	Role    model.Role `json:"role"`
	Text    taint.Text `json:"text,omitzero"`
	Calls   []Call     `json:"calls,omitempty"`
	Results []result   `json:"results,omitempty"`
}

// result answers a call.
type result struct {
	CallID string     `json:"callId"`
	Name   string     `json:"name"`
	Text   taint.Text `json:"text"`
	Failed bool       `json:"failed,omitzero"`
}

// maxTranscriptBytes is what the kernel takes as the input of a step, less a
// little for what stands around the messages.
const maxTranscriptBytes = kernel.MaxPayloadBytes - 1<<10

// newTranscript lays the history and the prompt.
func newTranscript(req Request) (transcript, error) {
	var t transcript
	for _, message := range req.History {
		if err := t.add(entry{Role: message.Role, Text: message.Text}); err != nil {
			return transcript{}, err
		}
	}
	prompt := taint.Plain(req.Prompt)
	if req.PromptOrigin != "" {
		prompt = taint.Tainted(req.Prompt, req.PromptOrigin)
	}
	return t, t.add(entry{Role: model.User, Text: prompt})
}

// add appends an entry and keeps count of the size.
func (t *transcript) add(e entry) error {
	encoded, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("a message has no JSON form: %w", err)
	}
	t.Messages = append(t.Messages, e)
	t.size += len(encoded) + len(",")
	return nil
}

// full reports whether the transcript is more than a step can be given.
func (t *transcript) full() bool { return t.size > maxTranscriptBytes }

// said returns what the model has said since the prompt, which is the last text
// of a user.
func (t *transcript) said() string {
	said := ""
	for _, e := range t.Messages {
		switch {
		case e.Role == model.User && !e.Text.IsZero():
			said = ""
		case e.Role == model.Assistant:
			text, _ := taint.TextOf(e.Text)
			said = join(said, text)
		}
	}
	return said
}
