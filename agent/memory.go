package agent

import (
	"context"
	"encoding/json/jsontext"
	"strings"
	"time"

	"github.com/parley-run/parley/fault"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// Memory knows facts that earlier runs, or others, have kept (C-10.13).
type Memory interface {
	// Recall returns facts of a scope that may help to answer a query, which is
	// the prompt of the run, the most helpful first. At most 16 facts and 16 KiB
	// are taken, and it has 10 s. It is asked once in a run, and again only if the
	// process dies before its answer is on record.
	//
	// A scope is shared by all who talk to the agent. A memory that keeps them
	// apart goes by the execution, which kernel.StepFrom(ctx) names; so does the
	// effect that writes back.
	//
	// An error costs the run the facts and nothing else; it goes to the observer,
	// see [Observe].
	Recall(ctx context.Context, scope, query string) ([]Fact, error)
}

// Fact is something that a memory knows. It is no text of ours: it reaches the
// model fenced, in a user position, with the origin [taint.OriginMemory].
type Fact struct{ Text string }

// Note is what a write-back effect is given after a complete reply (C-10.13).
// Texts are tainted as they were in the run; taint.SummarizerText reads them. The
// reply waits for the effect, whose result is not looked at and whose failure is
// the operator's to hear of.
type Note struct {
	Scope    string      `json:"scope"`
	Messages []NoteEntry `json:"messages"` // the prompt, and the reply
}

// NoteEntry is one message of a [Note].
type NoteEntry struct {
	Role model.Role `json:"role"`
	Text taint.Text `json:"text"`
}

// Bounds of a recall.
const (
	maxFacts     = 16
	maxFactBytes = 16 << 10 // of all of them
	recallTime   = 10 * time.Second
)

// recalled is the recorded outcome of a recall.
type recalled struct {
	Scope  string     `json:"scope"`
	Facts  taint.Text `json:"facts,omitzero"`  // one to a line
	Failed string     `json:"failed,omitzero"` // a code, see package fault
}

// memoryEffect is how the memory is named to the observer.
const memoryEffect kernel.EffectID = "memory"

// recall asks the memory for facts, under the id <loop>#recall. None are asked
// for, and nothing is recorded, where the limits name no scope.
func (l *loop) recall(prompt string) taint.Text {
	scope := l.limits.MemoryScope
	if scope == "" {
		return taint.Text{}
	}
	id := l.id + "#recall"
	outcome, err := l.c.Decide(id, SourceCheckpoint, func(ctx context.Context) (recalled, error) {
		facts, err := l.def.known(ctx, scope, prompt)
		if err != nil {
			l.trouble(ctx, id, memoryEffect, "nothing was recalled", err)
			return recalled{Scope: scope, Failed: fault.CodeOf(err)}, nil
		}
		return recalled{Scope: scope, Facts: facts}, nil
	})
	if err != nil {
		return taint.Text{}
	}
	return outcome.Facts
}

// known asks the memory that is configured, within its time.
func (d Definition) known(ctx context.Context, scope, query string) (taint.Text, error) {
	if d.Memory == nil {
		return taint.Text{}, errNotConfigured
	}
	ctx, cancel := context.WithTimeout(ctx, recallTime)
	defer cancel()
	answer := make(chan []Fact, 1)
	err := guarded(ctx, func() error {
		facts, err := d.Memory.Recall(ctx, scope, query)
		answer <- facts
		return err
	})
	if err != nil {
		return taint.Text{}, err
	}
	return listed(<-answer), nil
}

// listed makes one text of facts, each a line that begins with a dash. Those
// that are blank, or for which there is no room, are left out.
func listed(facts []Fact) taint.Text {
	var lines []string
	left := maxFactBytes
	for _, fact := range facts {
		line := "- " + strings.TrimSpace(scrub(fact.Text))
		if size := encodedLen(line) + len(`\n`); !blank(fact.Text) && size <= left && len(lines) < maxFacts {
			lines = append(lines, line)
			left -= size
		}
	}
	if len(lines) == 0 {
		return taint.Text{}
	}
	return taint.Tainted(strings.Join(lines, "\n"), taint.OriginMemory)
}

// written is the recorded outcome of a write-back.
type written struct {
	Failed string `json:"failed,omitzero"` // a code, see package fault
}

// writeBack hands a complete reply to the effect that keeps it. Its facts are
//
//	<loop>#write          the outcome, around the rest
//	<loop>#write:effect   which effect is called
//	<loop>#write:call     the call
func (l *loop) writeBack(prompt taint.Text) {
	scope := l.limits.WriteBackScope
	if scope == "" || blank(l.reply.Text) {
		return
	}
	id := l.id + "#write"
	note := Note{Scope: scope, Messages: []NoteEntry{
		{Role: model.User, Text: prompt},
		{Role: model.Assistant, Text: taint.Plain(l.reply.Text)},
	}}
	_, _ = l.c.Decide(id, SourceCheckpoint, func(ctx context.Context) (written, error) {
		if err := l.write(id, note); err != nil {
			l.trouble(ctx, id, l.def.WriteBack, "a reply was not written back", err)
			return written{Failed: fault.CodeOf(err)}, nil
		}
		return written{}, nil
	})
}

// write makes the call. A note that is more than a step can be given is not
// handed on: the execution could not go on from there.
func (l *loop) write(id string, note Note) error {
	data, err := encode(note)
	if err != nil {
		return err
	}
	if len(data) > kernel.MaxPayloadBytes {
		return kernel.ErrTooLarge
	}
	effect, err := l.chosen(id, l.def.WriteBack)
	if err != nil {
		return err
	}
	_, err = l.c.Execute[jsontext.Value](id+":call", effect, kernel.Canonical{JSON: data, Value: note})
	return err
}
