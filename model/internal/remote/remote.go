// Package remote is what the models behind a service share: the mapping between
// package model and charm.land/fantasy, and the door through which their
// requests go.
//
// A vendor's package makes a [Door] and gives its client to fantasy, then
// calls [New] with a way to open fantasy's model. What it gets keeps the
// contract of [model.Model], whatever the service sends.
package remote

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"charm.land/fantasy"

	"github.com/parley-run/parley/model"
)

// remote is a vendor's model without limits of time.
type remote struct {
	name      string
	maxOutput int
	door      *Door
	open      Open
}

// Open returns fantasy's model for one request, with the request's options for
// that vendor. The function whole is asked at the end mark whether the service
// itself has sent one; it may be nil where fantasy is strict enough.
type Open func(model.Request) (lm fantasy.LanguageModel, options fantasy.ProviderOptions, whole func() bool, err error)

// New returns a model that names itself so in errors. A request that says
// nothing else is limited to maxOutput tokens, or not at all where it is 0.
func New(name string, maxOutput int, limits model.Limits, door *Door, open Open) model.Model {
	return model.WithLimits(&remote{name: name, maxOutput: maxOutput, door: door, open: open}, limits)
}

// errLeft is how a reply ends that its reader left.
var errLeft = errors.New("the reply was left")

// Stream sends the request. It is sent anew each time the sequence is ranged
// over, and never tried again by itself. A reply that is left half read gives
// up its connection when ctx ends, which [model.WithLimits] sees to.
func (m *remote) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		err := m.play(ctx, req, yield)
		switch {
		case err == nil || errors.Is(err, errLeft):
		case ctx.Err() != nil:
			yield(model.Chunk{}, fmt.Errorf("%s: %w", m.name, ctx.Err()))
		default:
			yield(model.Chunk{}, m.typed(err))
		}
	}
}

// play reads one reply.
func (m *remote) play(ctx context.Context, req model.Request, yield func(model.Chunk, error) bool) error {
	if err := req.Validate(); err != nil {
		return err
	}
	lm, options, whole, err := m.open(req)
	if err != nil {
		return err
	}
	call, err := callOf(req, m.maxOutput)
	if err != nil {
		return err
	}
	call.ProviderOptions = options
	if err := ctx.Err(); err != nil {
		return err
	}
	parts, err := lm.Stream(ctx, call)
	if err != nil {
		return err
	}
	r := &reply{yield: yield}
	for part := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch part.Type {
		case fantasy.StreamPartTypeTextDelta:
			err = r.say(r.text.join(part.Delta))
		case fantasy.StreamPartTypeToolCall:
			err = r.call(part)
		case fantasy.StreamPartTypeError:
			return part.Error
		case fantasy.StreamPartTypeFinish:
			if whole != nil && !whole() {
				return model.ErrCut
			}
			return r.finish(part)
		default:
			err = r.think(part)
		}
		if err != nil {
			return err
		}
	}
	return model.ErrCut
}
