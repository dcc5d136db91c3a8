package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/server/datadir"
)

// tokenCommands are parley token ….
type tokenCommands struct {
	Create tokenCreate `cmd:"" help:"Make a token and print it; it is shown this once."`
	List   tokenList   `cmd:"" help:"List the tokens: id, time of making, identity."`
	Revoke tokenRevoke `cmd:"" help:"Revoke a token by its id."`
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
	Actor      string  `required:"" placeholder:"NAME" help:"Who may use it."`
	Tenant     *string `placeholder:"T" help:"The tenant that the actor belongs to."`
	OnBehalfOf *string `placeholder:"X" help:"The one for whom the actor acts, as a delegate."`
}

// Run makes a token and prints its secret.
func (c *tokenCreate) Run(ctx context.Context, terminal console) error {
	dir, err := c.directory()
	if err != nil {
		return err
	}
	owner := identity.Identity{Actor: c.Actor, Tenant: field(c.Tenant), OnBehalfOf: field(c.OnBehalfOf)}
	_, secret, err := dir.CreateToken(ctx, owner)
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

// Run lists the tokens, without their secrets, which nobody has any more.
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
	fmt.Fprintln(table, "ID\tCREATED\tACTOR\tTENANT\tON BEHALF OF")
	for _, token := range tokens {
		tenant, _ := token.Identity.Tenant.Value()
		behalf, _ := token.Identity.OnBehalfOf.Value()
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", printable(token.ID), token.Created.Format(time.RFC3339),
			printable(token.Identity.Actor), printable(tenant), printable(behalf))
	}
	return table.Flush()
}

type tokenRevoke struct {
	dataFlags
	ID string `arg:"" help:"The token's id, from parley token list."`
}

// Run revokes a token.
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
