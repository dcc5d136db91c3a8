package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/parley-run/parley/cmd/parley/printable"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

type logShow struct {
	logFlags
	Text bool `help:"Show the data of each fact too: it holds what people and the model wrote."`
}

// Run prints every fact of every generation, then every message of the inbox.
func (c *logShow) Run(ctx context.Context, terminal console) (err error) {
	store, done, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	return c.show(ctx, store, terminal.out)
}

// show writes the table.
func (c *logShow) show(ctx context.Context, store journal.Store, out io.Writer) error {
	generations, err := c.generations(ctx, store)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := "PLACE\tTIME\tSINCE\tKIND\tID\tBYTES"
	if c.Text {
		head += "\tDATA"
	}
	fmt.Fprintln(table, head)
	for generation := range generations {
		if err := c.rows(ctx, store, kernel.StreamOf(c.ID, generation), strconv.Itoa(generation), table); err != nil {
			return err
		}
	}
	if err := c.rows(ctx, store, kernel.InboxStream(c.ID), "inbox", table); err != nil {
		return err
	}
	return table.Flush()
}

// rows writes a line per event of a stream.
func (c *logShow) rows(ctx context.Context, store journal.Store, stream, name string, table io.Writer) error {
	var last time.Time
	for event, err := range eventsOf(ctx, store, stream) {
		if err != nil {
			return err
		}
		if last.IsZero() {
			last = event.Time
		}
		id := printable.Line(event.ID)
		if id == "" {
			id = "-"
		}
		fmt.Fprintf(table, "%s.%d\t%s\t+%.3fs\t%s\t%s\t%d", name, event.Seq,
			event.Time.UTC().Format("2006-01-02T15:04:05.000Z"), event.Time.Sub(last).Seconds(),
			printable.Line(event.Kind), id, len(event.Data))
		if c.Text {
			fmt.Fprintf(table, "\t%s", printable.Line(string(event.Data)))
		}
		fmt.Fprintln(table)
		last = event.Time
	}
	return nil
}
