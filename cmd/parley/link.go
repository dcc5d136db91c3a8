package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-run/parley/identity"
)

type linkCommand struct {
	dataFlags
	Actor      string        `default:"me" placeholder:"NAME" help:"Whom it logs in; me unless named."`
	Tenant     *string       `placeholder:"T" help:"The tenant that the actor belongs to."`
	OnBehalfOf *string       `placeholder:"X" help:"The one for whom the actor acts, as a delegate."`
	Expires    time.Duration `default:"1h" placeholder:"TIME" help:"How long it waits to be opened; 1h unless named, 24h at most."`
}

// Run makes a link and prints it. The code stands in the fragment, which browsers
// send to nobody, so it is in no log of a server or a proxy.
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
	_, code, err := dir.CreateLink(ctx, owner, c.Expires)
	if err != nil {
		return fmt.Errorf("link for this actor: %w", err)
	}
	_, err = fmt.Fprintf(terminal.out, "%s/#code=%s\n", strings.TrimRight(address, "/"), code.Reveal())
	return err
}
