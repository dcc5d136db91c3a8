package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/kernel"
)

// talk is one conversation on a terminal, or in a pipe. A person's lines are
// taken at any time, so that one can interrupt; those of a pipe one after another,
// each when the last is answered.
//
// The goroutine of run owns the screen and all of the talk. Lines, the stream's
// events and the outcomes of orders come to it.
type talk struct {
	server      *client.Client
	away        news // whether requests reach the server; nil if nobody says
	link        *link
	id          string
	terminal    console
	interactive bool       // a person types, and reads
	live        *liveReply // shows words as they come; nil to print whole answers
	brake       *brake

	readers  readers              // who else can write here
	other    string               // who is answered, if it is not the person
	read     *conversation.Cursor // up to here the transcript is known
	asks     []*ask               // what awaits an answer, oldest first
	stream   *stream              // there while something does
	prompted bool                 // the person was asked for a line

	orders   []order
	under    *order     // on its way, nil if none is
	outcomes chan error // its outcome
	working  sync.WaitGroup

	asked  int // lines that were sent
	failed int // of them, those without an answer
}

// run takes lines and prints answers, until the input ends and everything is
// answered.
func (t *talk) run(ctx context.Context) error {
	ctx, leave := context.WithCancel(ctx)
	defer t.working.Wait()
	defer leave()
	t.outcomes = make(chan error, 1)
	if err := t.begin(ctx); err != nil {
		return explain(ctx, err)
	}
	in := readLines(ctx, t.terminal.in)
	for ended := false; !ended || !t.idle(); {
		t.prompt(ended)
		t.work(ctx)
		var err error
		select {
		case line, ok := <-t.lines(in, ended):
			if ended = !ok; ok {
				t.take(line)
			}
		case outcome := <-t.outcomes:
			err = t.settle(outcome)
		case heard, ok := <-t.stream.heard():
			err = t.follow(heard, ok)
		case away := <-t.away:
			t.connection(away)
		case <-t.brake.stops():
			if len(t.asks) > 0 { // else the answer was quicker
				t.halt()
			}
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err == nil {
			t.attend(ctx)
			continue
		}
		t.live.leave()
		return explain(ctx, err)
	}
	return t.end(in.err)
}

// begin goes to the end of what was said before. A person is shown the answer
// that is being written just then.
func (t *talk) begin(ctx context.Context) error {
	readers, err := readersOf(ctx, t.server, t.id)
	if err != nil {
		return err
	}
	newest, running, err := survey(ctx, t.server, t.id)
	if err != nil {
		return err
	}
	t.read, t.readers = newest, readers
	switch {
	case running.Turn == 0:
	case !readers.mine(running):
		t.answers(running)
	case t.interactive:
		t.await(&ask{turn: running.Turn, sent: true})
		t.attend(ctx)
	}
	return nil
}

// lines are the lines to take now: a pipe's wait until nothing else is to do.
func (t *talk) lines(in *input, ended bool) <-chan string {
	if ended || !t.interactive && !t.idle() {
		return nil
	}
	return in.lines
}

// idle reports whether nothing is on its way.
func (t *talk) idle() bool { return len(t.asks) == 0 && t.under == nil && len(t.orders) == 0 }

// prompt asks a person for a line, once, when nothing is on its way.
func (t *talk) prompt(ended bool) {
	if t.interactive && t.idle() && !t.prompted && !ended {
		fmt.Fprint(t.terminal.out, "> ")
		t.prompted = true
	}
}

// end says what the talk comes to.
func (t *talk) end(err error) error {
	if t.prompted {
		fmt.Fprintln(t.terminal.out)
	}
	if err == nil && t.failed > 0 {
		err = fmt.Errorf("%d of %s got no answer", t.failed, count(t.asked, "line"))
	}
	return err
}

// take does what a line says.
func (t *talk) take(line string) {
	t.prompted = false
	t.live.entered()
	text := strings.TrimSpace(strings.ToValidUTF8(line, "\uFFFD"))
	switch {
	case text == "":
	case t.interactive && len(line) == terminalLine:
		t.asked++
		t.fail("not sent: a terminal keeps %d bytes of a line, so the end of this one may be lost; longer lines go through a pipe", terminalLine)
	case strings.HasPrefix(text, "//"):
		t.say(conversation.Message{Text: text[1:]})
	case text[0] == '/':
		t.command(text)
	default:
		t.say(conversation.Message{Text: text})
	}
}

// say sends a message, under one id however often it takes (T26). What the server
// will never take is complained about.
func (t *talk) say(m conversation.Message) {
	m.ID = kernel.NewID()
	a := &ask{text: m.Text}
	t.asked++
	t.await(a)
	t.want(order{
		do: func(ctx context.Context) error {
			_, err := t.server.Send(ctx, t.id, m)
			return err
		},
		done: func(err error) error {
			if errors.Is(err, conversation.ErrInvalidTurn) || errors.Is(err, client.ErrTooLarge) {
				t.fail("%v%s", err, remedy(err))
				t.answered(a)
				return nil
			}
			a.sent = err == nil
			if a.sent && t.interactive && t.readers.shared {
				t.place(m.Text)
			}
			return err
		},
	})
}

// remedy says what to do about a message that the server will never take, where
// it is not plain.
func remedy(err error) string {
	refused, ok := errors.AsType[*client.Error](err)
	if ok && refused.Reason == string(conversation.TextTooLong) || errors.Is(err, client.ErrTooLarge) {
		return "; send it in pieces"
	}
	return ""
}
