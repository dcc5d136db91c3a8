package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

const (
	// maxLine is the longest line that is read; the server's own bound on a text
	// is smaller.
	maxLine = 1 << 20
	// resend is how long a message that did not get through waits.
	resend = 500 * time.Millisecond
)

// talk is one conversation on a terminal.
type talk struct {
	server      *client.Client
	id          string
	terminal    console
	interactive bool
	live        *liveReply // shows words as they come; nil to print whole answers

	read   *conversation.Cursor // up to here the transcript is known
	asked  int                  // lines that were sent
	failed int                  // of them, those without an answer
}

// run sends each line and prints its answer, until the input ends.
func (t *talk) run(ctx context.Context) error {
	if err := t.skip(ctx); err != nil {
		return explain(ctx, err)
	}
	lines := bufio.NewScanner(t.terminal.in)
	lines.Buffer(nil, maxLine)
	for t.prompt(); lines.Scan(); t.prompt() {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		t.asked++
		if err := t.say(ctx, strings.ToValidUTF8(text, "\uFFFD")); err != nil {
			return explain(ctx, err)
		}
	}
	if t.interactive {
		fmt.Fprintln(t.terminal.out)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("a line is longer than %d bytes; send it in pieces", maxLine)
	case err != nil:
		return fmt.Errorf("read a line: %w", err)
	}
	if t.failed > 0 {
		return fmt.Errorf("%d of %s got no answer", t.failed, count(t.asked, "line"))
	}
	return nil
}

func (t *talk) prompt() {
	if t.interactive {
		fmt.Fprint(t.terminal.out, "> ")
	}
}

// skip goes to the end of what was said before.
func (t *talk) skip(ctx context.Context) error {
	page, err := t.server.History(ctx, t.id, conversation.HistoryOptions{Limit: 1, Direction: journal.Backward})
	if err == nil && len(page.Entries) > 0 {
		t.read = &page.Entries[0].Cursor
	}
	return err
}

// say sends a text and prints what is said until it is answered. Neither a
// server that restarts meanwhile nor a lost connection changes anything: the
// message has one id, and the transcript is read on from where it was.
func (t *talk) say(ctx context.Context, text string) error {
	sent, err := t.send(ctx, text)
	if err != nil || !sent {
		return err
	}
	turn := 0
	for event, err := range t.server.Follow(ctx, t.id, t.read) {
		if err != nil {
			t.live.leave()
			return err
		}
		switch event.Kind {
		case client.Delta, client.Partial, client.Reset:
			t.live.show(event.Words)
		case client.Closed:
			t.live.leave()
			return fmt.Errorf("conversation %s: %w", t.id, conversation.ErrClosed)
		case client.Message:
			t.read = &event.Record.Cursor
			if t.hear(event.Record, text, &turn) {
				return nil
			}
		}
	}
	return fmt.Errorf("conversation %s: %w", t.id, conversation.ErrClosed)
}

// hear prints an entry and reports whether the text is dealt with. Others may
// write here too: the text's own turn is that of the first question like it. A
// rejection may be without a text, and is then taken for the text's.
func (t *talk) hear(record conversation.Record, text string, turn *int) (done bool) {
	rejected := record.Status == conversation.StatusRejected
	own := record.Role == conversation.RoleUser && *turn == 0 && (record.Text == text || rejected && record.Text == "")
	switch {
	case own && rejected:
		t.complain("the message was rejected: %s", record.Reason)
		return true
	case own:
		*turn = record.Turn
		return false
	case record.Role != conversation.RoleAssistant:
		return false
	case record.Status == conversation.StatusFailed:
		t.live.leave()
		t.complain("no answer: %s, error id %s", record.Reason, record.ErrorID)
	default:
		fmt.Fprintln(t.terminal.out, t.live.rest(record))
	}
	return record.Turn == *turn
}

// complain says why a line got no answer.
func (t *talk) complain(format string, args ...any) {
	t.failed++
	fmt.Fprintf(t.terminal.err, "parley: %s\n", printable(fmt.Sprintf(format, args...)))
}

// send sends a text until it gets through, always under the same id, so that it
// arrives once. A text that the server will never take is complained about.
func (t *talk) send(ctx context.Context, text string) (sent bool, err error) {
	id := kernel.NewID()
	for deadline := time.Now().Add(patience); ; {
		_, err := t.server.Send(ctx, t.id, conversation.Message{Text: text, ID: id})
		if err == nil {
			return true, nil
		}
		if errors.Is(err, conversation.ErrInvalidTurn) || errors.Is(err, client.ErrTooLarge) {
			t.complain("%v", err)
			return false, nil
		}
		if !mayPass(err) || ctx.Err() != nil || time.Now().After(deadline) {
			return false, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(resend):
		}
	}
}

// mayPass reports whether an error may be gone the next time: the server is
// away, has failed, or has too much to do.
func mayPass(err error) bool {
	refused, ok := errors.AsType[*client.Error](err)
	return !ok || refused.Status >= 500 || refused.Status == 429
}
