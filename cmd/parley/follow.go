package main

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/cmd/parley/printable"
	"github.com/parley-run/parley/conversation"
)

type conversationFollow struct {
	remoteFlags
	ID   string `arg:"" help:"The conversation's id, from parley conversation list."`
	New  bool   `help:"Leave out what was said before."`
	JSON bool   `help:"Print each entry as one line of JSON."`
}

// Run prints the transcript and each entry that comes, until the conversation is
// closed, or until a signal. A server that goes away is waited for.
func (c *conversationFollow) Run(ctx context.Context, terminal console) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(ctx, nil)
	defer stop()
	if _, err := server.Status(ctx, c.ID); err != nil {
		return unknown(ctx, c.ID, err) // at once, also where no server runs
	}
	var from *conversation.Cursor
	if c.New {
		if from, _, err = survey(ctx, server, c.ID); err != nil {
			return unknown(ctx, c.ID, err)
		}
	}
	path, err := c.path()
	if err != nil {
		return err
	}
	link := &link{server: path, say: func(format string, args ...any) {
		fmt.Fprintf(terminal.err, "parley: %s\n", printable.Line(fmt.Sprintf(format, args...)))
	}}
	err = c.follow(server.Follow(ctx, c.ID, from), link, terminal.out)
	if err != nil && ctx.Err() == nil {
		return unknown(ctx, c.ID, err)
	}
	return nil
}

// follow prints the entries of a stream.
func (c *conversationFollow) follow(events func(func(client.Event, error) bool), link *link, out io.Writer) error {
	var info conversation.Info
	for event, err := range events {
		if err != nil {
			return err
		}
		switch event.Kind {
		case client.Lost:
			link.broken()
		case client.Status:
			info = event.Info
			link.whole()
		case client.Message:
			if err := c.print(out, info, event.Record); err != nil {
				return err
			}
		}
	}
	return nil
}

// print prints an entry.
func (c *conversationFollow) print(out io.Writer, info conversation.Info, record conversation.Record) error {
	if !c.JSON {
		writeRecord(out, info, record)
		return nil
	}
	line, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("entry %s: %w", record.Cursor, err)
	}
	_, err = fmt.Fprintln(out, escaped(string(line)))
	return err
}

// escaped is a line of JSON without what a terminal would act on: where a
// character is not harmless its escape stands.
func escaped(line string) string {
	var safe strings.Builder
	for _, r := range line {
		switch {
		case printable.Harmless(r):
			safe.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&safe, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&safe, `\u%04x`, r)
		}
	}
	return safe.String()
}
