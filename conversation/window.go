package conversation

import (
	"slices"
	"strconv"
	"strings"

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
		agent.NewMessage(model.User, turn.asked()),
		agent.NewMessage(model.Assistant, taint.Plain(turn.spoken())))
}

// find returns the carried turn whose user record has the ord, nil where there
// is none (C-27.3); a notice is none.
func (w *window) find(ord int) *Turn {
	i := slices.IndexFunc(w.turns, func(t Turn) bool { return t.Ord == ord && t.User.Origin() == taint.OriginUser })
	if i < 0 {
		return nil
	}
	return &w.turns[i]
}

// most is how many turns may stay whatever they cost a model: the newest ones in
// a row, at most maxTurns, and no more of them than maxBytes hold. It ends at
// the first turn that is too large and never skips one to keep an older one
// (C-20.3, C-20.13).
func (w *window) most(maxTurns, maxBytes int) int {
	keep, bytes := len(w.turns), 0
	for keep > 0 && len(w.turns)-keep < maxTurns && bytes+w.sizes[keep-1] <= maxBytes {
		keep--
		bytes += w.sizes[keep]
	}
	return len(w.turns) - keep
}

// parts is what turns send, and what that costs where it is known.
func (w *window) parts(places []int) []FitPart {
	parts := make([]FitPart, len(places))
	for i, place := range places {
		parts[i] = FitPart{Tokens: w.turns[place].Tokens, Messages: w.history[2*place : 2*place+2]}
	}
	return parts
}

// messages is what turns send.
func (w *window) messages(places []int) []agent.Message {
	messages := make([]agent.Message, 0, 2*len(places)+2)
	for _, place := range places {
		messages = append(messages, w.history[2*place:2*place+2]...)
	}
	return messages
}

// ords names turns as they are on record.
func (w *window) ords(places []int) []int {
	ords := make([]int, len(places))
	for i, place := range places {
		ords[i] = w.turns[place].Ord
	}
	return ords
}

// classes is what turns have touched.
func (w *window) classes(places []int) (classes []string) {
	for _, place := range places {
		if more := w.turns[place].Classes; len(more) > 0 {
			classes = union(classes, more)
		}
	}
	return classes
}

// price enters the costs that a fit found among turns, newest first: those of the
// turns that had none (C-20.4, C-20.11).
func (w *window) price(counted []int, places []int) {
	for _, i := range slices.Backward(places) {
		if len(counted) == 0 {
			return
		}
		if w.turns[i].Tokens == 0 {
			if counted[0] > 0 { // a cost of nothing is not in the carry
				w.turns[i].Tokens = counted[0]
				w.sizes[i] += len(`,"tokens":`) + len(strconv.Itoa(counted[0]))
			}
			counted = counted[1:]
		}
	}
}

// older is what all but the newest turns send. Those that bear classes are not
// among them: what is made of it is shown to whoever comes (C-38.3).
func (w *window) older(newest int) []agent.Message {
	var messages []agent.Message
	for i := range max(len(w.turns)-newest, 0) {
		if len(w.turns[i].Classes) == 0 {
			messages = append(messages, w.history[2*i:2*i+2]...)
		}
	}
	return messages
}

// keep evicts all but the newest turns.
func (w *window) keep(newest int) {
	gone := max(len(w.turns)-newest, 0)
	w.turns, w.sizes, w.history = w.turns[gone:], w.sizes[gone:], w.history[2*gone:]
}

// asked is the user's text as a prompt has it: that of an edit says first what it
// edits (C-27.8, C-27.9).
func (t Turn) asked() taint.Text {
	if t.Edits.IsZero() {
		return t.User
	}
	quote, _ := taint.Reveal(t.Edits, taint.OriginUser)
	text, _ := taint.Reveal(t.User, taint.OriginUser)
	return taint.Tainted(`[This message edits the user's earlier message "`+quote+"\".]\n"+text, taint.OriginUser)
}

// maxQuote is how many code points of an edited text are quoted.
const maxQuote = 500

// quote is the beginning of the user's text.
func (t Turn) quote() taint.Text {
	text, _ := taint.Reveal(t.User, taint.OriginUser)
	if runes := []rune(text); len(runes) > maxQuote {
		text = string(runes[:maxQuote])
	}
	return taint.Tainted(text, taint.OriginUser)
}

// spoken is what the model said in the turn, or what stands for it. Where that is
// not the whole answer, and tools had been called, their names follow: the model
// must not think that nothing was done (T57, T59).
func (t Turn) spoken() string {
	text := t.Reply
	switch {
	case strings.TrimSpace(text) != "": // a vendor refuses a blank text
	case t.Status == StatusInterrupted:
		text = placeholderInterrupted
	case t.Status == StatusFailed:
		text = placeholderFailed
	default:
		text = placeholderEmpty
	}
	if len(t.Called) > 0 {
		text += "\n\n[This turn ended before its answer was whole. Tools that had been called in it: " +
			strings.Join(t.Called, ", ") + ". They may have taken effect; what came of them is not told here.]"
	}
	return text
}
