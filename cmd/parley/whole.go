package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/parley-run/parley/cmd/parley/screen"
	"github.com/parley-run/parley/server/datadir"
)

// whole reports whether the chat has the whole screen of a terminal.
func (c *chatCommand) whole(terminal console) bool {
	kind := os.Getenv("TERM")
	return !c.Plain && kind != "" && kind != "dumb" && isTerminal(terminal.in) && isTerminal(terminal.out)
}

// wholeScreen is a talk on the whole screen. What is said on standard error meanwhile
// is kept for afterwards. A nil one is none.
type wholeScreen struct {
	chat *chatCommand
	err  io.Writer
	said later
}

// talk opens the conversation and shows it until the person leaves. A server that goes
// away is waited for.
func (w *wholeScreen) talk(ctx context.Context, data string, _ *brake, terminal console) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	dir, err := datadir.Existing(data)
	if err != nil {
		return err
	}
	away := newNews()
	server, err := w.chat.connect(dir, absence{changed: away.set})
	if err != nil {
		return err
	}
	id, err := w.chat.open(ctx, server)
	if err != nil {
		return unknown(ctx, w.chat.ID, err)
	}
	last, err := screen.Run(ctx, screen.Config{
		Server: server, ID: id, Away: away,
		In: terminal.in.(*os.File), Out: terminal.out.(*os.File),
	})
	w.chat.name(dir, last, terminal)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// wait waits until a talk has given the screen back.
func (w *wholeScreen) wait(talked <-chan error) {
	if w != nil {
		<-talked
	}
}

// leave says what was kept.
func (w *wholeScreen) leave() { w.said.tell(w.err) }

// later keeps what is written, up to a bound.
type later struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

// mostLater is how many bytes are kept.
const mostLater = 64 << 10

// Write keeps a text, or forgets it where there is too much already.
func (l *later) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept.Len()+len(text) <= mostLater {
		l.kept.Write(text)
	}
	return len(text), nil
}

// tell writes what was kept.
func (l *later) tell(out io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.kept.WriteTo(out)
}
