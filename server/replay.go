package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/server/datadir"
)

// Replay runs every generation of an execution again from its log, with this
// build's flows. It writes nothing, calls no model and no tool, and needs
// neither the keys nor the model that the log was made with: what a re-run is
// served is on record. A run that differs from its log is a
// [kernel.DivergenceError].
//
// Errors: [kernel.ErrDivergence], [kernel.ErrNotFound].
func Replay(ctx context.Context, store journal.Store, id string) iter.Seq2[kernel.Rehearsal, error] {
	return func(yield func(kernel.Rehearsal, error) bool) {
		runtime, err := rehearsalRuntime(store)
		if err != nil {
			yield(kernel.Rehearsal{}, err)
			return
		}
		defer runtime.Close()
		head, ok, err := kernel.HeadGeneration(ctx, store, id)
		if err == nil && !ok {
			err = kernel.ErrNotFound
		}
		if err != nil {
			yield(kernel.Rehearsal{}, err)
			return
		}
		for generation := range head + 1 {
			rehearsal, err := runtime.Rehearse(ctx, id, generation)
			if err != nil {
				err = fmt.Errorf("generation %d: %w", generation, err)
			}
			if !yield(rehearsal, err) || err != nil {
				return
			}
		}
	}
}

// rehearsalRuntime is a runtime that could not reach the world if it tried.
func rehearsalRuntime(store journal.Store) (*kernel.Runtime, error) {
	var key [datadir.KeyBytes]byte
	rand.Read(key[:])
	keys, err := conversation.NewKeys(key[:])
	if err != nil {
		return nil, err
	}
	may, err := newRights(Settings{})
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	flow, err := newFlow(Settings{}, keys, noModel{}, surroundings{shared: may.shared(store)}, log)
	if err != nil {
		return nil, err
	}
	return newRuntime(store, flow, may, log)
}

// noModel is no model.
type noModel struct{}

// Stream fails.
func (noModel) Stream(context.Context, model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		yield(model.Chunk{}, errors.New("a rehearsal called the model"))
	}
}
