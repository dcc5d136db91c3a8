package conversation

import (
	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// Placeholders stand in a prompt for a turn that has no reply text, so that
// roles alternate (C-13.10).
const (
	placeholderInterrupted = "(interrupted)"
	placeholderFailed      = "(no reply: the request failed)"
	placeholderEmpty       = "(no reply)"
)

// window is the turns that later prompts are given, oldest first, with the size
// of each in a carry, and the messages that they are for the agent: the asker's
// words tainted, the model's own plain (C-13.17, C-13.18).
type window struct {
	turns   []Turn
	sizes   []int
	history []agent.Message // two for each turn
}

func newWindow(turns []Turn) window {
	var w window
	for _, turn := range turns {
		w.add(turn)
	}
	return w
}

func (w *window) add(turn Turn) {
	w.turns = append(w.turns, turn)
	w.sizes = append(w.sizes, jsonBytes(turn)+len(","))
	w.history = append(w.history,
		agent.NewMessage(model.User, turn.User),
		agent.NewMessage(model.Assistant, taint.Plain(turn.spoken())))
}

// fit evicts the oldest turns: at most maxTurns stay, the newest ones in a row,
// and no more of them than maxBytes hold. It ends at the first turn that is too
// large and never skips one to keep an older one (C-20.3, C-20.13).
func (w *window) fit(maxTurns, maxBytes int) {
	keep, bytes := len(w.turns), 0
	for keep > 0 && len(w.turns)-keep < maxTurns && bytes+w.sizes[keep-1] <= maxBytes {
		keep--
		bytes += w.sizes[keep]
	}
	w.turns, w.sizes, w.history = w.turns[keep:], w.sizes[keep:], w.history[2*keep:]
}

// spoken is what the model said in the turn, or what stands for it.
func (t Turn) spoken() string {
	switch {
	case t.Reply != "":
		return t.Reply
	case t.Status == StatusInterrupted:
		return placeholderInterrupted
	case t.Status == StatusFailed:
		return placeholderFailed
	}
	return placeholderEmpty
}
