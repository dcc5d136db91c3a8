package conversation

import (
	"context"

	"github.com/parley-run/parley/agent"
)

// FitRequest is what has to find room in a model's context window (C-20.1).
type FitRequest struct {
	ContextWindow       int
	ReserveOutputTokens int
	Scale               int // percent: what a token of the counter's has proved to be to the model; 100 if 0

	System  []string      // what every request has beside its messages, as agent.Definition.Instructions gives it
	Summary FitPart       // the rolling summary and its acknowledgement, zero for none
	Prompt  agent.Message // it always stays (C-20.5)
	Turns   []FitPart     // earlier turns, oldest first
	Most    int           // turns that may stay at all

	// Aside is kept free for what joins the request after the fit.
	Aside int

	// SummaryRoom is what a new summary may cost as it is sent. It is set aside
	// where turns are evicted; 0 where they are not folded into a summary.
	SummaryRoom int

	Counter TokenCounter // HeuristicTokenCounter if nil
}

// FitPart is what stays or goes as a whole: its messages, and what they cost, 0
// if nobody has counted them yet.
type FitPart struct {
	Tokens   int
	Messages []agent.Message
}

// Fit is the verdict of [FitToWindow], in the counter's tokens (C-20.11).
type Fit struct {
	OK          bool  `json:"ok"`                // false: the prompt does not fit, not even alone
	Keep        int   `json:"keep"`              // how many turns stay, the newest ones
	Counted     []int `json:"counted,omitempty"` // the costs that were found, newest turn first
	Tokens      int   `json:"tokens"`            // of the request with all that stays
	DropSummary bool  `json:"dropSummary,omitzero"`
	Scale       int   `json:"scale,omitzero"` // as asked, where it was not 100
}

// FitToWindow decides which earlier turns go into a prompt: the newest ones, as
// many in a row as fit beside system, summary, prompt and the room for the
// reply (C-20.2). It ends at the first turn that is too large and never skips
// one to keep an older one (C-20.3), and it counts no turn beyond that (C-20.4).
// A summary that does not fit beside the prompt is left out (C-20.6). It is pure
// but for the counter.
func FitToWindow(ctx context.Context, r FitRequest) Fit {
	m := newMeasure(ctx, r.Counter)
	fit := Fit{OK: true, Tokens: m.texts(r.System) + m.messages(r.Prompt)}
	if r.Scale != 100 {
		fit.Scale = r.Scale
	}
	room := scaled(r.ContextWindow-r.ReserveOutputTokens, r.Scale) - r.Aside - fit.Tokens
	if room < 0 {
		fit.OK = false
		return fit
	}
	summary := m.part(r.Summary)
	if summary > room {
		summary, fit.DropSummary = 0, true
	}
	costs, found := m.walk(r.Turns, r.Most, room-summary)
	fit.Counted = found
	fit.Keep = prefix(costs, room-summary)
	if fit.Keep < len(r.Turns) && r.SummaryRoom > summary && r.SummaryRoom <= room && !fit.DropSummary {
		fit.Keep = prefix(costs, room-r.SummaryRoom)
	}
	fit.Tokens += summary
	for _, cost := range costs[:fit.Keep] {
		fit.Tokens += cost
	}
	return fit
}

// scaled is how many of the counter's tokens fill that many of the model's.
func scaled(tokens, percent int) int {
	if percent == 0 || percent == 100 {
		return tokens
	}
	return tokens * 100 / percent
}

// prefix is how many of the costs, from the first on, find room.
func prefix(costs []int, room int) int {
	for i, cost := range costs {
		if room -= cost; room < 0 {
			return i
		}
	}
	return len(costs)
}

// measure counts what is sent, as it is sent.
type measure struct {
	ctx     context.Context
	counter TokenCounter
}

func newMeasure(ctx context.Context, counter TokenCounter) measure {
	if counter == nil {
		counter = HeuristicTokenCounter{}
	}
	return measure{ctx, counter}
}

// texts is the cost of texts that are sent as one message.
func (m measure) texts(texts []string) int {
	sum := overheadOf(m.counter)
	for _, text := range texts {
		sum += tokensOf(m.ctx, m.counter, text)
	}
	return sum
}

// messages is the cost of messages, fences included (C-20.9, C-20.16).
func (m measure) messages(messages ...agent.Message) int {
	sum := 0
	for _, message := range messages {
		sum += overheadOf(m.counter) + tokensOf(m.ctx, m.counter, message.Crossing())
	}
	return sum
}

func (m measure) part(p FitPart) int {
	if p.Tokens > 0 {
		return p.Tokens
	}
	return m.messages(p.Messages...)
}

// walk returns the costs of the newest turns, newest first, to the first one
// that finds no room any more, and of these the ones that had to be counted.
func (m measure) walk(turns []FitPart, most, room int) (costs, found []int) {
	for i := len(turns) - 1; i >= 0 && len(costs) < most && room >= 0; i-- {
		cost := m.part(turns[i])
		if turns[i].Tokens == 0 {
			found = append(found, cost)
		}
		costs = append(costs, cost)
		room -= cost
	}
	return costs, found
}
