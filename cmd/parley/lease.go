package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/parley-run/parley/cmd/parley/printable"
	"github.com/parley-run/parley/lease"
)

// leaseCommands are parley lease ….
type leaseCommands struct {
	Status leaseStatus `cmd:"" help:"Show which parts of the agent's body are taken, and by which conversation."`
}

type leaseStatus struct{ remoteFlags }

// Run prints a line for each part (L-28.5).
func (c *leaseStatus) Run(ctx context.Context, terminal console) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	all, err := server.Leases(ctx)
	if err != nil {
		return explain(ctx, err)
	}
	return writeLeases(terminal.out, all)
}

// writeLeases prints them as a table.
func writeLeases(out io.Writer, all []lease.Status) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RESOURCE\tSTATE\tCONVERSATION\tINCARNATION\tSINCE\tUNTIL\tACTIVE\tWHY\tTRIES\tNEXT TRY")
	for _, s := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%d\t%s\n", printable.Line(string(s.Resource)), printable.Line(string(s.State)),
			orDash(s.Owner), orDash(s.Incarnation), localTime(s.Since), localTime(s.Deadline), s.Operations, orDash(s.Reason), s.Tries, localTime(s.NextTry))
	}
	return table.Flush()
}

// orDash is a text of the server's as a terminal can take it, or a dash for none.
func orDash[T ~string](text T) string { return cmp.Or(printable.Line(string(text)), "-") }

// localTime is a time as people here write it, or a dash where there is none.
func localTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}
