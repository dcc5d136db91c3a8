package agent

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/parley-run/parley/model"
)

// listener takes in one reply of a model as it comes.
type listener struct {
	show func(string) // given each delta, nil to drop them

	mu    sync.Mutex // the model may be left behind while heard is called
	deaf  bool       // heard was called: what comes now is neither kept nor shown
	lead  string     // shown before the first delta
	text  strings.Builder
	room  room
	sheet callSheet
	end   model.Finish
}

// listen reads the chunks to the end mark, or to the end of ctx.
func (l *listener) listen(ctx context.Context, chunks iter.Seq2[model.Chunk, error]) error {
	for chunk, err := range chunks {
		if ctx.Err() != nil { // a model may overlook it
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		finished, err := l.take(chunk)
		if finished || err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return model.ErrCut
}

// take takes in one chunk, and reports whether the reply is over.
func (l *listener) take(chunk model.Chunk) (finished bool, err error) {
	switch {
	case chunk.Finish != nil:
		l.finish(*chunk.Finish)
		return true, nil
	case chunk.Call != nil:
		return false, l.call(*chunk.Call)
	case chunk.Text != "":
		return l.hear(scrub(chunk.Text)), nil
	}
	return false, nil
}

func (l *listener) finish(end model.Finish) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = end
}

func (l *listener) call(call model.Call) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.sheet.add(call); err != nil {
		return fmt.Errorf("%w: %w", model.ErrMalformed, err)
	}
	return nil
}

// hear takes in a delta: it is kept before it is shown. It reports whether the
// reply is full, and with it over.
func (l *listener) hear(delta string) (full bool) {
	l.mu.Lock()
	if l.deaf {
		l.mu.Unlock()
		return true
	}
	taken, all := l.room.take(delta)
	if !all {
		taken += replyCut
		l.end.Reason = model.FinishLength
		l.sheet.calls = nil // the model had not said all of what it wanted
	}
	l.text.WriteString(taken)
	shown := l.lead + taken
	l.lead = ""
	l.mu.Unlock()
	if l.show != nil {
		l.show(shown)
	}
	return !all
}

// heard returns what has come in, and ends it: a model that was left behind is
// heard no more, so that no word is shown that is not in what is returned.
func (l *listener) heard() Said {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deaf = true
	return Said{Text: l.text.String(), Calls: l.sheet.calls, Reason: l.end.Reason, Usage: l.end.Usage}
}
