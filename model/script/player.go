package script

import (
	"cmp"
	"context"
	"encoding/json/jsontext"
	"fmt"
	"strings"
	"time"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/internal/pace"
)

// player is one reply being played.
type player struct {
	scene scene
	yield func(model.Chunk, error) bool
	usage model.Usage
	calls int
	deaf  bool
}

// action is one line of a block. It reports whether the reply goes on.
type action func(ctx context.Context, p *player) bool

// emit waits, and yields one chunk.
func (p *player) emit(ctx context.Context, delay time.Duration, chunk model.Chunk) bool {
	return p.wait(ctx, delay) && p.yield(chunk, nil)
}

// wait waits, or ends the reply with the error of its context.
func (p *player) wait(ctx context.Context, d time.Duration) bool {
	if err := pace.Wait(ctx, d); err != nil {
		p.yield(model.Chunk{}, fmt.Errorf("script: %w", err))
		return false
	}
	return true
}

// finish yields the end mark, with which the reply is over.
func (p *player) finish(ctx context.Context, reason model.FinishReason) bool {
	p.emit(ctx, 0, model.Chunk{Finish: &model.Finish{Reason: reason, Usage: p.usage}})
	return false
}

// reason is why a reply ends whose script does not say it.
func (p *player) reason() model.FinishReason {
	if p.calls > 0 {
		return model.FinishCalls
	}
	return model.FinishStop
}

func say(text string, delay time.Duration) action {
	return func(ctx context.Context, p *player) bool {
		return p.emit(ctx, delay, model.Chunk{Text: text})
	}
}

func words(text string, delay time.Duration) action {
	return func(ctx context.Context, p *player) bool {
		for word := range pace.Words(text) {
			if !p.emit(ctx, delay, model.Chunk{Text: word}) {
				return false
			}
		}
		return true
	}
}

func repeat(n int, text string, delay time.Duration) action {
	once := say(text, delay)
	return func(ctx context.Context, p *player) bool {
		for range n {
			if !once(ctx, p) {
				return false
			}
		}
		return true
	}
}

func forever(text string, delay time.Duration) action {
	once := say(text, delay)
	return func(ctx context.Context, p *player) bool {
		for once(ctx, p) {
		}
		return false
	}
}

func reply(delay time.Duration) action {
	return func(ctx context.Context, p *player) bool { return words(p.scene.text, delay)(ctx, p) }
}

func results(delay time.Duration) action {
	return func(ctx context.Context, p *player) bool {
		return words(strings.Join(p.scene.results, "\n"), delay)(ctx, p)
	}
}

func call(name string, args jsontext.Value) action {
	return func(ctx context.Context, p *player) bool {
		p.calls++
		id := fmt.Sprintf("call-%d-%d", p.scene.messages, p.calls)
		return p.emit(ctx, 0, model.Chunk{Call: &model.Call{ID: id, Name: name, Args: args.Clone()}})
	}
}

func wait(d time.Duration) action {
	return func(ctx context.Context, p *player) bool { return p.wait(ctx, d) }
}

// deaf makes the rest of the reply overlook its context.
func deaf(_ context.Context, p *player) bool {
	p.deaf = true
	return true
}

func usage(in, out int) action {
	return func(_ context.Context, p *player) bool {
		p.usage = model.Usage{InputTokens: in, OutputTokens: out}
		return true
	}
}

func finish(reason model.FinishReason) action {
	return func(ctx context.Context, p *player) bool {
		return p.finish(ctx, cmp.Or(reason, p.reason()))
	}
}

func end(context.Context, *player) bool { return false }

func fail(err error) action {
	return func(ctx context.Context, p *player) bool {
		if p.wait(ctx, 0) {
			p.yield(model.Chunk{}, err)
		}
		return false
	}
}
