// Package modeltest says by test what a model is.
//
// An implementation of [model.Model] is finished when [Run] passes. Each check
// runs in a testing/synctest bubble of its own, so waiting costs no time and a
// goroutine that a reply leaves behind fails the check.
package modeltest

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/model"
)

// Config says what a model under test is asked.
type Config struct {
	// Request is answered with a text of two deltas or more, without a call.
	// Its zero value is one user message, "Good morning to you.".
	Request model.Request
	// Calling is answered with one tool call or more. Without messages, that
	// check is left out.
	Calling model.Request
	// Deterministic says that equal requests get equal replies.
	Deterministic bool
}

// Run proves that what open returns keeps the contract of [model.Model]. It
// calls open anew for each check, inside the check's bubble; what open starts
// is stopped by t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) model.Model, cfg Config) {
	t.Helper()
	if len(cfg.Request.Messages) == 0 {
		cfg.Request.Messages = []model.Message{{Role: model.User, Text: "Good morning to you."}}
	}
	for _, c := range checks {
		if c.needsCalls && len(cfg.Calling.Messages) == 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if err := c.run(t.Context(), open(t), cfg); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// check is one promise of the contract. It returns how the promise was broken.
type check struct {
	name       string
	needsCalls bool
	run        func(ctx context.Context, m model.Model, cfg Config) error
}

var checks = []check{
	{name: "a whole reply ends with its end mark", run: wholeReply},
	{name: "a calling reply holds whole calls", needsCalls: true, run: callingReply},
	{name: "equal requests get equal replies", run: sameReply},
	{name: "the request is left as it was", run: requestUntouched},
	{name: "a context that is done gets no reply", run: doneContext},
	{name: "cancellation ends a reply soon", run: cancelled},
	{name: "leaving a reply releases it", run: leaving},
	{name: "requests run side by side", run: sideBySide},
}
