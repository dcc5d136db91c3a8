package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/cmd/parley/printable"
	"github.com/parley-run/parley/conversation"
)

// ask is a message that awaits its answer.
type ask struct {
	text string
	sent bool
	turn int  // 0 until its record is read
	stop bool // it is to be stopped as soon as its turn is known
}

// stream is what is told of the conversation while an answer is awaited.
type stream struct {
	events chan heard // closed when there is nothing more to come
	stop   context.CancelFunc
}

// heard is an event, or why there are no more.
type heard struct {
	event client.Event
	err   error
}

// heard is the stream's events, nil without a stream.
func (s *stream) heard() <-chan heard {
	if s == nil {
		return nil
	}
	return s.events
}

// await puts a message behind those that await their answers.
func (t *talk) await(a *ask) {
	t.asks = append(t.asks, a)
	if t.interactive {
		t.brake.arm()
	}
}

// answered takes a message from those that await their answers.
func (t *talk) answered(a *ask) {
	t.asks = slices.DeleteFunc(t.asks, func(other *ask) bool { return other == a })
	if len(t.asks) == 0 {
		t.brake.disarm()
	}
}

// attend opens the stream when there is an answer to come, and leaves it when
// there is none. Neither a server that restarts meanwhile nor a lost connection
// changes anything: the transcript is read on from where it was.
func (t *talk) attend(ctx context.Context) {
	coming := slices.ContainsFunc(t.asks, func(a *ask) bool { return a.sent })
	switch {
	case t.stream == nil && coming:
		ctx, stop := context.WithCancel(ctx)
		s := &stream{events: make(chan heard), stop: stop}
		from := t.read
		t.stream = s
		t.working.Go(func() {
			defer close(s.events)
			for event, err := range t.server.Follow(ctx, t.id, from) {
				select {
				case s.events <- heard{event, err}:
				case <-ctx.Done():
					return
				}
			}
		})
	case t.stream != nil && len(t.asks) == 0:
		t.stream.stop()
		t.stream = nil
	}
}

// follow takes in what the stream tells.
func (t *talk) follow(h heard, more bool) error {
	switch {
	case h.err != nil:
		return h.err
	case !more || h.event.Kind == client.Closed:
		return fmt.Errorf("conversation %s: %w", t.id, conversation.ErrClosed)
	}
	switch h.event.Kind {
	case client.Lost:
		t.connection(true)
	case client.Status:
		t.connection(false)
	case client.Delta, client.Partial, client.Reset:
		t.live.show(h.event.Words)
	case client.Message:
		cursor := h.event.Record.Cursor
		t.read = &cursor
		if h.event.Missed {
			t.meanwhile(h.event.Record)
		}
		t.hear(h.event.Record)
	}
	return nil
}

// connection says, once, that the connection is lost or there again.
func (t *talk) connection(lost bool) {
	if lost {
		t.link.broken()
	} else {
		t.link.whole()
	}
}

// meanwhile shows a person what they said on another device while the connection
// was lost: the answer to it comes next.
func (t *talk) meanwhile(record conversation.Record) {
	if t.interactive && record.Status == conversation.StatusAccepted && t.readers.mine(record) && t.askOf(record) == nil {
		t.live.freshLine()
		writeEntry(t.terminal.out, record, t.readers)
	}
}

// hear takes in an entry. Others may write here too: an entry of a person is that
// of the first message like it that is still without a turn. A rejection may have
// no text, and is then taken for one of ours.
func (t *talk) hear(record conversation.Record) {
	if !t.readers.mine(record) {
		t.overhear(record)
		return
	}
	if record.Role == conversation.RoleAssistant {
		t.print(record)
		for _, a := range slices.Clone(t.asks) {
			if a.turn == record.Turn {
				t.answered(a)
			}
		}
		return
	}
	a := t.askOf(record)
	if a == nil {
		return
	}
	if record.Status == conversation.StatusRejected {
		t.fail("the message was rejected: %s", rejection(record.Reason))
		t.answered(a)
		return
	}
	if a.turn = record.Turn; a.stop {
		t.stopTurn(a.turn)
	}
}

// askOf returns the ask that an entry of a person is the record of, nil if it is
// none of ours.
func (t *talk) askOf(record conversation.Record) *ask {
	rejected := record.Status == conversation.StatusRejected
	i := slices.IndexFunc(t.asks, func(a *ask) bool {
		return a.turn == 0 && (a.text == record.Text || rejected && record.Text == "")
	})
	if i < 0 {
		return nil
	}
	return t.asks[i]
}

// rejection says why, and what to do where it is not plain.
func rejection(reason conversation.Reason) string {
	switch reason {
	case conversation.ReasonEditInvalid:
		return string(reason) + "; an edit takes the ORD of one of your own messages that the agent still has before it, see /history"
	case conversation.ReasonPromptTooLarge:
		return string(reason) + "; it does not fit into the model's context window, send it in pieces"
	}
	return string(reason)
}

// print shows an answer, or why there is none.
func (t *talk) print(record conversation.Record) {
	switch {
	case record.Status == conversation.StatusFailed:
		t.live.leave()
		t.fail("no answer: %s, error id %s", record.Reason, record.ErrorID)
	case t.live != nil:
		t.live.finish(record)
	default:
		fmt.Fprintln(t.terminal.out, printable.Lines(record.Text))
		if record.Status == conversation.StatusInterrupted {
			t.note("the answer was interrupted")
		}
	}
}

// fail says why a line got no answer.
func (t *talk) fail(format string, args ...any) {
	t.failed++
	t.note(format, args...)
}

// note says something that is no answer, on a line of its own.
func (t *talk) note(format string, args ...any) {
	t.live.freshLine()
	fmt.Fprintf(t.terminal.err, "parley: %s\n", printable.Line(fmt.Sprintf(format, args...)))
}
