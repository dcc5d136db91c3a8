package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
)

// benchHTTP measures whole turns over a real socket: from the POST to the
// durable answer on the event stream.
func benchHTTP(ctx context.Context, b *bench) error {
	for _, busy := range []int{1, 64} {
		before, err := b.syncCost()
		if err != nil {
			return err
		}
		rate, samples, err := b.httpLoop(ctx, busy)
		if err != nil {
			return err
		}
		if busy == 1 {
			err := b.addLatency("over HTTP, send to durable answer on the stream, p50", samples, before, "(≤ 7)")
			if err != nil {
				return err
			}
			continue
		}
		b.add(fmt.Sprintf("over HTTP, %d busy, clients in the same process", busy), perSecond(rate), "p50 "+ms(percentile(samples, 50)), "")
	}
	return nil
}

func (b *bench) httpLoop(ctx context.Context, busy int) (rate float64, samples []time.Duration, err error) {
	h, err := b.freshHouse(ctx, 0, instant{})
	if err != nil {
		return 0, nil, err
	}
	defer h.close()
	handler, err := h.gateway(busy)
	if err != nil {
		return 0, nil, err
	}
	address, closeServer, err := serve(handler)
	if err != nil {
		return 0, nil, err
	}
	defer closeServer()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	readers := make([]*reader, busy)
	for i := range readers {
		if readers[i], err = newReader(ctx, "http://"+address); err != nil {
			return 0, nil, err
		}
		defer readers[i].stop()
	}
	return b.load(busy, func(i int) func() error {
		return func() error { return readers[i].turn(ctx) }
	})
}

// reader is a client with its stream open.
type reader struct {
	c    *client.Client
	id   string
	next func() (client.Event, error, bool)
	stop func()
}

func newReader(ctx context.Context, base string) (*reader, error) {
	c, err := client.New(base, "bench", &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}})
	if err != nil {
		return nil, err
	}
	id, err := c.Start(ctx)
	if err != nil {
		return nil, err
	}
	next, stop := iter.Pull2(c.Events(ctx, id, nil))
	return &reader{c, id, next, stop}, nil
}

func (r *reader) turn(ctx context.Context) error {
	if _, err := r.c.Send(ctx, r.id, conversation.Message{Text: "Is this thing on?"}); err != nil {
		return err
	}
	for {
		event, err, ok := r.next()
		if err != nil {
			return err
		}
		if !ok {
			return errors.New("the stream has ended")
		}
		if event.Kind == client.Message && event.Record.Role == conversation.RoleAssistant {
			return nil
		}
	}
}
