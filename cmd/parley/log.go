package main

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/sqlite"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/server/datadir"
)

// logCommands are parley log ….
type logCommands struct {
	Show   logShow   `cmd:"" help:"Show every fact: place, time, time since the one before, kind, id, size."`
	Verify logVerify `cmd:"" help:"Check that every sequence is whole and every fact can be read."`
	Replay logReplay `cmd:"" help:"Run every generation again from its log, without effects; it must not diverge."`
}

// logFlags says which log is meant.
type logFlags struct {
	dataFlags
	ID string `arg:"" help:"The id of the conversation, or of another execution."`
}

// logBlock is how many events are read at once (C-3.10).
const logBlock = 256

// open locks the data directory and opens its journal; done gives both back.
// Logs are read where nothing moves.
func (f logFlags) open(ctx context.Context) (store journal.Store, done func() error, err error) {
	path, err := f.path()
	if err != nil {
		return nil, nil, err
	}
	dir, err := datadir.Existing(path)
	if err != nil {
		return nil, nil, err
	}
	lock, err := dir.Lock()
	if err != nil {
		if _, held := errors.AsType[*datadir.HeldError](err); held {
			err = fmt.Errorf("%w; stop it first: logs are opened in the directory of a stopped server", err)
		}
		return nil, nil, err
	}
	opened, err := sqlite.Open(ctx, dir.Database(), sqlite.Config{})
	if err != nil {
		return nil, nil, errors.Join(err, lock.Unlock())
	}
	return opened, func() error { return errors.Join(opened.Close(), lock.Unlock()) }, nil
}

// generations is how many generations the execution has.
func (f logFlags) generations(ctx context.Context, store journal.Store) (int, error) {
	head, ok, err := kernel.HeadGeneration(ctx, store, f.ID)
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, fmt.Errorf("no log of %q in this data directory; parley conversation list has the ids, while the server runs", f.ID)
	}
	return head + 1, nil
}

// eventsOf reads a whole stream in blocks.
func eventsOf(ctx context.Context, store journal.Store, stream string) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		var from journal.Seq
		for {
			events, err := store.ReadRange(ctx, stream, from, logBlock, journal.Forward)
			if err != nil {
				yield(journal.Event{}, fmt.Errorf("read %s: %w", stream, err))
				return
			}
			for _, event := range events {
				if !yield(event, nil) {
					return
				}
				from = event.Seq + 1
			}
			if len(events) < logBlock {
				return
			}
		}
	}
}
