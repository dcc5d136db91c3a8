package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/cmd/parley/printable"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/server/datadir"
)

// conversationCommands are parley conversation ….
type conversationCommands struct {
	List         conversationList   `cmd:"" help:"List your conversations, newest activity first."`
	Start        conversationStart  `cmd:"" help:"Start a conversation and print its id."`
	Show         conversationShow   `cmd:"" help:"Show a conversation."`
	Follow       conversationFollow `cmd:"" help:"Show a conversation, and what is said in it from now on."`
	Stop         conversationStop   `cmd:"" help:"End the answer that is being written, if one is."`
	Close        conversationClose  `cmd:"" help:"Close a conversation; it can still be read."`
	Participants participantsShow   `cmd:"" help:"Show who takes part in a conversation."`
	Add          participantAdd     `cmd:"" help:"Let somebody take part in a shared conversation of yours."`
	Remove       participantRemove  `cmd:"" help:"End somebody's part in a shared conversation of yours."`
	Waiting      waitingShow        `cmd:"" help:"Show whose messages wait, in the order in which they are taken up."`
}

// remoteFlags say which running server is meant, and who asks.
type remoteFlags struct {
	dataFlags
	clientFlags
}

// client returns a client of the running server.
func (f remoteFlags) client() (*client.Client, error) {
	path, err := f.path()
	if err != nil {
		return nil, err
	}
	dir, err := datadir.Existing(path)
	if err != nil {
		return nil, err
	}
	return f.connect(dir, absence{})
}

type conversationList struct{ remoteFlags }

// Run lists every conversation, a line each.
func (c *conversationList) Run(ctx context.Context, terminal console) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(terminal.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSTATE\tTURNS\tUPDATED\tTITLE")
	for cursor := ""; ; {
		page, err := server.List(ctx, cursor, conversation.MaxPage)
		if err != nil {
			return explain(ctx, err)
		}
		for _, listed := range page.Conversations {
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", listed.ID, listed.State, listed.Turns,
				listed.Updated.Local().Format(time.DateTime), printable.Line(listed.Title))
		}
		if page.Done {
			return table.Flush()
		}
		cursor = page.Next
	}
}

type conversationShow struct {
	remoteFlags
	ID string `arg:"" help:"The conversation's id, from parley conversation list."`
}

// Run prints the transcript.
func (c *conversationShow) Run(ctx context.Context, terminal console) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	info, err := server.Status(ctx, c.ID)
	if err != nil {
		return unknown(ctx, c.ID, err)
	}
	shared := ""
	if info.Shared {
		shared = "shared, "
	}
	fmt.Fprintf(terminal.out, "conversation %s, %s%s, %s\n", info.ID, shared, info.State, count(info.Turns, "turn"))
	options := conversation.HistoryOptions{Limit: conversation.MaxPage}
	for {
		page, err := server.History(ctx, c.ID, options)
		if err != nil {
			return unknown(ctx, c.ID, err)
		}
		for _, record := range page.Entries {
			writeRecord(terminal.out, info, record)
		}
		if page.Done {
			return nil
		}
		options.Cursor = &page.Next
	}
}

// speaker is whose entry it is, in a shared conversation with who asked (C-39.9).
func speaker(info conversation.Info, record conversation.Record) string {
	switch {
	case !info.Shared || record.Asker == nil:
		return string(record.Role)
	case record.Role == conversation.RoleUser:
		return "user " + printable.Line(record.Asker.Actor)
	}
	return string(record.Role) + " to " + printable.Line(record.Asker.Actor)
}

// writeRecord prints an entry: when, its ord, who, what became of it, and the
// text, whose further lines are set in.
func writeRecord(out io.Writer, info conversation.Info, record conversation.Record) {
	what := string(record.Status)
	if record.Reason != "" {
		what += " (" + string(record.Reason) + ")"
	}
	if record.EditOf > 0 {
		what += fmt.Sprintf(", edits %d", record.EditOf)
	}
	text := strings.ReplaceAll(printable.Lines(record.Text), "\n", "\n    ")
	fmt.Fprintf(out, "\n%s  ord %s  turn %d  %s, %s\n    %s\n",
		record.Time.Local().Format(time.DateTime), ordOf(record), record.Turn, speaker(info, record), printable.Line(what), text)
}

type conversationStop struct {
	remoteFlags
	ID string `arg:"" help:"The conversation's id, from parley conversation list."`
}

// Run stops the turn that runs (T25, T98), and says which.
func (c *conversationStop) Run(ctx context.Context, terminal console) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	_, question, err := survey(ctx, server, c.ID)
	running := question.Turn
	if err != nil {
		return unknown(ctx, c.ID, err)
	}
	if running == 0 {
		_, err := fmt.Fprintln(terminal.out, "no answer is being written")
		return err
	}
	if err := server.Stop(ctx, c.ID, running); err != nil {
		return unknown(ctx, c.ID, err)
	}
	_, err = fmt.Fprintf(terminal.out, "turn %d is to stop\n", running)
	return err
}

type conversationClose struct {
	remoteFlags
	ID string `arg:"" help:"The conversation's id, from parley conversation list."`
}

// Run closes the conversation.
func (c *conversationClose) Run(ctx context.Context) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	return unknown(ctx, c.ID, server.Close(ctx, c.ID))
}

// unknown says which conversation is not there, or is not the caller's: the two
// cannot be told apart (C-23.7).
func unknown(ctx context.Context, id string, err error) error {
	switch {
	case errors.Is(err, conversation.ErrNotFound):
		return fmt.Errorf("no conversation %q of yours; see parley conversation list", id)
	case errors.Is(err, conversation.ErrForbidden):
		return fmt.Errorf("conversation %q is not shared, or not yours to manage; see parley conversation participants", id)
	}
	return explain(ctx, err)
}
