package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
)

// instant is a model of no latency: it says one word. asked, if set, is called
// when it is asked.
type instant struct{ asked func() }

func (m instant) Stream(context.Context, model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if m.asked != nil {
			m.asked()
		}
		_ = yield(model.Chunk{Text: "Yes."}, nil) && yield(model.Chunk{Finish: &model.Finish{Reason: model.FinishStop}}, nil)
	}
}

// house is a conversation system on one store.
type house struct {
	store  journal.Store
	path   string // of its file
	rt     *kernel.Runtime
	client *conversation.Client
	shared bool // its talkers' conversations are
}

// freshHouse makes a house on an empty store; close gives both back.
func (b *bench) freshHouse(ctx context.Context, hot int, m model.Model) (*house, error) {
	store, path, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	h, err := newHouse(store, hot, m, nil, nil)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	h.path = path
	return h, nil
}

// freshLiveHouse makes one whose words can be followed, and into whose turns one
// may cut.
func (b *bench) freshLiveHouse(ctx context.Context, m model.Model, hub *conversation.Hub) (*house, error) {
	store, _, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	h, err := newHouse(store, 0, m, hub, nil)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return h, nil
}

func (h *house) close() error {
	h.rt.Close()
	return h.store.Close()
}

func newHouse(store journal.Store, hot int, m model.Model, hub *conversation.Hub, shared *conversation.Shared) (*house, error) {
	keys, err := conversation.NewKeys([]byte("a signing key for nothing but figures"))
	if err != nil {
		return nil, err
	}
	config := conversation.Config{
		Keys: keys, Hub: hub, Shared: shared, Agent: agent.Definition{ID: "bench", Model: m}, Log: slog.New(slog.DiscardHandler),
	}
	if hub != nil {
		config.BargeIn = conversation.InboxBargeIn(store)
	}
	flow, err := conversation.NewFlow(config)
	if err != nil {
		return nil, err
	}
	policy, err := kernel.ExecutionAccessPolicy(map[kernel.Operation]kernel.Scope{
		kernel.OpQuery: kernel.ScopeOwner, kernel.OpSend: kernel.ScopeOwner,
		kernel.OpCancel: kernel.ScopeOwner, kernel.OpResume: kernel.ScopeOwner,
	})
	if err != nil {
		return nil, err
	}
	rt, err := kernel.New(kernel.Config{
		Store: store, Flows: flow.Kernels(), Effects: flow.Effects(), Policy: policy, Hot: hot,
		Features: []kernel.Feature{kernel.Inbox, kernel.Continuations}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	client, err := conversation.NewClient(conversation.ClientConfig{Runtime: rt, Keys: keys, Hub: hub, Policy: &policy, Shared: shared})
	if err != nil {
		rt.Close()
		return nil, err
	}
	return &house{store: store, rt: rt, client: client}, nil
}

// talker says something and waits for the durable answer, as a follower sees
// it, again and again.
type talker struct {
	h    *house
	id   string
	next func() (conversation.Record, error, bool)
	stop func()
}

func (h *house) newTalker(ctx context.Context, id string) (*talker, error) {
	start := h.client.Start
	if h.shared {
		start = h.client.StartShared
	}
	if _, err := start(ctx, &somebody, id); err != nil {
		return nil, err
	}
	next, stop := iter.Pull2(h.client.Follow(ctx, &somebody, id, nil))
	return &talker{h, id, next, stop}, nil
}

func (t *talker) turn(ctx context.Context) error {
	if _, err := t.h.client.SendTurn(ctx, &somebody, t.id, conversation.Message{Text: "Is this thing on?"}); err != nil {
		return err
	}
	for {
		record, err, ok := t.next()
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("conversation %s is over", t.id)
		}
		if record.Role == conversation.RoleAssistant {
			if record.Status != conversation.StatusComplete {
				return fmt.Errorf("turn %d: %s", record.Turn, record.Status)
			}
			return nil
		}
	}
}
