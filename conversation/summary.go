package conversation

import (
	"context"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/fault"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// acknowledged stands behind the summary in the model's name, so that roles
// alternate (C-13.10).
const acknowledged = "I have read this summary of our conversation so far, and go on from it."

// summaryFrame is what fence and acknowledgement may cost beside a summary.
const summaryFrame = 100

// Rolling is the summary of the turns that left the window. A model wrote it
// that had read untrusted text, so it is tainted (C-21.4).
type Rolling struct {
	Text   taint.Text `json:"text"`
	Tokens int        `json:"tokens"` // what it costs in a prompt, with its acknowledgement
}

// IsZero reports whether there is no summary.
func (r Rolling) IsZero() bool { return r == Rolling{} }

func (r Rolling) valid() bool {
	return r.IsZero() || r.Text.Origin() == taint.OriginSummary && r.Tokens >= 0 && r.Tokens <= maxTokens
}

// part is what it sends.
func (r Rolling) part() FitPart {
	if r.IsZero() {
		return FitPart{}
	}
	return FitPart{Tokens: r.Tokens, Messages: []agent.Message{
		agent.NewMessage(model.User, r.Text),
		agent.NewMessage(model.Assistant, taint.Plain(acknowledged)),
	}}
}

// summarized is the recorded outcome of a summarizer step: a text, or the code
// of what went wrong (C-21.9).
type summarized struct {
	Text   taint.Text `json:"text,omitzero"`
	Failed string     `json:"failed,omitzero"`
}

// summaryCut is the recorded cut of a summary (C-21.5).
type summaryCut struct {
	Bytes   int  `json:"bytes"`            // that are kept of the text
	Tokens  int  `json:"tokens"`           // what they cost in a prompt
	LeftOut bool `json:"leftOut,omitzero"` // there is no room for it in this turn's prompt
}

// fold evicts the turns that the plan does not keep, and folds them into the rolling
// summary. It says whether the turn's prompt has the summary, and what that
// request is predicted to cost. Nothing of it can fail the turn: where the
// summarizer fails, whatever the reason, the old summary stays and the evicted
// turns are left out (C-21.7). Only what ends the execution itself passes through,
// by Goexit (C-21.8, K2). Where the turn is cut meanwhile they stay for the next
// one. This one makes no request any more, or one without them: the process may
// have died in between, and the new one may see no interruption.
func (d *dialogue) fold(n int, p plan, watch *cutIn) (shown bool, predicted int) {
	fit := p.fit
	shown = !fit.DropSummary && !d.summary.IsZero()
	evicted := d.window.older(p.keep)
	if len(evicted) == 0 || d.settings.Budget.Summarizer == "" {
		d.window.keep(p.keep)
		return shown, fit.Tokens
	}
	text, failed := d.summarize(n, evicted, watch)
	if failed == cutCode {
		return shown, fit.Tokens
	}
	d.window.keep(p.keep)
	if text == "" {
		return shown, fit.Tokens
	}
	beside := fit.Tokens
	if shown {
		beside -= d.summary.Tokens
	}
	cut, err := d.c.Decide(idSummary(n), SourceBudget, func(ctx context.Context) (summaryCut, error) {
		return d.cut(ctx, text, beside, fit), nil
	})
	if err != nil || cut.Bytes <= 0 || cut.Bytes > len(text) {
		return shown, fit.Tokens
	}
	d.summary = Rolling{Text: taint.Tainted(text[:cut.Bytes], taint.OriginSummary), Tokens: cut.Tokens}
	if cut.LeftOut {
		return false, beside
	}
	return true, beside + cut.Tokens
}

// summarize runs the summarizer once over the previous summary and the evicted
// turns (C-21.3, C-21.10). Its outcome is the decision around the step, so that
// a replay runs no failed step again (C-21.9). A summary that is empty is none
// (C-21.11). failed is the code of what went wrong.
func (d *dialogue) summarize(n int, evicted []agent.Message, watch *cutIn) (text, failed string) {
	out, err := d.c.Decide(idSummarized(n), SourceBudget, func(context.Context) (summarized, error) {
		messages := evicted
		if !d.summary.IsZero() {
			messages = slices.Concat([]agent.Message{agent.NewMessage(model.User, d.summary.Text)}, evicted)
		}
		text, err := agent.Summarize(d.c.With(watch.interrupts().Within), idSummarize(n), d.settings.Budget.Summarizer, messages)
		if err != nil {
			return summarized{Failed: fault.CodeOf(err)}, nil
		}
		text = cutJSON(strings.TrimSpace(text), d.settings.summaryBytes())
		return summarized{Text: taint.Tainted(text, taint.OriginSummary)}, nil
	})
	if err != nil || out.Failed != "" {
		return "", out.Failed
	}
	text, _ = taint.Reveal(out.Text, taint.OriginSummary)
	return text, ""
}

// cutCode is how a summarizer fails that was cut with its turn.
var cutCode = fault.CodeOf(&model.InterruptedError{})

// cut measures a summary: as much of it as summaryTokens allow is kept, and
// goes into this turn's prompt if there is room beside the rest.
func (d *dialogue) cut(ctx context.Context, text string, beside int, fit Fit) summaryCut {
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	m := newMeasure(ctx, d.flow.config.Counter)
	kept := m.cut(text, d.summaryTokens(fit.Scale))
	cost := m.part(Rolling{Text: taint.Tainted(kept, taint.OriginSummary)}.part())
	return summaryCut{
		Bytes: len(kept), Tokens: cost,
		LeftOut: fit.DropSummary || beside+cost > d.room(fit.Scale),
	}
}

// cut returns the longest beginning of a text that has at most so many tokens,
// in whole code points.
func (m measure) cut(text string, most int) string {
	if tokensOf(m.ctx, m.counter, text) <= most {
		return text
	}
	n := sort.Search(len(text), func(n int) bool {
		return tokensOf(m.ctx, m.counter, cutBytes(text, n+1)) > most
	})
	return cutBytes(text, n)
}

// cutJSON returns the beginning of a text that has, in JSON, at most so many
// bytes.
func cutJSON(text string, most int) string {
	for size := jsonBytes(text); size > most; size = jsonBytes(text) {
		text = cutBytes(text, len(text)*most/size)
	}
	return text
}

// cutBytes returns the longest beginning of a text within so many bytes,
// in whole code points.
func cutBytes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
