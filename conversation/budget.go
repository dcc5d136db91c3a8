package conversation

import (
	"cmp"
	"context"
	"fmt"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
)

// Budget keeps a turn's first request within a model's context window (C-20). A
// zero Budget is none: then only the number and the bytes of earlier turns are
// bounded. It is recorded with the other settings of a generation; what counts
// is [Config.Counter].
type Budget struct {
	ContextWindow       int `json:"contextWindow"`       // tokens of a request and its reply
	ReserveOutputTokens int `json:"reserveOutputTokens"` // of these, what is left free for the reply
	MaxSummaryTokens    int `json:"maxSummaryTokens"`    // to which a summary is cut; a quarter of the window if 0 (C-21.5)

	// Summarizer names Config.Summarizer, which folds evicted turns into a rolling
	// summary. Empty, evicted turns are just left out (C-21.12). The effect has to
	// stay in the configuration while a generation that recorded it goes on.
	Summarizer kernel.EffectID `json:"summarizer,omitzero"`
}

// IsZero reports whether there is no budget.
func (b Budget) IsZero() bool { return b == Budget{} }

func (b Budget) withDefaults() Budget {
	b.MaxSummaryTokens = cmp.Or(b.MaxSummaryTokens, b.ContextWindow/4)
	return b
}

// check refuses a window that leaves nothing for a prompt (C-20.14).
func (b Budget) check() error {
	for _, field := range []struct {
		name  string
		value int
	}{
		{"ContextWindow", b.ContextWindow},
		{"ReserveOutputTokens", b.ReserveOutputTokens},
		{"MaxSummaryTokens", b.MaxSummaryTokens},
	} {
		if field.value < 0 || field.value > maxTokens {
			return fmt.Errorf("setting %s is %d, not within 0 and %d", field.name, field.value, maxTokens)
		}
	}
	if !b.IsZero() && b.ContextWindow <= b.ReserveOutputTokens {
		return fmt.Errorf("setting ContextWindow is %d, which leaves nothing beside ReserveOutputTokens %d", b.ContextWindow, b.ReserveOutputTokens)
	}
	return nil
}

// limit is how many of the counter's tokens a request may have.
func (b Budget) limit(scale int) int { return scaled(b.ContextWindow-b.ReserveOutputTokens, scale) }

// plan is what a turn is given: the verdict of the fit, and what follows from it
// for the window. Turns are named by their place in the window.
type plan struct {
	fit     Fit
	visible []int // turns that could be in the prompt, oldest first
	shown   []int // of these, the ones that are
	keep    int   // turns that stay in the window, the newest ones
}

// plan finds the earlier turns that stay beside a turn's prompt. In a conversation
// of one owner those that the fit leaves out are evicted. A shared one evicts by
// age and bytes alone, which follows from the dialogue, and the fit sees what the
// asker may see (C-38.4, C-38.5).
func (d *dialogue) plan(n int, turn Turn) plan {
	most := d.window.most(d.settings.MaxWindowTurns, d.settings.windowBytes())
	if d.settings.Budget.Summarizer != "" && most < len(d.window.turns) {
		most = d.window.most(slack(d.settings.MaxWindowTurns), slack(d.settings.windowBytes()))
	}
	var p plan
	if d.shared == nil {
		p.visible = placesOf(len(d.window.turns))
		p.fit = d.fit(n, turn, p.visible, most)
		p.keep = p.fit.Keep
	} else {
		p.visible = d.visible(n, turn.Asker, most)
		p.fit = d.fit(n, turn, p.visible, len(p.visible))
		p.keep = most
	}
	p.shown = p.visible[len(p.visible)-min(p.fit.Keep, len(p.visible)):]
	return p
}

// placesOf is all places of a window of so many turns.
func placesOf(turns int) []int {
	places := make([]int, turns)
	for i := range places {
		places[i] = i
	}
	return places
}

