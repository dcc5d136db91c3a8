package server

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
)

// unhurried is a server's handler whose streams are never cut for not reading, if
// they say so, and that knows what each of them has written.
type unhurried struct {
	http.Handler
	mu      sync.Mutex
	writers []*unhurriedWriter
}

func (u *unhurried) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Stalled") != "" {
		writer := &unhurriedWriter{ResponseWriter: w, u: u}
		u.mu.Lock()
		u.writers = append(u.writers, writer)
		u.mu.Unlock()
		w = writer
	}
	u.Handler.ServeHTTP(w, r)
}

// state is how many bytes were taken from all stalled streams, the most of one, and
// how many of them are waiting to write.
func (u *unhurried) state() (taken, most, waiting int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, w := range u.writers {
		taken, most = taken+w.taken, max(most, w.taken)
		if w.waiting {
			waiting++
		}
	}
	return taken, most, waiting
}

type unhurriedWriter struct {
	http.ResponseWriter
	u       *unhurried
	taken   int
	waiting bool
}

func (w *unhurriedWriter) Unwrap() http.ResponseWriter      { return w.ResponseWriter }
func (w *unhurriedWriter) SetWriteDeadline(time.Time) error { return nil }

func (w *unhurriedWriter) Write(p []byte) (int, error) {
	w.note(true, 0)
	n, err := w.ResponseWriter.Write(p)
	w.note(false, n)
	return n, err
}

func (w *unhurriedWriter) FlushError() error {
	w.note(true, 0)
	err := http.NewResponseController(w.ResponseWriter).Flush()
	w.note(false, 0)
	return err
}

func (w *unhurriedWriter) note(waiting bool, taken int) {
	w.u.mu.Lock()
	defer w.u.mu.Unlock()
	w.waiting, w.taken = waiting, w.taken+taken
}

// heap is what is in use when the garbage is gone.
func heap() int {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// C-32.10, SSE-17, SSE-18, SSE-20, check 35, check 36: fifty readers of one
// conversation that never read, beside a flood of words and entries or in the middle
// of a replay, cost what may be pending at most, of which the system has taken
// little; and the one who reads gets all of it. They are not cut here, so that each
// costs as much as it ever can.
func TestManyStalledReadersCost(t *testing.T) {
	for _, two := range []bool{false, true} {
		for _, replay := range []bool{false, true} {
			w := newWorld(t)
			script := filepath.Join(t.TempDir(), "flood.script")
			if err := os.WriteFile(script, []byte("otherwise\n  repeat 200 \""+strings.Repeat("x", 1000)+"\"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			w.config.Settings.Model = "script:" + script
			w.config.Settings.MaxStreamsPerCaller, w.config.Settings.H2C, w.config.Settings.MaxWindowTurns = 100, true, 1
			each, taken := costOfStalled(t, w, two, replay)
			t.Logf("HTTP/2 %t, replay %t: %d bytes of heap for each stalled reader; its connection has taken %d", two, replay, each, taken)
			if each > pendingCap || taken > pendingCap {
				t.Errorf("HTTP/2 %t, replay %t: each costs %d bytes, and has taken %d; want 1 MiB at most", two, replay, each, taken)
			}
		}
	}
}

// pendingCap is what may be pending of a connection (C-32.10).
const pendingCap = 1 << 20

// costOfStalled is how much heap a stalled reader costs, and how many bytes the
// most that one of them was given.
func costOfStalled(t *testing.T, w *world, two, replay bool) (each, taken int) {
	readers := 50
	if underRace {
		readers = 10
	}
	s, err := New(t.Context(), w.config)
	if err != nil {
		t.Fatal(err)
	}
	handler := &unhurried{Handler: s.http.Handler}
	s.http.Handler = handler
	ctx, stop := context.WithCancel(t.Context())
	r := &running{Server: s, t: t, stop: stop, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx) }()
	defer r.end()
	id, err := r.me().Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first := 1
	if replay {
		first = 5
	}
	flood(t, r.me(), id, func(turns int) bool { return turns == first })
	streams := r.streams()
	reading, leave := context.WithCancel(t.Context())
	defer leave()
	before, last, quiet := heap(), 0, 0
	for range readers {
		streams.open(reading, two, id, "X-Stalled", "yes")
	}
	flood(t, r.me(), id, func(turns int) bool { // until nobody takes anything any more
		all, _, waiting := handler.state()
		if quiet++; all != last || waiting != readers {
			last, quiet = all, 0
		}
		return quiet == 2 || turns == 100
	})
	if quiet == 0 {
		t.Fatal("the readers have not stalled")
	}
	_, taken, _ = handler.state()
	return (heap() - before) / readers, taken
}

// flood says one thing after the other and reads the answers, until it is enough.
func flood(t *testing.T, me *client.Client, id string, enough func(turns int) bool) {
	t.Helper()
	turns := 0
	info, err := me.Status(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for event, err := range me.Follow(t.Context(), id, &conversation.Cursor{Generation: 1 << 30}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case event.Kind == client.Message && event.Record.Role == conversation.RoleAssistant:
			if turns++; event.Record.Turn != info.Turns+turns || len(event.Record.Text) != 200_000 {
				t.Fatalf("the reader who reads gets %d bytes of turn %d", len(event.Record.Text), event.Record.Turn)
			}
			if enough(turns) {
				return
			}
		case event.Kind != client.Status:
			continue
		}
		if _, err := me.Send(t.Context(), id, conversation.Message{Text: "go on"}); err != nil {
			t.Fatal(err)
		}
	}
}
