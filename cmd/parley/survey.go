package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/cmd/parley/printable"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal"
)

// backward reads a history from its end, until see is content. A page may be short before it is the last one (C-17.3).
func backward(ctx context.Context, server *client.Client, id string, limit int, see func(conversation.Record) (more bool)) error {
	options := conversation.HistoryOptions{Limit: limit, Direction: journal.Backward}
	for {
		page, err := server.History(ctx, id, options)
		if err != nil {
			return err
		}
		for _, record := range page.Entries {
			if !see(record) {
				return nil
			}
		}
		if page.Done {
			return nil
		}
		options.Cursor = &page.Next
	}
}

// lastEntries reads the last n entries, the newest first.
func lastEntries(ctx context.Context, server *client.Client, id string, n int) (entries []conversation.Record, err error) {
	err = backward(ctx, server, id, n, func(record conversation.Record) bool {
		entries = append(entries, record)
		return len(entries) < n
	})
	return entries, err
}

// survey returns the place of the newest entry, nil if there is none, and the question
// whose answer is being written, with the turn 0 if none is: a message that was
// accepted and has no answer says so (C-15.15), and one that is restricted was accepted.
func survey(ctx context.Context, server *client.Client, id string) (last *conversation.Cursor, running conversation.Record, err error) {
	err = backward(ctx, server, id, entriesShown, func(record conversation.Record) bool {
		if last == nil {
			last = &record.Cursor
		}
		if begins(record) {
			running = record
		}
		return record.Status == conversation.StatusRejected
	})
	return last, running, err
}

// writeEntry prints an entry for who looks back: its ord, who, the text, whose
// further lines are set in, and what is to be known of it.
func writeEntry(out io.Writer, record conversation.Record, readers readers) {
	who, mark := "agent", ""
	switch record.Role {
	case conversation.RoleUser:
		who = readers.name(record)
	case conversation.RoleNotice:
		who = "notice"
	}
	switch {
	case record.Status == conversation.StatusRestricted:
		mark = "[restricted: you are not cleared for what this has touched]"
	case record.EditOf > 0:
		mark = fmt.Sprintf(" [edits %d]", record.EditOf)
	case record.Status == conversation.StatusInterrupted:
		mark = " " + markInterrupted
	case record.Reason != "":
		mark = fmt.Sprintf(" [%s: %s]", record.Status, record.Reason)
	}
	text := strings.ReplaceAll(printable.Lines(record.Text), "\n", "\n      ")
	fmt.Fprintf(out, "%4s  %s: %s%s\n", ordOf(record), who, text, printable.Line(mark))
}

// ordOf names an entry, in logs that are older than ords with a dash (C-15.9).
func ordOf(record conversation.Record) string {
	if record.Ord == 0 {
		return "-"
	}
	return strconv.Itoa(record.Ord)
}
