package main

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// benchHistory measures a page of 50 entries at random places of a conversation
// of a thousand generations.
func benchHistory(ctx context.Context, b *bench) error {
	const generations, perGeneration = 1000, 10
	h, err := b.freshHouse(ctx, 0, instant{})
	if err != nil {
		return err
	}
	defer h.close()
	if err := layGenerations(ctx, h.store, generations, perGeneration); err != nil {
		return err
	}
	samples, err := pages(ctx, h, generations)
	if err != nil {
		return err
	}
	b.add("history page of 50, any place of 1,000 generations, p99", ms(percentile(samples, 99)),
		"p50 "+ms(percentile(samples, 50)), "(≤ 3 ms)")
	return nil
}

// layGenerations writes the log of a long conversation, as the flow would have.
func layGenerations(ctx context.Context, store journal.Store, generations, turns int) error {
	encode := func(value any) jsontext.Value {
		data, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		return data
	}
	ord := 0
	for g := range generations {
		input := encode(conversation.Stamp(&somebody.Identity))
		events := []journal.Event{{Kind: kernel.KindStarted, Data: encode(kernel.Started{
			Flow: conversation.DefaultFlowName, Version: "1", Principal: &somebody.Identity, Input: input,
		})}}
		for range turns {
			turn := ord/2 + 1
			for _, role := range []conversation.Role{conversation.RoleUser, conversation.RoleAssistant} {
				ord++
				status, part := conversation.StatusAccepted, "user"
				if role == conversation.RoleAssistant {
					status, part = conversation.StatusComplete, "reply"
				}
				events = append(events, journal.Event{
					Kind: kernel.KindDecided, ID: fmt.Sprintf("conv#o%d:%s", turn, part),
					Data: encode(kernel.Decided{Source: conversation.SourceRecord, Value: encode(conversation.Record{
						Turn: turn, Ord: ord, Role: role, Status: status, Time: time.Now().UTC().Truncate(time.Millisecond),
						Asker: &somebody.Identity, Text: "A sentence of an ordinary length, as people write them to one another.",
					})}),
				})
			}
			for i := range 3 { // what else a turn leaves
				events = append(events, journal.Event{Kind: kernel.KindDecided, ID: fmt.Sprintf("conv#o%d#abort:model:%d", turn, i), Data: fact.Data})
			}
		}
		if g < generations-1 {
			events = append(events, journal.Event{Kind: kernel.KindContinued})
		}
		for i := range events {
			events[i].Time = time.Now()
		}
		if err := store.Append(ctx, journal.Append{Stream: kernel.StreamOf("long", g), Events: events}); err != nil {
			return err
		}
	}
	return nil
}

// pages reads pages at random places.
func pages(ctx context.Context, h *house, generations int) ([]time.Duration, error) {
	var samples []time.Duration
	for range 500 {
		place := conversation.Cursor{Generation: rand.IntN(generations), Seq: journal.Seq(rand.IntN(50))}
		began := time.Now()
		page, err := h.client.History(ctx, &somebody, "long", conversation.HistoryOptions{
			Cursor: &place, Direction: journal.Direction(rand.IntN(2)),
		})
		if err != nil {
			return nil, err
		}
		samples = append(samples, time.Since(began))
		if len(page.Entries) == 0 && !page.Done {
			return nil, fmt.Errorf("an empty page at %v", place)
		}
	}
	return samples, nil
}
