package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/model"
)

// deltaText is each of the deltas.
const deltaText = "a word or two "

// pace is how many deltas a reply has, and how far apart they are.
type pace struct {
	count int
	every time.Duration
}

// play calls say for each delta at its time, until it returns false.
func (p pace) play(say func() bool) {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for range p.count {
		if <-tick.C; !say() {
			return
		}
	}
}

var (
	calm  = pace{60, 100 * time.Millisecond}
	rapid = pace{300, 10 * time.Millisecond} // more than can be written one by one to a thousand
)

// audience is who hears a reply, and how.
type audience struct {
	subscribers int
	pace        pace
	protocol    protocol
}

// benchDeltas measures what a delta costs the server for each subscriber, in
// processor time, and what an open stream holds, beside a bare handler that writes
// the same bytes. The subscribers are another
// process.
func benchDeltas(ctx context.Context, b *bench) error {
	for _, measured := range []audience{{1, calm, http1}, {64, calm, http1}, {1000, calm, http1}, {1000, rapid, http1}, {1000, calm, http2}} {
		bare, bareHeld, err := b.bareDeltas(ctx, measured)
		if err != nil {
			return err
		}
		ours, held, err := b.ourDeltas(ctx, measured)
		if err != nil {
			return err
		}
		micros := func(d time.Duration) string {
			return fmt.Sprintf("%.1f µs", float64(d)/float64(time.Microsecond))
		}
		b.add(fmt.Sprintf("a delta each %v to %d subscribers over %s, server CPU each", measured.pace.every, measured.subscribers, measured.protocol), micros(ours),
			"bare net/http "+micros(bare), fmt.Sprintf("%.2f (≤ 1.1 with 1,000)", float64(ours)/float64(bare)))
		if measured.subscribers > 1 && measured.pace == calm {
			kib := func(n int64) string { return fmt.Sprintf("%.1f KiB", float64(n)/1024) }
			b.add(fmt.Sprintf("one of %d open streams over %s, memory", measured.subscribers, measured.protocol), kib(held), "bare net/http "+kib(bareHeld),
				fmt.Sprintf("%.2f (≤ 1.1)", float64(held)/float64(bareHeld)))
		}
	}
	return nil
}

// ourDeltas streams a reply of Parley's.
func (b *bench) ourDeltas(ctx context.Context, a audience) (each time.Duration, held int64, err error) {
	hub := conversation.NewHub(conversation.HubConfig{MaxReaders: a.subscribers})
	h, err := b.freshLiveHouse(ctx, chatterbox{a.pace}, hub)
	if err != nil {
		return 0, 0, err
	}
	defer h.close()
	handler, err := h.gateway(a.subscribers)
	if err != nil {
		return 0, 0, err
	}
	if _, err := h.client.Start(ctx, &somebody, "talk"); err != nil {
		return 0, 0, err
	}
	return measureDeltas(ctx, handler, "/v1/conversations/talk/events", a, func() error {
		if _, err := h.client.SendTurn(ctx, &somebody, "talk", conversation.Message{Text: "go"}); err != nil {
			return err
		}
		for record, err := range h.client.Follow(ctx, &somebody, "talk", nil) {
			if err != nil || record.Role == conversation.RoleAssistant {
				return err
			}
		}
		return errors.New("the conversation is over")
	})
}

// chatterbox is a model of many deltas.
type chatterbox struct{ pace }

func (c chatterbox) Stream(ctx context.Context, _ model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		left := false
		c.play(func() bool {
			left = !yield(model.Chunk{Text: deltaText}, nil)
			return !left
		})
		_ = left || yield(model.Chunk{Finish: &model.Finish{Reason: model.FinishStop}}, nil)
	}
}

// bareDeltas streams the same bytes to the same subscribers with nothing but
// net/http.
func (b *bench) bareDeltas(ctx context.Context, a audience) (each time.Duration, held int64, err error) {
	frame := []byte("event: delta\ndata: {\"turn\":1,\"text\":\"" + deltaText + "\"}\n\n")
	var mu sync.Mutex
	var open []chan []byte
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		frames := make(chan []byte, a.pace.count)
		mu.Lock()
		open = append(open, frames)
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, ": hello\n\n")
		control := http.NewResponseController(w)
		control.Flush()
		for {
			select {
			case data := <-frames:
				w.Write(data)
				control.Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	return measureDeltas(ctx, handler, "/", a, func() error {
		a.pace.play(func() bool {
			for _, frames := range open {
				frames <- frame
			}
			return true
		})
		for _, frames := range open { // until all is written
			for len(frames) > 0 {
				time.Sleep(time.Millisecond)
			}
		}
		return nil
	})
}

// measureDeltas serves the handler to subscribers of another process, and
// measures play.
func measureDeltas(ctx context.Context, handler http.Handler, path string, a audience, play func() error) (each time.Duration, held int64, err error) {
	address, closeServer, err := serve(handler)
	if err != nil {
		return 0, 0, err
	}
	defer closeServer()
	before := memory()
	s, err := subscribe(ctx, fmt.Sprint("listen ", address, " ", path, " ", a.subscribers, " ", a.protocol))
	if err != nil {
		return 0, 0, err
	}
	defer s.stop()
	time.Sleep(500 * time.Millisecond) // until what connecting took is over
	held = (memory() - before) / int64(a.subscribers)
	began := processorTime()
	if err := play(); err != nil {
		return 0, 0, err
	}
	return (processorTime() - began) / time.Duration(a.pace.count*a.subscribers), held, nil
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
