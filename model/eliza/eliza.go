// Package eliza is a model that needs no key and no network: the mechanism
// with which Joseph Weizenbaum's program of 1966 held a conversation, with a
// script of our own.
//
// Call [New], and use it as any [model.Model]. It finds keywords in what the
// user wrote; the one of the highest rank picks a rule; a pattern of that rule
// takes the clause apart; a line, the next in turn, puts it together again with
// "my" and "your" exchanged. Some clauses are kept, and come back when a later
// text has no keyword.
//
// It keeps nothing between requests: it reads the conversation from the
// beginning each time, so the reply, turns and memory included, is a function
// of the request alone. Asked for the time it calls the tool [ClockTool],
// where the request offers it, and puts the result into a sentence.
package eliza

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/internal/pace"
	"github.com/parley-run/parley/taint"
)

// Config says how ELIZA speaks.
type Config struct {
	Delay time.Duration // before each word; 0 for none
}

// Model is ELIZA.
type Model struct {
	delay time.Duration
	mind  *mind
}

var _ model.Model = (*Model)(nil)

// New returns ELIZA.
func New(cfg Config) *Model { return &Model{delay: cfg.Delay, mind: newMind(rules())} }

// Stream answers the request word by word. It fails only when ctx is done.
// The usage that it reports counts words.
func (m *Model) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		text, clock := m.reply(req)
		finish := model.Finish{Reason: model.FinishStop}
		var last []model.Chunk
		if clock {
			text, finish.Reason = "", model.FinishCalls
			id := fmt.Sprintf("%s-%d", ClockTool, len(req.Messages))
			last = append(last, model.Chunk{Call: &model.Call{ID: id, Name: ClockTool, Args: jsontext.Value("{}")}})
		}
		finish.Usage = model.Usage{InputTokens: wordsIn(req), OutputTokens: pace.Count(text)}
		last = append(last, model.Chunk{Finish: &finish})
		for word := range pace.Words(text) {
			if err := pace.Wait(ctx, m.delay); err != nil {
				yield(model.Chunk{}, fmt.Errorf("eliza: %w", err))
				return
			}
			if !yield(model.Chunk{Text: word}, nil) {
				return
			}
		}
		for _, chunk := range last {
			if err := ctx.Err(); err != nil {
				yield(model.Chunk{}, fmt.Errorf("eliza: %w", err))
				return
			}
			if !yield(chunk, nil) {
				return
			}
		}
	}
}

// reply reads the conversation from its beginning and returns the answer to
// its end: a text, or a look at the clock.
func (m *Model) reply(req model.Request) (text string, clock bool) {
	s := newSession(m.mind)
	for i, msg := range req.Messages {
		if msg.Role != model.User {
			continue
		}
		if msg.Text != "" {
			text, clock = s.answer(strings.ToValidUTF8(withoutMarker(taint.Unfence(msg.Text)), " "))
			clock = clock && offersClock(req.Tools)
		} else if i == len(req.Messages)-1 {
			text, clock = tellTime(msg.Results), false
		}
	}
	return text, clock
}

// withoutMarker takes off what stands before the text of an edit: a conversation
// names the message that is edited there, and quotes it (C-27.8). ELIZA answers
// the new text. A quote that looks like the end of the marker leaves her the rest
// of it to hear, which is better than to miss what was said.
func withoutMarker(text string) string {
	if !strings.HasPrefix(text, `[This message edits the user's earlier message "`) {
		return text
	}
	if _, said, ok := strings.Cut(text, "\".]\n"); ok {
		return said
	}
	return text
}

// wordsIn counts the words of a request.
func wordsIn(req model.Request) int {
	n := pace.Count(req.System)
	for _, msg := range req.Messages {
		n += pace.Count(msg.Text)
		for _, result := range msg.Results {
			n += pace.Count(result.Text)
		}
	}
	return n
}
