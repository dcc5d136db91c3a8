package remote

import (
	"encoding/json/jsontext"
	"fmt"
	"math"
	"strings"

	"charm.land/fantasy"

	"github.com/parley-run/parley/model"
)

// maxUnseenBytes bounds the thoughts and the arguments of a reply together:
// nobody downstream can, as arguments are not seen before they are whole. More
// would not fit into an event of the journal.
const maxUnseenBytes = 1 << 20

// reply is a reply on its way from fantasy's parts to our chunks.
type reply struct {
	yield  func(model.Chunk, error) bool
	text   joiner
	calls  []model.Call
	unseen int // bytes of thoughts and arguments

	said   bool // there was a text
	behind bool // what comes next stands behind a call
}

func (r *reply) emit(chunk model.Chunk) error {
	if !r.yield(chunk, nil) {
		return errLeft
	}
	return nil
}

// say yields a text, or a sign of life. A reply's text is all of its words in
// their order (T60); those before a call and those behind it are two paragraphs.
func (r *reply) say(text string) error {
	if text != "" {
		if r.said && r.behind {
			text = "\n\n" + text
		}
		r.said, r.behind = true, false
	}
	return r.emit(model.Chunk{Text: text})
}

// think takes a part that is no text: a thought, a piece of a call, or nothing
// but a sign of life, which it is for whoever limits the silence of a model.
func (r *reply) think(part fantasy.StreamPart) error {
	r.behind = r.behind || part.Type == fantasy.StreamPartTypeToolInputStart
	r.unseen += len(part.Delta) + len(part.ToolCallInput)
	if r.unseen > maxUnseenBytes {
		return fmt.Errorf("%w: its thoughts and calls are larger than %d bytes", model.ErrMalformed, maxUnseenBytes)
	}
	return r.say("")
}

// call keeps a call until the end mark, which says whether it is whole.
func (r *reply) call(part fantasy.StreamPart) error {
	if part.ProviderExecuted {
		return nil
	}
	args := joined(part.ToolCallInput)
	if strings.TrimSpace(args) == "" {
		args = "{}"
	}
	r.behind = true
	r.calls = append(r.calls, model.Call{ID: joined(part.ID), Name: joined(part.ToolCallName), Args: jsontext.Value(args)})
	return r.say("")
}

// finish yields what is left, and the end mark.
func (r *reply) finish(part fantasy.StreamPart) error {
	if rest := r.text.rest(); rest != "" {
		if err := r.say(rest); err != nil {
			return err
		}
	}
	reason, err := r.reason(part.FinishReason)
	if err != nil {
		return err
	}
	if reason == model.FinishCalls {
		if err := r.emitCalls(); err != nil {
			return err
		}
	}
	return r.emit(model.Chunk{Finish: &model.Finish{Reason: reason, Usage: model.Usage{
		InputTokens:  tokens(part.Usage.InputTokens, part.Usage.CacheReadTokens, part.Usage.CacheCreationTokens),
		OutputTokens: tokens(part.Usage.OutputTokens),
	}}})
}

// reason maps a reason that fantasy knows. A reply that was stopped before its
// end may hold half a call, so its calls are dropped. An unknown reason may
// hide a cut: it makes the reply malformed.
func (r *reply) reason(reason fantasy.FinishReason) (model.FinishReason, error) {
	switch reason {
	case fantasy.FinishReasonStop, fantasy.FinishReasonToolCalls:
		if len(r.calls) > 0 {
			return model.FinishCalls, nil
		}
		if reason == fantasy.FinishReasonToolCalls {
			return "", fmt.Errorf("%w: it waits for tools, and called none", model.ErrMalformed)
		}
		return model.FinishStop, nil
	case fantasy.FinishReasonLength:
		return model.FinishLength, nil
	case fantasy.FinishReasonContentFilter:
		return model.FinishFiltered, nil
	case fantasy.FinishReasonError:
		return "", fmt.Errorf("%w: it gave up in mid-stream", model.ErrUnavailable)
	default:
		return "", fmt.Errorf("%w: it ended for an unknown reason", model.ErrMalformed)
	}
}

// emitCalls yields the calls, each with an id of its own.
func (r *reply) emitCalls() error {
	ids := map[string]bool{}
	for i, call := range r.calls {
		if call.Name == "" {
			return fmt.Errorf("%w: call %d names no tool", model.ErrMalformed, i)
		}
		if !call.Args.IsValid() || call.Args.Kind() != jsontext.KindBeginObject {
			return fmt.Errorf("%w: the arguments of call %d are no JSON object", model.ErrMalformed, i)
		}
		if call.ID == "" || ids[call.ID] {
			call.ID = fmt.Sprintf("call-%d", i+1)
			for ids[call.ID] {
				call.ID += "x"
			}
		}
		ids[call.ID] = true
		if err := r.emit(model.Chunk{Call: &call}); err != nil {
			return err
		}
	}
	return nil
}

// tokens adds up what a service counted, and mistrusts it.
func tokens(counts ...int64) int {
	sum := int64(0)
	for _, n := range counts {
		sum += min(max(n, 0), math.MaxInt32)
	}
	return int(min(sum, math.MaxInt32))
}
