package modeltest

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/parley-run/parley/model"
)

// soon is how long a cancelled reply may go on, and soonChunks how many
// elements it may yield meanwhile.
const (
	soon       = time.Second
	soonChunks = 64
)

// wholeReply reads a text reply to its end (C-9.1).
func wholeReply(ctx context.Context, m model.Model, cfg Config) error {
	reply, deltas, err := read(ctx, m, cfg.Request)
	if err != nil {
		return err
	}
	if deltas < 2 {
		return fmt.Errorf("the reply %q came in %d deltas, want two or more", reply.Text, deltas)
	}
	if len(reply.Calls) > 0 || reply.Reason != model.FinishStop {
		return fmt.Errorf("a text reply has %d calls and ends with %q, want none and %q",
			len(reply.Calls), reply.Reason, model.FinishStop)
	}
	return nil
}

// callingReply reads a reply that calls tools.
func callingReply(ctx context.Context, m model.Model, cfg Config) error {
	reply, _, err := read(ctx, m, cfg.Calling)
	if err != nil {
		return err
	}
	if len(reply.Calls) == 0 || reply.Reason != model.FinishCalls {
		return fmt.Errorf("a calling reply has %d calls and ends with %q, want one or more and %q",
			len(reply.Calls), reply.Reason, model.FinishCalls)
	}
	seen := map[string]bool{}
	for _, call := range reply.Calls {
		if call.ID == "" || seen[call.ID] {
			return fmt.Errorf("call id %q is empty or not unique within the reply", call.ID)
		}
		seen[call.ID] = true
		offered := func(tool model.Tool) bool { return tool.Name == call.Name }
		if !slices.ContainsFunc(cfg.Calling.Tools, offered) {
			return fmt.Errorf("call of %q, which the request does not offer", call.Name)
		}
		if call.Args.Kind() != jsontext.KindBeginObject || !call.Args.IsValid() {
			return fmt.Errorf("arguments of a call are %s, want one JSON object", call.Args)
		}
	}
	return nil
}

// sameReply asks twice, and reads the second reply with Collect.
func sameReply(ctx context.Context, m model.Model, cfg Config) error {
	first, deltas, err := read(ctx, m, cfg.Request)
	if err != nil {
		return err
	}
	var heard []string
	second, err := model.Collect(m.Stream(ctx, cfg.Request), func(delta string) { heard = append(heard, delta) })
	if err != nil {
		return fmt.Errorf("second reply: %w", err)
	}
	if joined := strings.Join(heard, ""); joined != second.Text {
		return fmt.Errorf("the deltas join to %q, the reply is %q", joined, second.Text)
	}
	if cfg.Deterministic && (!reflect.DeepEqual(first, second) || len(heard) != deltas) {
		return fmt.Errorf("equal requests got %+v in %d deltas and %+v in %d", first, deltas, second, len(heard))
	}
	return nil
}

// requestUntouched compares a request before and after its reply.
func requestUntouched(ctx context.Context, m model.Model, cfg Config) error {
	before := clone(cfg.Request)
	if _, _, err := read(ctx, m, cfg.Request); err != nil {
		return err
	}
	if !reflect.DeepEqual(before, cfg.Request) {
		return fmt.Errorf("the request was %+v and is %+v", before, cfg.Request)
	}
	return nil
}

// doneContext asks under a context that is done.
func doneContext(ctx context.Context, m model.Model, cfg Config) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	_, err := model.Collect(m.Stream(ctx, cfg.Request), nil)
	return wantCanceled(err)
}

