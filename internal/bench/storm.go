package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/parley-run/parley/conversation"
)

const (
	stormStreams       = 1000
	stormConversations = 100
	stormTurns         = 10 // that each stream has missed
)

// benchStorm measures what happens when every stream comes back at once, as after
// a restart of the server or of the network: until each has what it has missed.
// Beside it a bare handler writes the same bytes.
func benchStorm(ctx context.Context, b *bench) error {
	hub := conversation.NewHub(conversation.HubConfig{})
	h, err := b.freshLiveHouse(ctx, instant{}, hub)
	if err != nil {
		return err
	}
	defer h.close()
	cursor, err := h.fill(ctx)
	if err != nil {
		return err
	}
	handler, err := h.gateway(stormStreams)
	if err != nil {
		return err
	}
	took, cpu, err := storm(ctx, handler, cursor.String())
	if err != nil {
		return err
	}
	bytes, err := h.missed(ctx, cursor)
	if err != nil {
		return err
	}
	bare := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, bytes)
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	bareTook, bareCPU, err := storm(ctx, bare, cursor.String())
	if err != nil {
		return err
	}
	b.add(fmt.Sprintf("%d streams resume at once, %d entries missed each, until all are told", stormStreams, 2*stormTurns),
		ms(took), "bare net/http, same bytes "+ms(bareTook), fmt.Sprintf("%.1f", float64(took)/float64(bareTook)))
	b.add("the same, server CPU each", fmt.Sprintf("%.0f µs", cpu.Seconds()*1e6/stormStreams),
		fmt.Sprintf("bare net/http %.0f µs", bareCPU.Seconds()*1e6/stormStreams), fmt.Sprintf("%.1f", float64(cpu)/float64(bareCPU)))
	return nil
}

// storm resumes all streams at a handler.
func storm(ctx context.Context, handler http.Handler, cursor string) (took, cpu time.Duration, err error) {
	address, closeServer, err := serve(handler)
	if err != nil {
		return 0, 0, err
	}
	defer closeServer()
	s, err := subscribe(ctx, fmt.Sprint("resume ", address, " /v1/conversations/c%d/events ", stormConversations, " ", stormStreams, " ", cursor, " ", 2*stormTurns))
	if err != nil {
		return 0, 0, err
	}
	defer s.stop()
	began, before := time.Now(), processorTime()
	if _, err := fmt.Fprintln(s.in); err != nil {
		return 0, 0, err
	}
	if err := s.await("done"); err != nil {
		return 0, 0, err
	}
	return time.Since(began), processorTime() - before, nil
}

// fill holds all conversations, and returns where their streams were lost: it is
// the same place in each.
func (h *house) fill(ctx context.Context) (conversation.Cursor, error) {
	cursors := make([]conversation.Cursor, stormConversations)
	errs := make([]error, stormConversations)
	var talking sync.WaitGroup
	for i := range cursors {
		talking.Go(func() {
			talk, err := h.newTalker(ctx, fmt.Sprint("c", i))
			for turn := 0; turn < 2*stormTurns && err == nil; turn++ {
				err = talk.turn(ctx)
			}
			errs[i] = err
			if err != nil {
				return
			}
			talk.stop()
			page, err := h.client.History(ctx, &somebody, talk.id, conversation.HistoryOptions{Limit: 2 * stormTurns})
			cursors[i], errs[i] = page.Next, err
		})
	}
	talking.Wait()
	for i, err := range errs {
		if err != nil {
			return conversation.Cursor{}, err
		}
		if cursors[i] != cursors[0] {
			return conversation.Cursor{}, fmt.Errorf("conversation %d is cut at %v, the first at %v", i, cursors[i], cursors[0])
		}
	}
	return cursors[0], nil
}

// missed is about what a stream writes to one that has missed the entries.
func (h *house) missed(ctx context.Context, cursor conversation.Cursor) (string, error) {
	address, closeServer, err := h.serveOne()
	if err != nil {
		return "", err
	}
	defer closeServer()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/v1/conversations/c0/events", nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Last-Event-ID", cursor.String())
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var text strings.Builder
	chunk := make([]byte, 4096)
	for strings.Count(text.String(), "event: message") < 2*stormTurns || !strings.HasSuffix(text.String(), "\n\n") {
		n, err := response.Body.Read(chunk)
		if text.Write(chunk[:n]); err != nil {
			return "", err
		}
	}
	return text.String(), nil
}

// serveOne serves the API of a house.
func (h *house) serveOne() (address string, closeServer func() error, err error) {
	handler, err := h.gateway(1)
	if err != nil {
		return "", nil, err
	}
	return serve(handler)
}
