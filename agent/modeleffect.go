package agent

import (
	"cmp"
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"time"

	"github.com/parley-run/parley/fault"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
)

// Retries of a model call: only while it has said nothing yet.
const (
	modelAttempts = 3
	retryBase     = 500 * time.Millisecond
	maxRetryAfter = 30 * time.Second // a service that asks for more is not asked again
)

// newModelEffect makes the effect that the loop calls (C-9.3). A call that
// failed is a value too, so that a re-run is served it.
func (d Definition) newModelEffect(prompt *prompter) kernel.Effect {
	id, limited := d.modelEffect(), model.WithLimits(d.Model, d.ModelLimits)
	return kernel.Effect{
		ID: id, Mode: kernel.Repeatable,
		Retry: kernel.Retry{Attempts: modelAttempts, Wait: retryWait},
		Run: func(ctx context.Context, input jsontext.Value) (any, error) {
			said, err := d.ask(ctx, limited, prompt, input)
			step, _ := kernel.StepFrom(ctx)
			_, interrupted := errors.AsType[*model.InterruptedError](err)
			switch {
			case err == nil:
				return said, nil
			case interrupted:
				said.Interrupted, said.Calls = true, nil
				return said, nil
			case said.Text == "" && step.Attempt < modelAttempts && retryable(err):
				return nil, err // the kernel waits, and runs the effect again
			}
			Report(ctx, id, err)
			said.Failed = fault.CodeOf(err)
			said.Calls = nil
			return said, nil
		},
	}
}

// retryable reports whether a failure may pass by itself.
func retryable(err error) bool {
	if asked, ok := errors.AsType[*model.RetryError](err); ok {
		return asked.After <= maxRetryAfter
	}
	return errors.Is(err, model.ErrUnavailable) || errors.Is(err, model.ErrRateLimited) || errors.Is(err, model.ErrCut)
}

// retryWait waits after the attempt-th failure: as the service asks, else 0.5 s
// and then 1 s. An interruption ends the wait, and the next attempt finds it.
func retryWait(ctx context.Context, attempt int, err error) bool {
	wait := retryBase << (attempt - 1)
	if asked, ok := errors.AsType[*model.RetryError](err); ok && asked.After > 0 {
		wait = asked.After
	}
	ctx, _, release := signalFrom(ctx).merged(ctx)
	defer release()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return true
}

// ask makes one attempt. On an error Said holds the text that was shown. A call
// that is interrupted ends with what was shown until then, whether the model
// heeds its context, goes on to speak, or does neither (C-14.15): the latter is
// left behind after a grace.
//
// Errors: those of the model; [*model.InterruptedError].
func (d Definition) ask(ctx context.Context, m model.Model, prompt *prompter, input jsontext.Value) (Said, error) {
	step, _ := kernel.StepFrom(ctx)
	t, err := transcriptOf(step, input)
	if err != nil {
		return Said{}, err
	}
	offered := prompt.shelf.now()
	req, err := prompt.request(t, offered)
	if err != nil {
		return Said{}, err
	}
	before := t.said()
	l := &listener{sheet: callSheet{offered: offered}, room: roomBehind(before)}
	if d.OnDelta != nil {
		l.show = func(text string) { d.OnDelta(ctx, Delta{Text: text, Before: before}) }
	}
	if before != "" {
		l.lead = roundBreak
	}
	call, interrupted, release := signalFrom(ctx).merged(ctx)
	defer release()
	if isClosed(interrupted) {
		return Said{}, &model.InterruptedError{}
	}
	if total := cmp.Or(d.ModelLimits.Total, model.DefaultTotal); total > 0 { // for a model that overlooks its limits
		limited, cancel := context.WithTimeout(call, total+grace)
		defer cancel()
		call = limited
	}
	began := time.Now()
	err = guarded(call, func() error { return l.listen(call, m.Stream(call, req)) })
	said := l.heard()
	switch {
	case err != nil && isClosed(interrupted):
		err = &model.InterruptedError{Partial: said.Text}
	case errors.Is(err, errDeaf):
		err = fmt.Errorf("%w: %w", model.ErrTimeout, err)
	}
	tellOf(d.OnModelCall, d.log(), began, err)
	return said, err
}