// cancelled cancels a reply after its first delta (C-9.1).
func cancelled(ctx context.Context, m model.Model, cfg Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var last error
	var at time.Time
	after := 0
	for chunk, err := range m.Stream(ctx, cfg.Request) {
		if last != nil {
			return fmt.Errorf("an element follows the error %q", last)
		}
		last = err
		switch {
		case !at.IsZero():
			if after++; after > soonChunks {
				return fmt.Errorf("%d elements after the cancellation", after)
			}
			if err == nil && chunk.Finish != nil {
				return errors.New("a cancelled reply ended as a whole one")
			}
		case chunk.Text != "":
			at = time.Now()
			cancel()
		}
	}
	if took := time.Since(at); took > soon {
		return fmt.Errorf("the reply ended %v after its cancellation, want within %v", took, soon)
	}
	return wantCanceled(last)
}

// leaving breaks out of replies; the bubble's end shows what they left behind,
// as it does not come while a goroutine is blocked.
func leaving(ctx context.Context, m model.Model, cfg Config) error {
	ctx = context.WithoutCancel(ctx) // the test's own end must not release it
	for range 3 {
		for _, err := range m.Stream(ctx, cfg.Request) {
			if err != nil {
				return fmt.Errorf("first element: %w", err)
			}
			break
		}
	}
	_ = m.Stream(ctx, cfg.Request) // a sequence that nobody ranges over
	return nil
}

// sideBySide asks from several goroutines at once; the race detector watches.
func sideBySide(ctx context.Context, m model.Model, cfg Config) error {
	const askers = 8
	replies, errs := make([]model.Reply, askers), make([]error, askers)
	var wg sync.WaitGroup
	for i := range askers {
		wg.Go(func() { replies[i], _, errs[i] = read(ctx, m, cfg.Request) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, reply := range replies {
		if cfg.Deterministic && !reflect.DeepEqual(reply, replies[0]) {
			return fmt.Errorf("askers at once got %+v and %+v", replies[0], reply)
		}
	}
	return nil
}

// read reads a whole reply and holds each chunk against the contract. It
// returns the number of its text deltas too.
func read(ctx context.Context, m model.Model, req model.Request) (reply model.Reply, deltas int, err error) {
	finished := false
	for chunk, err := range m.Stream(ctx, req) {
		switch {
		case err != nil:
			return reply, deltas, fmt.Errorf("whole reply: %w", err)
		case finished:
			return reply, deltas, errors.New("a chunk follows the end mark")
		case chunk.Text != "" && (chunk.Call != nil || chunk.Finish != nil), chunk.Call != nil && chunk.Finish != nil:
			return reply, deltas, errors.New("a chunk holds more than one thing")
		case !utf8.ValidString(chunk.Text):
			return reply, deltas, fmt.Errorf("delta %q is not valid UTF-8", chunk.Text)
		}
		switch {
		case chunk.Finish != nil:
			finished = true
			reply.Reason, reply.Usage = chunk.Finish.Reason, chunk.Finish.Usage
		case chunk.Call != nil:
			reply.Calls = append(reply.Calls, *chunk.Call)
		case chunk.Text != "":
			deltas++
			reply.Text += chunk.Text
		}
	}
	if !finished {
		return reply, deltas, errors.New("the reply ended without its end mark")
	}
	if reply.Usage.InputTokens < 0 || reply.Usage.OutputTokens < 0 {
		return reply, deltas, fmt.Errorf("usage %+v is negative", reply.Usage)
	}
	return reply, deltas, nil
}

// wantCanceled reports an error that is not the one of a cancelled context.
func wantCanceled(err error) error {
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("a cancelled reply ended with %v, want an error that wraps context.Canceled", err)
	}
	return nil
}

// clone copies a request deeply.
func clone(req model.Request) model.Request {
	req.Messages = slices.Clone(req.Messages)
	for i := range req.Messages {
		msg := &req.Messages[i]
		msg.Results = slices.Clone(msg.Results)
		msg.Calls = slices.Clone(msg.Calls)
		for j := range msg.Calls {
			msg.Calls[j].Args = msg.Calls[j].Args.Clone()
		}
	}
	req.Tools = slices.Clone(req.Tools)
	for i := range req.Tools {
		req.Tools[i].Schema = req.Tools[i].Schema.Clone()
	}
	return req
}
