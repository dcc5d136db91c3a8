package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/parley-run/parley/cmd/parley/printable"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/server/datadir"
)

// tokenCommands are parley token ….
type tokenCommands struct {
	Create tokenCreate `cmd:"" help:"Make a token and print it; it is shown this once."`
	List   tokenList   `cmd:"" help:"List tokens, links and sessions: id, kind, times, identity."`
	Revoke tokenRevoke `cmd:"" help:"Revoke a token, with the sessions that it opened, a link, or a session, by its id."`
}

// directory opens the data directory that the flags mean.
func (f dataFlags) directory() (datadir.Dir, error) {
	path, err := f.path()
	if err != nil {
		return datadir.Dir{}, err
	}
	return datadir.Open(path)
}

type tokenCreate struct {
	dataFlags
	Actor      string         `required:"" placeholder:"NAME" help:"Who may use it."`
	Tenant     *string        `placeholder:"T" help:"The tenant that the actor belongs to."`
	OnBehalfOf *string        `placeholder:"X" help:"The one for whom the actor acts, as a delegate."`
	Expires    *time.Duration `placeholder:"TIME" help:"How long it stands, such as 720h; until it is revoked unless named."`
}

// Run makes a token and prints its secret.
func (c *tokenCreate) Run(ctx context.Context, terminal console) error {
	dir, err := c.directory()
	if err != nil {
		return err
	}
	owner := identity.Identity{Actor: c.Actor, Tenant: field(c.Tenant), OnBehalfOf: field(c.OnBehalfOf)}
	create := dir.CreateToken
	if c.Expires != nil {
		create = func(ctx context.Context, owner identity.Identity) (datadir.Token, identity.Secret, error) {
			return dir.CreateTokenFor(ctx, owner, *c.Expires)
		}
	}
	_, secret, err := create(ctx, owner)
	if err != nil {
		return fmt.Errorf("token for this actor: %w", err)
	}
	_, err = fmt.Fprintln(terminal.out, secret.Reveal())
	return err
}

func field(text *string) identity.Field {
	if text == nil {
		return identity.Field{}
	}
	return identity.Some(*text)
}

type tokenList struct{ dataFlags }

// Run lists tokens, links and sessions, without their secrets, which nobody has any more.
func (c *tokenList) Run(terminal console) error {
	dir, err := c.directory()
	if err != nil {
		return err
	}
	tokens, err := dir.Tokens()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(terminal.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tKIND\tCREATED\tEXPIRES\tACTOR\tTENANT\tON BEHALF OF")
	for _, token := range tokens {
		tenant, _ := token.Identity.Tenant.Value()
		behalf, _ := token.Identity.OnBehalfOf.Value()
		fmt.Fprintf(table, "%s\t%v\t%s\t%s\t%s\t%s\t%s\n", printable.Line(token.ID), token.Kind, token.Created.Format(time.RFC3339), end(token),
			printable.Line(token.Identity.Actor), printable.Line(tenant), printable.Line(behalf))
	}
	return table.Flush()
}

// end says when a token ends.
func end(t datadir.Token) string {
	switch {
	case t.Expires.IsZero():
		return "never"
	case t.Over(time.Now()):
		return "over"
	}
	return t.Expires.Format(time.RFC3339)
}

type tokenRevoke struct {
	dataFlags
	ID string `arg:"" help:"The id, from parley token list."`
}

// Run ends whatever has the id.
func (c *tokenRevoke) Run(ctx context.Context) error {
	dir, err := c.directory()
	if err != nil {
		return err
	}
	if err := dir.RevokeToken(ctx, c.ID); err != nil {
		return fmt.Errorf("%w; see parley token list --data %s", err, dir.Path())
	}
	return nil
}
