package agent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// The hook is told of each attempt at a model call with what it came to and what
// it took, and of none that is served from the log; one that panics stops nothing
// (C-13.20).
func TestOnModelCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		l := newLab(t, fails(&at, "", model.ErrUnavailable, model.ErrRateLimited))
		var log bytes.Buffer
		l.def.Log = slog.New(slog.NewTextHandler(&log, nil))
		var told []error
		l.def.OnModelCall = func(call ModelCall) {
			told = append(told, call.Err)
			panic("hook")
		}
		if got := l.ask("hi"); got.Reply.Text != "whole" {
			t.Errorf("came to %+v, want the reply", got)
		}
		l.stop()
		l.boot()
		synctest.Wait()
		want := []error{model.ErrUnavailable, model.ErrRateLimited, nil}
		if len(told) != len(want) {
			t.Fatalf("told of %v, want %v", told, want)
		}
		for i := range want {
			if !errors.Is(told[i], want[i]) {
				t.Errorf("call %d is told to have come to %v, want %v", i, told[i], want[i])
			}
		}
		if n := strings.Count(log.String(), "the hook of model calls panicked"); n != 3 {
			t.Errorf("%d panics are logged, want 3:\n%s", n, log.String())
		}
	})
}

// A call that is cut is told as interrupted, with the time until then; one that
// was not made because its run was cut before is not told (C-14.15).
func TestOnModelCallInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, plays(t, "otherwise\n  say \"One. \"\n  wait 5s\n  say \"Two.\""))
		cut := make(chan struct{})
		l.sign = func(context.Context) <-chan struct{} { return cut }
		var told []ModelCall
		l.def.OnModelCall = func(call ModelCall) { told = append(told, call) }
		time.AfterFunc(2*time.Second, func() { close(cut) })
		l.ask("hi")
		l.ask("cut before it begins")
		if len(told) != 1 || told[0].Took != 2*time.Second {
			t.Fatalf("told of %v, want one call of 2s", told)
		}
		if _, interrupted := errors.AsType[*model.InterruptedError](told[0].Err); !interrupted {
			t.Errorf("told that it came to %v, want an interruption", told[0].Err)
		}
	})
}

// The calls of a summarizer are told too.
func TestOnModelCallOfASummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []error
		effect, err := NewSummarizer(SummarizerConfig{
			Model: plays(t, "otherwise\n  fail refused"), Log: quiet(),
			OnModelCall: func(call ModelCall) { told = append(told, call.Err) },
		})
		if err != nil {
			t.Fatal(err)
		}
		summing(t, effect, []Message{NewMessage(model.User, taint.Plain("Oslo."))})
		if len(told) != 1 || !errors.Is(told[0], model.ErrRefused) {
			t.Errorf("told of %v, want one refusal", told)
		}
	})
}
