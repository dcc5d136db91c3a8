package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/server"
	"github.com/parley-run/parley/server/datadir"
)

type linkCommand struct {
	dataFlags
	Actor      string        `default:"me" placeholder:"NAME" help:"Whom it logs in; me unless named."`
	Tenant     *string       `placeholder:"T" help:"The tenant that the actor belongs to."`
	OnBehalfOf *string       `placeholder:"X" help:"The one for whom the actor acts, as a delegate."`
	Expires    time.Duration `default:"1h" placeholder:"TIME" help:"How long it waits to be opened; 1h unless named, 24h at most."`
}

// Run makes a link and prints it.
func (c *linkCommand) Run(ctx context.Context, terminal console) error {
	dir, err := c.directory()
	if err != nil {
		return err
	}
	address, ok, err := dir.PublicAddress()
	if err == nil && !ok {
		err = fmt.Errorf("no server runs on %s; start one with: parley serve --data %s", dir.Path(), dir.Path())
	}
	if err != nil {
		return err
	}
	owner := identity.Identity{Actor: c.Actor, Tenant: field(c.Tenant), OnBehalfOf: field(c.OnBehalfOf)}
	link, err := newLink(ctx, dir, address, owner, c.Expires)
	if err != nil {
		return fmt.Errorf("link for this actor: %w", err)
	}
	_, err = fmt.Fprintln(terminal.out, link)
	return err
}

// newLink makes a link to a server that people meet at the address. The code
// stands in the fragment, which browsers send to nobody, so it is in no log of a
// server or a proxy.
func newLink(ctx context.Context, dir datadir.Dir, address string, owner identity.Identity, life time.Duration) (string, error) {
	_, code, err := dir.CreateLink(ctx, owner, life)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(address, "/") + "/#code=" + code.Reveal(), nil
}

// firstLinkLife is how long the link waits that serve prints.
const firstLinkLife = time.Hour

// printLink prints a link to the page for whoever has started the server: the
// first thing that they open. That there is none keeps no server from running.
func printLink(ctx context.Context, out io.Writer, dir datadir.Dir, log *slog.Logger) {
	address, ok, err := dir.PublicAddress()
	if err == nil && !ok {
		err = errors.New("the server has gone")
	}
	link := ""
	if err == nil {
		link, err = newLink(ctx, dir, address, server.Owner, firstLinkLife)
	}
	if err != nil {
		log.Warn("there is no link to the page; parley link makes one", "error", err)
		return
	}
	fmt.Fprintf(out, "open the page, once, within an hour: %s\n", link)
}
