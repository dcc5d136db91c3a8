package server

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/server/datadir"
)

// world is a data directory whose server a test starts and stops.
type world struct {
	t      *testing.T
	config Config
	log    *logged
}

// logged is a log that can be looked at.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds to the log.
func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newWorld(t *testing.T) *world {
	log := &logged{}
	return &world{t: t, log: log, config: Config{
		Data: filepath.Join(t.TempDir(), "data"), Settings: Settings{Listen: "127.0.0.1:0"},
		Getenv: func(string) string { return "" }, Log: slog.New(slog.NewTextHandler(log, nil)),
	}}
}

// running is a server that runs.
type running struct {
	*Server
	t    *testing.T
	stop context.CancelFunc
	done chan error
}

// start starts the server.
func (w *world) start() *running {
	w.t.Helper()
	s, err := New(w.t.Context(), w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Server: s, t: w.t, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx) }()
	w.t.Cleanup(func() { cancel() })
	return r
}

// end stops the server and wants it to stop cleanly.
func (r *running) end() {
	r.t.Helper()
	r.stop()
	if err := <-r.done; err != nil {
		r.t.Fatalf("Run = %v", err)
	}
}

// me is a client with the token of the first start.
func (r *running) me() *client.Client {
	r.t.Helper()
	secret, err := datadir.ReadToken(r.Directory().OwnTokenFile())
	if err != nil {
		r.t.Fatal(err)
	}
	c, err := client.New(r.URL(), secret.Reveal(), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// say sends a text and returns the answer to it.
func say(t *testing.T, c *client.Client, id, text string) conversation.Record {
	t.Helper()
	before, err := c.Status(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(t.Context(), id, conversation.Message{Text: text}); err != nil {
		t.Fatal(err)
	}
	return answer(t, c, id, before.Turns+1)
}

// answer waits for the reply of a turn.
func answer(t *testing.T, c *client.Client, id string, turn int) conversation.Record {
	t.Helper()
	for event, err := range c.Follow(t.Context(), id, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind == client.Message && event.Record.Role == conversation.RoleAssistant && event.Record.Turn == turn {
			return event.Record
		}
	}
	t.Fatalf("conversation %s ended without an answer of turn %d", id, turn)
	return conversation.Record{}
}
