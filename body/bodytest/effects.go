package bodytest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parley-run/parley/body"
)

var errNo = errors.New("it may not")

// actsOnce: L-9.1, L-4.2.
func actsOnce(t *testing.T, s *trial) {
	c := s.effect("x.1", s.Act, nil)
	result, err := s.Adapter.Perform(t.Context(), c.effect)
	if err != nil || !result.IsValid() {
		t.Fatalf("Perform = %q, %v; want a JSON value", result, err)
	}
	if c.asked != 1 {
		t.Errorf("Begin was called %d times, want once", c.asked)
	}
	if !s.Alive("x.1") {
		t.Error("the body is not alive after the effect")
	}
}

// refusedBegin: L-4.2, L-8.8, L-13.3.
func refusedBegin(t *testing.T, s *trial) {
	c := s.effect("x.1", s.Act, errNo)
	if _, err := s.Adapter.Perform(t.Context(), c.effect); !errors.Is(err, errNo) {
		t.Errorf("Perform = %v, want the error of Begin", err)
	}
	if c.asked != 1 || s.Alive("x.1") {
		t.Errorf("Begin was called %d times, the body lives: %t; want once and false", c.asked, s.Alive("x.1"))
	}
}

// badInput: a definite refusal, and nothing of a hostile input is done.
func badInput(t *testing.T, s *trial) {
	for _, step := range []Step{s.Unknown, s.Bad} {
		c := s.effect("x.1", step, nil)
		if _, err := s.Adapter.Perform(t.Context(), c.effect); !errors.Is(err, body.ErrRefused) {
			t.Errorf("Perform(%q, %q) = %v, want ErrRefused", step.Action, step.Input, err)
		}
	}
	if s.Alive("x.1") {
		t.Error("the body came to life by an effect that was refused")
	}
}

// cutBefore: a ctx that is done before the effect begins leaves nothing begun.
func cutBefore(t *testing.T, s *trial) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := s.effect("x.1", s.Act, nil)
	c.effect.Begin = func(ctx context.Context) error { return ctx.Err() }
	if _, err := s.Adapter.Perform(ctx, c.effect); err == nil {
		t.Error("Perform under a ctx that is done = nil, want an error")
	}
	if s.Alive("x.1") {
		t.Error("the body came to life by an effect that was cut before it began")
	}
}

// cutDuring: cancelling a call is not stopping the work. The call returns, its
// outcome is not known, and only a stop makes an end (LC-14, notes finding 8).
func cutDuring(t *testing.T, s *trial) {
	_, life := s.must(t, "x.1", s.Act)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := s.effect("x.1", s.Hang, nil)
	begun := make(chan struct{})
	c.effect.Begin = func(context.Context) error { close(begun); return nil }
	answer := make(chan error, 1)
	go func() {
		_, err := s.Adapter.Perform(ctx, c.effect)
		answer <- err
	}()
	<-begun
	cancel()
	select {
	case err := <-answer:
		if err == nil || errors.Is(err, body.ErrRefused) {
			t.Errorf("Perform that was cut = %v; want an error that is not definite", err)
		}
	case <-time.After(s.Grace):
		t.Fatalf("Perform has not returned %v after its ctx ended", s.Grace)
	}
	life.Unsettled = []string{c.effect.Operation}
	if _, err := s.stop(t, life, nil); err != nil {
		t.Errorf("Stop = %v", err)
	}
	s.over(t, s.Adapter, life)
}

// handover: nothing of the former holder's is reachable by the next (L-13.5,
// LC-48).
func handover(t *testing.T, s *trial) {
	_, first := s.must(t, "x.1", s.Leave)
	if result, _ := s.must(t, "x.1", s.Look); !strings.Contains(string(result), Mark) {
		t.Fatalf("the life itself sees %q, not what it left: the case proves nothing", result)
	}
	if _, err := s.stop(t, first, nil); err != nil {
		t.Errorf("Stop = %v", err)
	}
	s.over(t, s.Adapter, first)
	if result, _ := s.must(t, "x.2", s.Look); strings.Contains(string(result), Mark) {
		t.Errorf("the next life sees %q", result)
	}
}
