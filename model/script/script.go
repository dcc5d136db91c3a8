// Package script is a model that plays a file: for tests, demos and
// benchmarks, without key or network (C-9.7).
//
// Call [Parse] or [Load], and use the result as any [model.Model]. A file is
// read line by line. White space at the ends of a line, empty lines, and what
// follows a # between two words count for nothing. Texts are quoted as in Go.
//
//	when has "weather"                # the first rule whose conditions all hold
//	  say "Let me look. "             # one delta
//	  call weather {"city": "Oslo"}   # a tool call
//	then                              # the next round, after the tool's result
//	  words "It will rain." 20ms      # a delta per word, 20 ms before each
//	  usage 12 4
//
//	when is "Hello" replies 0         # the whole text, in the first turn
//	  say "Good morning."
//	  finish stop
//
//	when has "burst"
//	  say "One moment"
//	  fail rate-limited after 2s      # an error, here in mid-stream
//
//	otherwise
//	  reply                           # the user's own text
//
// Conditions: is "T" and has "T" look at the last text of the user, out of its
// fence; replies N counts the assistant messages before that text; system "T"
// is contained in the system prompt; tool "NAME" is offered. In round k of a
// turn, which is the number of assistant messages after that text, only a rule
// with k times then can match. Where no rule does, the user's text is replied.
//
// Actions: say "T"; words "T" [DELAY]; repeat N "T" [DELAY]; forever "T"
// [DELAY]; reply [DELAY]; results [DELAY], which says what the tools answered;
// call NAME {…}; wait TIME; deaf, after which the reply does not notice that
// its context is done; usage IN OUT; and what ends a reply: finish [stop |
// calls | length | filtered]; end, which leaves out the end mark; fail NAME
// [after TIME] ["T"], where NAME is cut, malformed, refused, unavailable,
// rate-limited, overflow or timeout, and after makes a [model.RetryError]. A
// reply that none of these ends finishes with calls if it holds a call, else
// with stop.
//
// A model keeps nothing between requests: its reply is a function of the
// request. docs/script.md says all this at more length.
package script

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/parley-run/parley/model"
)

// MaxBytes is the largest size of a script.
const MaxBytes = 1 << 20

// Model plays a script.
type Model struct{ rules []rule }

var _ model.Model = (*Model)(nil)

// rule is what a script says to some requests: a block of actions for each
// round of a turn.
type rule struct {
	conditions []condition
	rounds     [][]action
}

// Load reads the script in a file.
func Load(path string) (*Model, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open script: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	return Parse(path, data)
}

// Stream plays the rule that the request meets. When ctx is done it ends with
// an error that wraps ctx.Err(), unless the script is deaf. A request that
// [model.Request.Validate] refuses gets its error and nothing else, so that a
// test finds what a vendor would refuse (C-9.6).
func (m *Model) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if err := req.Validate(); err != nil {
			yield(model.Chunk{}, fmt.Errorf("script: %w", err))
			return
		}
		p := &player{scene: sceneOf(req), yield: yield}
		for _, act := range m.block(p.scene) {
			if !act(ctx, p) {
				return
			}
			if p.deaf {
				ctx = context.WithoutCancel(ctx)
			}
		}
		p.finish(ctx, p.reason())
	}
}

// block returns the actions that answer a request.
func (m *Model) block(s scene) []action {
	for _, r := range m.rules {
		if r.meets(s) {
			return r.rounds[s.round]
		}
	}
	return []action{reply(0)}
}

func (r rule) meets(s scene) bool {
	if s.round >= len(r.rounds) {
		return false
	}
	for _, holds := range r.conditions {
		if !holds(s) {
			return false
		}
	}
	return true
}
