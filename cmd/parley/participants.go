package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/parley-run/parley/cmd/parley/printable"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
)

// errNoShared says that who may start shared conversations is somebody else (C-33.10).
var errNoShared = errors.New("the server does not let you start a shared conversation")

type conversationStart struct {
	remoteFlags
	Shared bool `help:"Others may take part; see parley conversation add."`
}

// Run starts a conversation and prints its id.
func (c *conversationStart) Run(ctx context.Context, terminal console) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	start := server.Start
	if c.Shared {
		start = server.StartShared
	}
	id, err := start(ctx)
	if errors.Is(err, conversation.ErrForbidden) {
		return errNoShared
	}
	if err != nil {
		return explain(ctx, err)
	}
	_, err = fmt.Fprintln(terminal.out, id)
	return err
}

type participantsShow struct {
	remoteFlags
	ID string `arg:"" help:"The conversation's id, from parley conversation list."`
}

// Run lists who takes part, a line each.
func (c *participantsShow) Run(ctx context.Context, terminal console) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	people, err := server.Participants(ctx, c.ID)
	if err != nil {
		return unknown(ctx, c.ID, err)
	}
	table := tabwriter.NewWriter(terminal.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ACTOR\tTENANT\tON BEHALF OF\tSINCE\tOWNER")
	for _, p := range people.Participants {
		owner := "-"
		if p.Owner {
			owner = "owner"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", printable.Line(p.Identity.Actor), word(p.Identity.Tenant),
			word(p.Identity.OnBehalfOf), p.Since.Local().Format(time.DateTime), owner)
	}
	return table.Flush()
}

// word is a field as a table has it, "-" where it is absent.
func word(f identity.Field) string {
	text, ok := f.Value()
	if !ok {
		return "-"
	}
	return printable.Line(text)
}

// personFlags name somebody in full.
type personFlags struct {
	Actor      string  `required:"" placeholder:"NAME" help:"Who is meant."`
	Tenant     *string `placeholder:"T" help:"The tenant that the actor belongs to."`
	OnBehalfOf *string `placeholder:"X" help:"The one for whom the actor acts, as a delegate."`
}

func (f personFlags) identity() identity.Identity {
	return identity.Identity{Actor: f.Actor, Tenant: field(f.Tenant), OnBehalfOf: field(f.OnBehalfOf)}
}

type participantAdd struct {
	remoteFlags
	personFlags
	ID string `arg:"" help:"The conversation's id, from parley conversation list."`
}

// Run lets somebody take part.
func (c *participantAdd) Run(ctx context.Context) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	return refusedPerson(ctx, c.ID, server.AddParticipant(ctx, c.ID, c.identity()))
}

type participantRemove struct {
	remoteFlags
	personFlags
	ID string `arg:"" help:"The conversation's id, from parley conversation list."`
}

// Run ends somebody's part.
func (c *participantRemove) Run(ctx context.Context) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	return refusedPerson(ctx, c.ID, server.RemoveParticipant(ctx, c.ID, c.identity()))
}

// refusedPerson says why somebody cannot be added or removed.
func refusedPerson(ctx context.Context, id string, err error) error {
	for _, why := range []error{conversation.ErrInvalidParticipant, conversation.ErrTooManyParticipants, conversation.ErrOwnerStays} {
		if errors.Is(err, why) {
			return why
		}
	}
	return unknown(ctx, id, err)
}

type waitingShow struct {
	remoteFlags
	ID string `arg:"" help:"The conversation's id, from parley conversation list."`
}

// Run lists what waits, a line each: since when, whose it is, and what it says where
// it is the caller's own.
func (c *waitingShow) Run(ctx context.Context, terminal console) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	waiting, err := server.Waiting(ctx, c.ID)
	if err != nil {
		return unknown(ctx, c.ID, err)
	}
	table := tabwriter.NewWriter(terminal.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SINCE\tACTOR\tTEXT")
	for _, w := range waiting {
		asker := "-"
		if w.Asker != nil {
			asker = printable.Line(w.Asker.Actor)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", w.Time.Local().Format(time.DateTime), asker, printable.Line(w.Text))
	}
	return table.Flush()
}