// fit asks which of the turns stay beside a turn's prompt, at most so many, and
// records the verdict (C-20.11): a replay applies it whatever the counter says
// now, and counts no old text again (C-20.12). Without a budget nothing is to be
// asked.
func (d *dialogue) fit(n int, turn Turn, places []int, most int) Fit {
	if d.settings.Budget.IsZero() {
		return Fit{OK: true, Keep: most}
	}
	fit, err := d.c.Decide(idFit(n), SourceBudget, func(ctx context.Context) (Fit, error) {
		ctx, cancel := context.WithTimeout(ctx, countTime)
		defer cancel()
		return d.alone(FitToWindow(ctx, d.fitRequest(turn, places, most))), nil
	})
	if err != nil {
		return Fit{OK: true, Keep: most} // a verdict that cannot be had evicts nothing
	}
	d.scale = fit.Scale
	return fit
}

// alone lets a prompt through that only a scale keeps out: it goes to the model
// with nothing beside it. A scale is what a vendor's report or refusal came to,
// and a new one needs a request; if it could refuse messages, one wrong report
// would close a conversation for good.
func (d *dialogue) alone(fit Fit) Fit {
	if !fit.OK && fit.Scale > 100 && fit.Tokens <= d.room(100) {
		fit.OK, fit.DropSummary = true, true
	}
	return fit
}

// room is how many of the counter's tokens the fit may give away: what a memory
// recalls joins the request later. By the heuristic no script has more than one
// token in two bytes; a memory gets no more than half of the limit.
func (d *dialogue) room(scale int) int {
	limit := d.settings.Budget.limit(scale)
	return limit - min(d.settings.Agent.RecalledBytes()/2, limit/2)
}

// summaryTokens is how many of the counter's tokens a summary may have. More than
// half of what a request may have would hardly ever find room in one, and would
// keep the fit from making room for more than a turn: a large reserve, or a scale,
// can leave less than MaxSummaryTokens.
func (d *dialogue) summaryTokens(scale int) int {
	return min(d.settings.Budget.MaxSummaryTokens, d.room(scale)/2)
}

// slack is what an eviction that costs a summary leaves of a bound: seven eighths,
// so that not every turn from then on evicts one and costs another.
func slack(bound int) int { return bound - bound/8 }

// fitRequest is what a decider asks of the fit.
func (d *dialogue) fitRequest(turn Turn, places []int, most int) FitRequest {
	b := d.settings.Budget
	r := FitRequest{
		ContextWindow: b.ContextWindow, ReserveOutputTokens: b.ReserveOutputTokens,
		Scale:  cmp.Or(d.flow.meter.scale(d.c.Execution()), d.scale),
		System: d.flow.instructions(), Summary: d.summary.part(), Prompt: agent.NewMessage(model.User, turn.asked()),
		Turns: d.window.parts(places), Most: most, Counter: d.flow.config.Counter,
	}
	limit := b.limit(r.Scale)
	r.Aside = limit - d.room(r.Scale)
	if b.Summarizer != "" && d.shared == nil {
		r.SummaryRoom = min(d.summaryTokens(r.Scale), d.settings.summaryBytes()/2) + summaryFrame + limit - slack(limit)
	}
	return r
}

// checkInstructions refuses a system prompt and tools that leave no room for any
// message: each would be rejected (T73).
func (f *Flow) checkInstructions() error {
	b := f.config.Settings.Budget
	if b.IsZero() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), countTime)
	defer cancel()
	if tokens, limit := newMeasure(ctx, f.config.Counter).texts(f.instructions()), b.limit(0); tokens >= limit {
		return fmt.Errorf("system prompt and tools have %d tokens, which is all of the %d that ContextWindow leaves beside ReserveOutputTokens", tokens, limit)
	}
	return nil
}

// compare holds what the fit predicted of a turn's first request against what
// came of it (T82b).
func (d *dialogue) compare(predicted int, came answered) {
	if d.settings.Budget.IsZero() {
		return
	}
	conversation := d.c.Execution()
	if came.Overflow {
		d.flow.meter.overflowed(conversation, d.scale)
		return
	}
	if d.flow.meter.observe(conversation, predicted, came.FirstInput, d.scale) {
		d.flow.log().Warn("the token counter is far off what the model's service reports; a counter of that model's would fill the window better",
			"conversation", conversation, "turn", d.seq, "predicted", predicted, "reported", came.FirstInput)
	}
}
