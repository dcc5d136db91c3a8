package agent

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"

	"github.com/parley-run/parley/fault"
	"github.com/parley-run/parley/kernel"
)

// compacted is the recorded outcome of a compaction. A failure is a value too:
// the run goes on without a summary, on a replay as well (K3).
type compacted struct {
	Summary string `json:"summary,omitzero"`
	Failed  string `json:"failed,omitzero"` // a code, see package fault
}

var (
	errNothingToCut = fault.New("NOTHING_TO_CUT", "a run is above the limit of its compaction, and there is nothing to cut")
	errNoSummary    = errors.New("the compactor gave no summary")
)

const (
	summaryCut         = "\n\n[The summary was cut here.]"
	maxCompactFailures = 2 // in one run
)

// compact summarises the older part of the transcript if it is above the limit,
// at most once before each model call (C-10.12). Where there is nothing to cut,
// that is recorded and reported once in a run (T73). Its facts are
//
//	<loop>#compact:<r>          the outcome, around the rest
//	<loop>#compact:<r>:effect   which effect is called
//	<loop>#compact:<r>:call     the call
func (l *loop) compact(round int) {
	limit := l.limits.Compaction
	if !l.draft.extent().over(limit) || l.uncompacted == maxCompactFailures {
		return
	}
	cut := l.draft.boundary(limit)
	if cut == 0 && l.reported {
		return
	}
	id := fmt.Sprintf("%s#compact:%d", l.id, round)
	outcome, err := l.c.Decide(id, SourceCheckpoint, func(ctx context.Context) (compacted, error) {
		text, err := l.summarise(id, cut)
		if err != nil {
			l.trouble(ctx, id, l.def.Compactor, "a transcript was not compacted", err)
			return compacted{Failed: fault.CodeOf(err)}, nil
		}
		return compacted{Summary: text}, nil
	})
	switch {
	case cut == 0:
		l.reported = true
	case err != nil || outcome.Failed != "" || l.draft.replace(cut, outcome.Summary) != nil:
		l.uncompacted++
	}
}

// summarise asks for a summary of what stands before the boundary.
func (l *loop) summarise(id string, cut int) (string, error) {
	if cut == 0 {
		return "", errNothingToCut
	}
	effect, err := l.chosen(id, l.def.Compactor)
	if err != nil {
		return "", err
	}
	data, err := l.c.Execute[jsontext.Value](id+":call", effect, l.draft.before(cut))
	if err != nil {
		return "", err
	}
	var answer struct {
		Summary string `json:"summary"`
	}
	if json.Unmarshal(data, &answer) != nil || blank(answer.Summary) {
		return "", errNoSummary
	}
	most := min(l.draft.summaryBytes(l.limits.Compaction), max(minSummaryBytes, l.draft.bytesBefore(cut)))
	left := room{raw: most - len(summaryCut)}
	left.encoded = left.raw
	if text, all := left.take(answer.Summary); !all {
		return text + summaryCut, nil
	}
	return answer.Summary, nil
}

var errNotConfigured = fault.New("NOT_CONFIGURED", "the effect is not configured any more")

// chosen records the effect that a step beside the conversation calls: the one
// that is configured when it is first asked for. It is written with the step's
// request, so that a configuration that changes in between changes nothing (K5).
func (l *loop) chosen(id string, configured kernel.EffectID) (kernel.EffectID, error) {
	effect, err := l.c.Decide(id+":effect", SourceCheckpoint, func(context.Context) (kernel.EffectID, error) {
		return configured, nil
	})
	if err == nil && effect == "" {
		err = errNotConfigured
	}
	return effect, err
}

// trouble tells the operator of a failure that the run does not end for.
func (l *loop) trouble(ctx context.Context, id string, effect kernel.EffectID, what string, err error) {
	l.def.log().Warn(what, "execution", l.c.Execution(), "step", id, "code", fault.CodeOf(err))
	Report(ctx, effect, err)
}
