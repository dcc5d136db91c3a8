package model

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"time"
)

// Limits bounds the time of a reply. A zero field means its default; a
// negative one lifts the limit.
type Limits struct {
	Idle  time.Duration // without a chunk, the wait for the first included; default 60 s
	Total time.Duration // from the request to the end mark; default 10 min
}

// The defaults of [Limits].
const (
	DefaultIdle  = 60 * time.Second
	DefaultTotal = 10 * time.Minute
)

// WithLimits returns m with its replies cut, with [ErrTimeout], where they
// take longer than the limits say. Chunks with an empty text count as signs of
// life; the time that the reader of the reply takes for a chunk counts against
// the total alone.
func WithLimits(m Model, limits Limits) Model {
	return limited{m, Limits{
		Idle:  orDefault(limits.Idle, DefaultIdle),
		Total: orDefault(limits.Total, DefaultTotal),
	}}
}

type limited struct {
	model  Model
	limits Limits
}

// Stream is the stream of the model within its limits.
func (l limited) Stream(ctx context.Context, req Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		within, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		total := alarm(cancel, l.limits.Total, "the reply took longer than")
		defer total.Stop()
		idle := alarm(cancel, l.limits.Idle, "nothing came for")
		defer idle.Stop()
		for chunk, err := range l.model.Stream(within, req) {
			idle.Stop()
			if ctx.Err() == nil && within.Err() != nil {
				chunk, err = Chunk{}, context.Cause(within)
			}
			if !yield(chunk, err) || err != nil {
				return
			}
			idle.Reset(l.limits.Idle)
		}
	}
}

// alarm cancels with ErrTimeout after d.
func alarm(cancel context.CancelCauseFunc, d time.Duration, why string) *time.Timer {
	return time.AfterFunc(d, func() { cancel(fmt.Errorf("%w: %s %v", ErrTimeout, why, d)) })
}

func orDefault(d, byDefault time.Duration) time.Duration {
	if d < 0 {
		return math.MaxInt64
	}
	return cmp.Or(d, byDefault)
}
