package agent

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"slices"

	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// transcript is the input of a model call: conversation data and nothing else.
// System prompt, tools, fences and normalising are added inside the effect, so
// that none of them is in the hash of the step.
type transcript struct {
	Messages []entry `json:"messages"`
	Said     string  `json:"said,omitzero"` // by the model since the prompt, in messages that a summary stands for
}

// draft is a transcript as the loop writes it: each message is encoded once, in
// the canonical form of the kernel, however many calls it is part of. It is the
// history, the head, and the rounds of calls and results. The head is what the
// run was asked, and the facts that were recalled for it: it is never cut.
type draft struct {
	transcript
	encoded [][]byte // of each message
	size    int      // of their JSON

	summarised int // how many messages at the beginning are a summary and its answer
	head       int // the first message of the head
	rounds     int // the first message behind it
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

// newDraft lays the history, what was recalled, and the prompt.
func newDraft(req Request, facts taint.Text) (draft, error) {
	var d draft
	d.Messages = make([]entry, 0, len(req.History)+2)
	d.encoded = make([][]byte, 0, len(req.History)+2)
	for _, message := range req.History {
		if err := d.lay(message); err != nil {
			return draft{}, err
		}
	}
	d.head = len(d.Messages)
	if !facts.IsZero() {
		if err := d.add(entry{Role: model.User, Text: facts}); err != nil {
			return draft{}, err
		}
	}
	prompt := taint.Plain(req.Prompt)
	if req.PromptOrigin != "" {
		prompt = taint.Tainted(req.Prompt, req.PromptOrigin)
	}
	err := d.add(entry{Role: model.User, Text: prompt})
	d.rounds = len(d.Messages)
	return d, err
}

// asGiven reports whether history and prompt stand alone and whole: nothing was
// recalled, and no summary stands for a part of them.
func (d *draft) asGiven() bool { return d.summarised == 0 && d.rounds-d.head == 1 }

// prompt is what is to be answered.
func (d *draft) prompt() taint.Text { return d.Messages[d.rounds-1].Text }

// lay appends an earlier message.
func (d *draft) lay(message Message) error {
	e := entry{Role: message.Role, Text: message.Text}
	if message.encoded == nil {
		return d.add(e)
	}
	d.append(e, message.encoded)
	return nil
}

// add appends an entry.
func (d *draft) add(e entry) error {
	encoded, err := encode(e)
	if err == nil {
		d.append(e, encoded)
	}
	return err
}

func (d *draft) append(e entry, encoded []byte) {
	d.Messages = append(d.Messages, e)
	d.encoded = append(d.encoded, encoded)
	d.size += len(encoded) + len(",")
}

// full reports whether the draft is more than a step can be given.
func (d *draft) full() bool { return d.size+encodedLen(d.Said) > maxTranscriptBytes }

// input is the transcript as it stands, for a step. What is added later does not
// change it.
func (d *draft) input() kernel.Canonical {
	return kernel.Canonical{
		JSON:  d.json(),
		Value: transcript{Messages: slices.Clip(d.Messages), Said: d.Said},
	}
}

// json is the canonical JSON of the transcript.
func (d *draft) json() []byte {
	const open, end = `{"messages":[`, `]}`
	data := make([]byte, 0, len(open)+d.size+len(end))
	data = append(data, open...)
	for i, message := range d.encoded {
		if i > 0 {
			data = append(data, ',')
		}
		data = append(data, message...)
	}
	if d.Said == "" {
		return append(data, end...)
	}
	said, _ := encode(d.Said) // which is valid UTF-8
	return fmt.Appendf(data, `],"said":%s}`, said)
}

// transcriptOf is the input of a model call.
func transcriptOf(step kernel.Step, input jsontext.Value) (transcript, error) {
	if t, ok := step.Input.(transcript); ok {
		return t, nil
	}
	var t transcript
	if err := json.Unmarshal(input, &t); err != nil {
		return transcript{}, fmt.Errorf("the input of a model call is no transcript: %w", err)
	}
	return t, nil
}

// encode gives the canonical JSON of an entry, or of a note.
func encode(value any) ([]byte, error) {
	encoded, err := json.Marshal(value)
	if err == nil {
		err = (*jsontext.Value)(&encoded).Canonicalize()
	}
	if err != nil {
		return nil, fmt.Errorf("a message has no JSON form: %w", err)
	}
	return encoded, nil
}

// said returns what the model has said since the prompt, which is the last text
// of a user.
func (t transcript) said() string {
	said := t.Said
	for _, e := range t.Messages {
		switch {
		case e.Role == model.User && !e.Text.IsZero():
			said = t.Said
		case e.Role == model.Assistant:
			text, _ := taint.TextOf(e.Text)
			said = join(said, text)
		}
	}
	return said
}
