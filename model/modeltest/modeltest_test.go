package modeltest

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/model"
)

// stream is a model that is its own stream.
type stream func(ctx context.Context, req model.Request, yield func(model.Chunk, error) bool)

func (s stream) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) { s(ctx, req, yield) }
}

var (
	config = Config{
		Request: model.Request{Messages: []model.Message{{Role: model.User, Text: "x"}}},
		Calling: model.Request{
			Messages: []model.Message{{Role: model.User, Text: "call"}},
			Tools:    []model.Tool{{Name: "look", Schema: jsontext.Value("{}")}},
		},
		Deterministic: true,
	}
	stop = model.Chunk{Finish: &model.Finish{Reason: model.FinishStop}}
)

// good is a model as it should be, but for what the test replaces.
func good(ctx context.Context, req model.Request, yield func(model.Chunk, error) bool) {
	if req.Messages[0].Text == "call" {
		emit(ctx, yield, look("1", "{}"), calls())
		return
	}
	emit(ctx, yield, model.Chunk{Text: "a "}, model.Chunk{Text: "b"}, stop)
}

func emit(ctx context.Context, yield func(model.Chunk, error) bool, chunks ...model.Chunk) {
	for _, chunk := range chunks {
		if err := ctx.Err(); err != nil {
			yield(model.Chunk{}, fmt.Errorf("wrapped: %w", err))
			return
		}
		if !yield(chunk, nil) {
			return
		}
	}
}

func look(id, args string) model.Chunk {
	return model.Chunk{Call: &model.Call{ID: id, Name: "look", Args: jsontext.Value(args)}}
}

func calls() model.Chunk { return model.Chunk{Finish: &model.Finish{Reason: model.FinishCalls}} }

func TestGoodModelPasses(t *testing.T) {
	Run(t, func(*testing.T) model.Model { return stream(good) }, config)
}

// TestSuiteFindsBrokenModels gives each check a model that breaks its promise.
func TestSuiteFindsBrokenModels(t *testing.T) {
	always := func(chunks ...model.Chunk) stream {
		return func(ctx context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			emit(ctx, yield, chunks...)
		}
	}
	a := model.Chunk{Text: "a"}
	var turn atomic.Int64
	for _, tt := range []struct {
		check, broken string
		model         stream
	}{
		{"a whole reply ends with its end mark", "no end mark", always(a, a)},
		{"a whole reply ends with its end mark", "a chunk after the end mark", always(a, a, stop, a)},
		{"a whole reply ends with its end mark", "half a code point", always(model.Chunk{Text: "\xf0\x9f"}, model.Chunk{Text: "\x99\x82"}, stop)},
		{"a whole reply ends with its end mark", "two things in a chunk", always(a, a, model.Chunk{Text: "a", Finish: stop.Finish})},
		{"a whole reply ends with its end mark", "one delta", always(a, stop)},
		{"a whole reply ends with its end mark", "the wrong reason", always(a, a, calls())},
		{"a whole reply ends with its end mark", "negative usage", always(a, a, model.Chunk{Finish: &model.Finish{
			Reason: model.FinishStop, Usage: model.Usage{OutputTokens: -1},
		}})},
		{"a whole reply ends with its end mark", "an error", func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			yield(model.Chunk{}, errors.New("broken"))
		}},
		{"a calling reply holds whole calls", "no call", always(a, stop)},
		{"a calling reply holds whole calls", "an id twice", always(look("1", "{}"), look("1", "{}"), calls())},
		{"a calling reply holds whole calls", "no id", always(look("", "{}"), calls())},
		{"a calling reply holds whole calls", "arguments cut short", always(look("1", `{"a":`), calls())},
		{"a calling reply holds whole calls", "arguments of another kind", always(look("1", `[]`), calls())},
		{"a calling reply holds whole calls", "a tool that nobody offered", always(model.Chunk{Call: &model.Call{
			ID: "1", Name: "hide", Args: jsontext.Value("{}"),
		}}, calls())},
		{"equal requests get equal replies", "a counter", func(ctx context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			emit(ctx, yield, a, model.Chunk{Text: fmt.Sprint(turn.Add(1))}, stop)
		}},
		{"the request is left as it was", "a changed request", func(ctx context.Context, req model.Request, yield func(model.Chunk, error) bool) {
			req.Messages[0].Text += "!"
			emit(ctx, yield, a, a, stop)
		}},
		{"a context that is done gets no reply", "deafness", func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			emit(context.Background(), yield, a, a, stop)
		}},
		{"cancellation ends a reply soon", "deafness", func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			emit(context.Background(), yield, a, a, stop)
		}},
		{"cancellation ends a reply soon", "a late end", func(ctx context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			if yield(a, nil) {
				<-time.After(time.Minute)
				yield(model.Chunk{}, ctx.Err())
			}
		}},
		{"cancellation ends a reply soon", "going on without end", func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			for yield(a, nil) {
			}
		}},
		{"cancellation ends a reply soon", "a silent end", func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			yield(a, nil)
		}},
		{"cancellation ends a reply soon", "an error of another name", func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			_ = yield(a, nil) && yield(model.Chunk{}, model.ErrCut)
		}},
		{"leaving a reply releases it", "an error at once", func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			yield(model.Chunk{}, model.ErrCut)
		}},
		{"requests run side by side", "a counter", func(ctx context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			emit(ctx, yield, a, model.Chunk{Text: fmt.Sprint(turn.Add(1))}, stop)
		}},
	} {
		t.Run(tt.check+"/"+tt.broken, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := config
				cfg.Request = clone(config.Request)
				if err := named(t, tt.check).run(t.Context(), tt.model, cfg); err == nil {
					t.Errorf("the check %q passes a model with %s", tt.check, tt.broken)
				}
				if err := named(t, tt.check).run(t.Context(), stream(good), config); err != nil {
					t.Errorf("the check %q on a good model: %v", tt.check, err)
				}
			})
		})
	}
}

func named(t *testing.T, name string) check {
	for _, c := range checks {
		if c.name == name {
			return c
		}
	}
	t.Fatalf("no check %q", name)
	return check{}
}
