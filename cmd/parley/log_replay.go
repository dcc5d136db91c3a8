package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-run/parley/cmd/parley/printable"
	"github.com/parley-run/parley/server"
)

type logReplay struct{ logFlags }

// Run replays the log with this build and says what came of each generation.
// It builds no vendor's client and sends nothing: where the flow would go on
// into the world the re-run is over, which is success.
func (c *logReplay) Run(ctx context.Context, terminal console) (err error) {
	store, done, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if _, err := c.generations(ctx, store); err != nil {
		return err
	}
	for rehearsal, err := range server.Replay(ctx, store, c.ID) {
		if err != nil {
			return fmt.Errorf("replay of %s, %w", c.ID, err)
		}
		end := "at its end"
		if !rehearsal.Ended {
			end = rehearsal.Would
		}
		if _, err := fmt.Fprintf(terminal.out, "generation %d: as recorded, %s\n", rehearsal.Generation, printable.Line(end)); err != nil {
			return err
		}
	}
	return nil
}
