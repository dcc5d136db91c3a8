// Package model is what a model is: a request in, a stream of chunks out.
//
// Implement [Model], run modeltest.Run on it, and hand it to the agent. Two
// models ship with Parley (model/eliza, model/script); vendors have packages
// of their own, so that a program links only what it uses.
//
// The spec says "provider" where the code says model.
package model

import (
	"context"
	"encoding/json/jsontext"
	"iter"
	"time"

	"github.com/parley-run/parley/fault"
)

// Model answers requests. One Model serves any number of requests at once and
// keeps nothing between them.
type Model interface {
	// Stream sends the request and yields the reply as it comes. The last chunk
	// of a whole reply has Finish set and nothing follows it; a sequence that
	// ends without one was cut, and [Collect] reports it as [ErrCut]. An error
	// is yielded once, as the last element. When ctx is done the sequence ends
	// soon, with an error that wraps ctx.Err(); leaving it earlier releases all
	// that it holds.
	Stream(ctx context.Context, req Request) iter.Seq2[Chunk, error]
}

// Counter is a Model that counts tokens exactly (C-9.5).
type Counter interface {
	Count(ctx context.Context, text string) (int, error)
}

// Request is what a model is asked. Roles alternate, beginning and ending with
// User; no message is empty; each tool call is answered in the next message
// (C-9.6). [Request.Validate] holds it against that.
type Request struct {
	System          string    `json:"system,omitzero"`
	Messages        []Message `json:"messages"`
	Tools           []Tool    `json:"tools,omitempty"`
	MaxOutputTokens int       `json:"maxOutputTokens,omitzero"` // 0: the model's own limit
}

// Role says whose message it is.
type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one message of a request. A User message has Text, Results, or
// both (results come first); an Assistant message has Text, Calls, or both
// (text comes first).
type Message struct {
	Role    Role     `json:"role"`
	Text    string   `json:"text,omitzero"`
	Calls   []Call   `json:"calls,omitempty"`
	Results []Result `json:"results,omitempty"`
}

// Call is a tool call that a model asks for.
type Call struct {
	ID   string         `json:"id"`   // unique within its reply
	Name string         `json:"name"` // of the tool
	Args jsontext.Value `json:"args"` // one JSON object
}

// Result answers a [Call].
type Result struct {
	CallID string `json:"callId"`
	Name   string `json:"name"`
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitzero"` // the text says why
}

// Tool is a tool that the model may call.
type Tool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Schema      jsontext.Value `json:"schema"` // JSON Schema of the arguments, of type object
}

// Chunk is one element of a reply in progress. Exactly one of Text, Call and
// Finish is set, but for an empty text, which may be skipped.
type Chunk struct {
	Text   string // a delta; whole code points, valid UTF-8
	Call   *Call  // a whole call, its arguments valid JSON
	Finish *Finish
}

// Finish is the end mark of a whole reply.
type Finish struct {
	Reason FinishReason
	Usage  Usage
}

// FinishReason says why a model stopped.
type FinishReason string

const (
	FinishStop     FinishReason = "stop"     // it said all it wanted
	FinishCalls    FinishReason = "calls"    // it waits for tool results
	FinishLength   FinishReason = "length"   // it hit its output limit
	FinishFiltered FinishReason = "filtered" // the vendor's content filter cut it
)

// Usage is what the vendor reports, 0 where it reports nothing.
type Usage struct {
	InputTokens  int `json:"inputTokens,omitzero"`
	OutputTokens int `json:"outputTokens,omitzero"`
}

// Reply is a whole reply.
type Reply struct {
	Text   string       `json:"text,omitzero"`
	Calls  []Call       `json:"calls,omitempty"`
	Reason FinishReason `json:"reason"`
	Usage  Usage        `json:"usage,omitzero"`
}

// The typed errors of a model. What a vendor said stays in the text of the
// wrapping error, which goes to the operator only.
var (
	ErrCut         = fault.New("MODEL_CUT", "the reply ended without its end mark")
	ErrMalformed   = fault.New("MODEL_MALFORMED", "the model sent something that is no reply")
	ErrRefused     = fault.New("MODEL_REFUSED", "the model's service refused the request")
	ErrUnavailable = fault.New("MODEL_UNAVAILABLE", "the model's service cannot be reached or is overloaded")
	ErrRateLimited = fault.New("MODEL_RATE_LIMITED", "the model's service asks to slow down")
	ErrOverflow    = fault.New("MODEL_OVERFLOW", "the request does not fit into the model's context window")
	ErrTimeout     = fault.New("MODEL_TIMEOUT", "the model did not answer in time")
)

// InterruptedError says that a call was cut from outside, and what the model had
// said until then (C-9.2).
type InterruptedError struct{ Partial string }

// Error names what happened.
func (e *InterruptedError) Error() string { return "the model call was interrupted" }

// FaultCode is the wire code.
func (e *InterruptedError) FaultCode() string { return "LLM_INTERRUPTED" }

// RetryError says that the request may be tried again after a while. It wraps
// one of the errors above. A model never tries again by itself.
type RetryError struct {
	Err   error
	After time.Duration // as the service asked; 0 where it did not say
}

// Error returns the text of the wrapped error.
func (e *RetryError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *RetryError) Unwrap() error { return e.Err }

// Collect reads a whole reply. Each non-empty text delta goes to onDelta
// first, if it is not nil. On an error the text so far is returned with it.
func Collect(chunks iter.Seq2[Chunk, error], onDelta func(string)) (Reply, error) {
	var reply Reply
	var text []byte
	finished := false
	for chunk, err := range chunks {
		if err != nil {
			reply.Text = string(text)
			return reply, err
		}
		switch {
		case chunk.Finish != nil:
			finished = true
			reply.Reason, reply.Usage = chunk.Finish.Reason, chunk.Finish.Usage
		case chunk.Call != nil:
			reply.Calls = append(reply.Calls, *chunk.Call)
		case chunk.Text != "":
			text = append(text, chunk.Text...)
			if onDelta != nil {
				onDelta(chunk.Text)
			}
		}
	}
	reply.Text = string(text)
	if !finished {
		return reply, ErrCut
	}
	return reply, nil
}
