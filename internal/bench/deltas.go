package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/gateway"
	"github.com/parley-run/parley/identity"
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

// benchDeltas measures what a delta costs the server for each subscriber, in
// processor time, and what an open stream holds, beside a bare handler that writes
// the same bytes. The subscribers are another process.
func benchDeltas(ctx context.Context, b *bench) error {
	for _, measured := range []struct {
		subscribers int
		pace        pace
	}{{1, calm}, {64, calm}, {1000, calm}, {1000, rapid}} {
		subscribers := measured.subscribers
		bare, bareHeld, err := b.bareDeltas(ctx, subscribers, measured.pace)
		if err != nil {
			return err
		}
		ours, held, err := b.ourDeltas(ctx, subscribers, measured.pace)
		if err != nil {
			return err
		}
		micros := func(d time.Duration) string {
			return fmt.Sprintf("%.1f µs", float64(d)/float64(time.Microsecond))
		}
		b.add(fmt.Sprintf("a delta each %v to %d subscribers, server CPU each", measured.pace.every, subscribers), micros(ours),
			"bare net/http "+micros(bare), fmt.Sprintf("%.2f (≤ 1.1 with 1,000)", float64(ours)/float64(bare)))
		if subscribers > 1 && measured.pace == calm {
			kib := func(n int64) string { return fmt.Sprintf("%.1f KiB", float64(n)/1024) }
			b.add(fmt.Sprintf("one of %d open streams, memory", subscribers), kib(held), "bare net/http "+kib(bareHeld),
				fmt.Sprintf("%.2f (≤ 1.1)", float64(held)/float64(bareHeld)))
		}
	}
	return nil
}

// ourDeltas streams a reply of Parley's.
func (b *bench) ourDeltas(ctx context.Context, subscribers int, p pace) (each time.Duration, held int64, err error) {
	hub := conversation.NewHub(conversation.HubConfig{MaxReaders: subscribers})
	h, err := b.freshLiveHouse(ctx, chatterbox{p}, hub)
	if err != nil {
		return 0, 0, err
	}
	defer h.close()
	handler, err := gateway.New(gateway.Config{
		Client: h.client, MaxStreams: subscribers,
		Authenticate: func(*http.Request) (identity.Principal, error) { return somebody, nil },
	})
	if err != nil {
		return 0, 0, err
	}
	if _, err := h.client.Start(ctx, &somebody, "talk"); err != nil {
		return 0, 0, err
	}
	return measureDeltas(ctx, handler, "/v1/conversations/talk/events", subscribers, p, func() error {
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
func (b *bench) bareDeltas(ctx context.Context, subscribers int, p pace) (each time.Duration, held int64, err error) {
	frame := []byte("event: delta\ndata: {\"turn\":1,\"text\":\"" + deltaText + "\"}\n\n")
	var mu sync.Mutex
	var open []chan []byte
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		frames := make(chan []byte, p.count)
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
	return measureDeltas(ctx, handler, "/", subscribers, p, func() error {
		p.play(func() bool {
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
func measureDeltas(ctx context.Context, handler http.Handler, path string, subscribers int, p pace, play func() error) (each time.Duration, held int64, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, 0, err
	}
	server := &http.Server{Handler: handler}
	go server.Serve(listener)
	defer server.Close()
	before := memory()
	stop, err := startDrain(ctx, listener.Addr().String(), path, subscribers)
	if err != nil {
		return 0, 0, err
	}
	defer stop()
	time.Sleep(500 * time.Millisecond) // until what connecting took is over
	held = (memory() - before) / int64(subscribers)
	began := processorTime()
	if err := play(); err != nil {
		return 0, 0, err
	}
	return (processorTime() - began) / time.Duration(p.count*subscribers), held, nil
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// startDrain starts a process of subscribers and waits until all are connected.
func startDrain(ctx context.Context, address, path string, subscribers int) (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, self, "-drain", fmt.Sprint(address, " ", path, " ", subscribers))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	stop = func() { cancel(); cmd.Wait() }
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "connected\n" {
		stop()
		return nil, fmt.Errorf("the subscribers do not connect: %q", strings.TrimSpace(line))
	}
	return stop, nil
}

// drain is that process: it subscribes, says so when every stream has begun, and
// reads until it is killed.
func drain(what string, out io.Writer) error {
	var address, path string
	var subscribers int
	if _, err := fmt.Sscan(what, &address, &path, &subscribers); err != nil {
		return err
	}
	var begun sync.WaitGroup
	failed := make(chan error, subscribers)
	for range subscribers {
		begun.Add(1)
		go func() {
			conn, err := net.Dial("tcp", address)
			if err == nil {
				_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer x\r\n\r\n", path, address)
			}
			if err == nil {
				_, err = conn.Read(make([]byte, 4096))
			}
			if err != nil {
				failed <- err
				return
			}
			begun.Done()
			io.Copy(io.Discard, conn)
		}()
	}
	go func() { begun.Wait(); fmt.Fprintln(out, "connected") }()
	return <-failed
}
