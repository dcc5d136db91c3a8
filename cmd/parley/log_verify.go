package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/parley-run/parley/cmd/parley/printable"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

type logVerify struct{ logFlags }

// Run checks the log and says what it has checked, or what is wrong and where.
func (c *logVerify) Run(ctx context.Context, terminal console) (err error) {
	store, done, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	found, err := c.verify(ctx, store)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(terminal.out, "whole: %s, %s, %s in the inbox\n",
		count(found.generations, "generation"), count(found.facts, "fact"), count(found.messages, "message"))
	return err
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

// verified is what a log was found to hold.
type verified struct{ generations, facts, messages int }

// verify checks every generation and the inbox: sequences without gaps, a start
// in the first place, an end nowhere but in the last, and data that can be read.
func (c *logVerify) verify(ctx context.Context, store journal.Store) (found verified, err error) {
	if found.generations, err = c.generations(ctx, store); err != nil {
		return found, err
	}
	if found.messages, err = c.checkInbox(ctx, store); err != nil {
		return found, err
	}
	for generation := range found.generations {
		facts, last, err := c.checkGeneration(ctx, store, generation, found.messages)
		if err != nil {
			return found, err
		}
		head := generation == found.generations-1
		switch {
		case !head && last != kernel.KindContinued:
			return found, c.wrong(generation, facts-1, "a later generation exists, but this one does not end with %s", kernel.KindContinued)
		case head && last == kernel.KindContinued:
			return found, c.wrong(generation, facts-1, "it says %s, but there is no later generation", kernel.KindContinued)
		}
		found.facts += facts
	}
	return found, nil
}

// wrong says what is wrong in a generation, and where.
func (c *logVerify) wrong(generation, seq int, format string, args ...any) error {
	return fmt.Errorf("log of %s, generation %d, event %d: %s", c.ID, generation, seq, fmt.Sprintf(format, args...))
}

// checkGeneration returns how many facts the generation has, and the kind of
// the last.
func (c *logVerify) checkGeneration(ctx context.Context, store journal.Store, generation, messages int) (facts int, last string, err error) {
	for event, err := range eventsOf(ctx, store, kernel.StreamOf(c.ID, generation)) {
		switch {
		case err != nil:
			return facts, last, err
		case event.Seq != journal.Seq(facts):
			return facts, last, c.wrong(generation, facts, "it is missing; the next one is event %d", event.Seq)
		case (facts == 0) != (event.Kind == kernel.KindStarted):
			return facts, last, c.wrong(generation, facts, "%s in this place", printable.Line(event.Kind))
		case last == kernel.KindContinued || last == kernel.KindEnded:
			return facts, last, c.wrong(generation, facts, "it comes after the end")
		}
		if err := checkFact(event, messages); err != nil {
			return facts, last, c.wrong(generation, facts, "%v", err)
		}
		facts++
		last = event.Kind
	}
	return facts, last, nil
}

// checkInbox returns how many messages the inbox holds.
func (c *logVerify) checkInbox(ctx context.Context, store journal.Store) (messages int, err error) {
	for event, err := range eventsOf(ctx, store, kernel.InboxStream(c.ID)) {
		if err != nil {
			return messages, err
		}
		what := ""
		if event.Seq != journal.Seq(messages) {
			what = fmt.Sprintf("it is missing; the next one is event %d", event.Seq)
		} else if event.Kind != kernel.KindMessage {
			what = "it is no message"
		} else if _, err := kernel.DecodeEvent[kernel.Message](event); err != nil {
			what = err.Error()
		}
		if what != "" {
			return messages, fmt.Errorf("inbox of %s, event %d: %s", c.ID, messages, what)
		}
		messages++
	}
	return messages, nil
}

// checkFact reads one fact's data.
func checkFact(event journal.Event, messages int) error {
	switch event.Kind {
	case kernel.KindStarted:
		return decodes[kernel.Started](event)
	case kernel.KindDecided:
		return decodes[kernel.Decided](event)
	case kernel.KindRequested:
		return decodes[kernel.Requested](event)
	case kernel.KindSettled:
		return decodes[kernel.Settled](event)
	case kernel.KindEnded:
		return decodes[kernel.Ended](event)
	case kernel.KindConsumed:
		consumed, err := kernel.DecodeEvent[kernel.Consumed](event)
		if err == nil && consumed.Cursor > journal.Seq(messages) {
			err = fmt.Errorf("it consumed message %d, and the inbox holds %d", consumed.Cursor-1, messages)
		}
		return err
	case kernel.KindContinued:
		return nil
	}
	return fmt.Errorf("unknown kind %s", printable.Line(event.Kind))
}

func decodes[T any](event journal.Event) error {
	_, err := kernel.DecodeEvent[T](event)
	return err
}
