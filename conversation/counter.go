package conversation

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/parley-run/parley/model"
)

// TokenCounter measures texts for the budget (C-20.7). It is configuration: it
// acts where something is decided for the first time, and a replay asks it
// nothing.
type TokenCounter interface {
	// Count returns how many tokens a text has. It may block, and returns soon
	// after ctx has ended. Where it fails the heuristic counts that text
	// (C-20.15).
	Count(ctx context.Context, text string) (int, error)
	// PerMessage is what a message costs beside its text. Where it panics or is
	// negative, it is that of the heuristic.
	PerMessage() int
}

// HeuristicTokenCounter is the default (C-20.8): a quarter of the ASCII
// characters, rounded up, and one for every other code point. It counts scripts
// that tokenizers take nearly by the character too high rather than too low.
type HeuristicTokenCounter struct{}

// Count returns the count of the text. It never fails.
func (HeuristicTokenCounter) Count(_ context.Context, text string) (int, error) {
	return heuristicCount(text), nil
}

// PerMessage is 4: a role, and the marks around a message.
func (HeuristicTokenCounter) PerMessage() int { return 4 }

func heuristicCount(text string) int {
	ascii, others := 0, 0
	for _, c := range text {
		if c < utf8.RuneSelf {
			ascii++
		} else {
			others++
		}
	}
	return (ascii+3)/4 + others
}

// ExactTokenCounter counts with a model that can (C-9.5).
type ExactTokenCounter struct {
	Model    model.Counter
	Overhead int // of a message; 4 if 0
}

// Count asks the model.
func (e ExactTokenCounter) Count(ctx context.Context, text string) (int, error) {
	return e.Model.Count(ctx, text)
}

// PerMessage is the overhead.
func (e ExactTokenCounter) PerMessage() int {
	if e.Overhead == 0 {
		return HeuristicTokenCounter{}.PerMessage()
	}
	return e.Overhead
}

// countTime is how long a counter may take for one decision; the heuristic
// counts what is left then, so that a counter cannot hold up a turn for ever.
const countTime = 10 * time.Second

// tokensOf counts a text. A counter that fails, panics or finds less than
// nothing is replaced by the heuristic for that text.
func tokensOf(ctx context.Context, counter TokenCounter, text string) (n int) {
	defer func() {
		if recover() != nil {
			n = heuristicCount(text)
		}
	}()
	if ctx.Err() == nil {
		if n, err := counter.Count(ctx, text); err == nil && n >= 0 {
			return min(n, maxTokens)
		}
	}
	return heuristicCount(text)
}

// overheadOf is what a message costs beside its text; by the heuristic where the
// counter panics or finds less than nothing.
func overheadOf(counter TokenCounter) (n int) {
	n = -1
	defer func() {
		if recover() != nil || n < 0 {
			n = HeuristicTokenCounter{}.PerMessage()
		}
	}()
	return min(counter.PerMessage(), maxTokens)
}

// maxTokens bounds every single count, so that no sum of them overflows.
const maxTokens = 1 << 40
