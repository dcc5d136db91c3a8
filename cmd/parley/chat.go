package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"golang.org/x/term"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/server"
	"github.com/parley-run/parley/server/datadir"
)

type chatCommand struct {
	serverFlags
	clientFlags
	ID       string `xor:"which" placeholder:"ID" help:"Go on with this conversation."`
	Continue bool   `xor:"which" help:"Go on with the open conversation that was written to last."`
	Shared   bool   `xor:"which" help:"Start a conversation in which others may take part."`
	Plain    bool   `help:"Read lines and print answers on a terminal too, as in a pipe; not the whole screen."`
}

// Run talks until the input ends, or until a signal; while an answer is written
// for a person the first Ctrl-C stops that one. Where no server runs on the
// data directory it runs one itself, meanwhile.
func (c *chatCommand) Run(ctx context.Context, terminal console) error {
	config, err := c.configuration()
	if err != nil {
		return err
	}
	talk, brake := c.talk, newBrake()
	var screen *wholeScreen
	if c.whole(terminal) {
		screen = &wholeScreen{chat: c, err: terminal.err}
		defer screen.leave()
		talk, terminal.err = screen.talk, &screen.said
	}
	ctx, stop := untilSignal(ctx, brake)
	defer stop()
	own, err := c.serve(ctx, config, terminal)
	if err != nil {
		return err
	}
	// The talk may be waiting for a line that never comes. Neither a signal nor
	// the end of the server waits for it then; it ends with the process. Who has the
	// whole screen always gives it back.
	talked := make(chan error, 1)
	go func() { talked <- talk(ctx, config.Data, brake, terminal) }()
	select {
	case err = <-talked:
	case <-ctx.Done():
		screen.wait(talked)
	case err = <-own.done:
		stop()
		screen.wait(talked)
		return err
	}
	if ctx.Err() != nil {
		err = nil // the person wanted it so; what is not answered yet will be
	}
	return errors.Join(err, own.end())
}

// ownServer is a server in this process. The zero one runs nothing.
type ownServer struct {
	stop context.CancelFunc
	done chan error
}

// end stops the server and waits until it has given everything back.
func (o ownServer) end() error {
	if o.stop == nil {
		return nil
	}
	o.stop()
	return <-o.done
}

// serve runs a server unless one runs. It listens on a port that is free, and
// logs errors only: somebody is talking on this terminal.
func (c *chatCommand) serve(ctx context.Context, config server.Config, terminal console) (ownServer, error) {
	if dir, err := datadir.Existing(config.Data); err == nil {
		if _, ok, err := dir.Address(); ok || err != nil {
			return ownServer{}, err
		}
	}
	config.Settings.Listen = "127.0.0.1:0"
	config.Log = slog.New(slog.NewTextHandler(terminal.err, &slog.HandlerOptions{Level: slog.LevelError}))
	s, err := server.New(ctx, config)
	if _, running := errors.AsType[*server.RunningError](err); running {
		return ownServer{}, nil
	}
	if err != nil {
		return ownServer{}, err
	}
	// A signal stops the talk first, then its server: end does.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	own := ownServer{stop: stop, done: make(chan error, 1)}
	go func() { own.done <- s.Run(serving) }()
	return own, nil
}

// talk opens the conversation and reads lines.
func (c *chatCommand) talk(ctx context.Context, data string, brake *brake, terminal console) error {
	dir, err := datadir.Existing(data)
	if err != nil {
		return err
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	away := newNews()
	server, err := c.connect(dir, absence{changed: away.set, tooLong: giveUp})
	if err != nil {
		return err
	}
	id, err := c.open(ctx, server)
	if err != nil {
		return unknown(ctx, c.ID, err)
	}
	c.name(dir, id, terminal)
	t := &talk{
		server: server, away: away, id: id, terminal: terminal, brake: brake,
		interactive: isTerminal(terminal.in) && isTerminal(terminal.out),
	}
	if isTerminal(terminal.out) {
		t.live = &liveReply{out: terminal.out}
	}
	t.link = &link{server: dir.Path(), say: t.note}
	err = t.run(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return err
}

// name says which conversation this is, and how to go on with it.
func (c *chatCommand) name(dir datadir.Dir, id string, terminal console) {
	here := ""
	if c.Data != "" {
		here = " --data " + dir.Path()
	}
	fmt.Fprintf(terminal.err, "conversation %s (to go on with it: parley chat%s --id %s)\n", id, here, id)
}

// open finds the conversation, or starts one.
func (c *chatCommand) open(ctx context.Context, server *client.Client) (id string, err error) {
	switch {
	case c.ID != "":
		info, err := server.Status(ctx, c.ID)
		if err == nil && info.State != conversation.StateOpen {
			err = fmt.Errorf("conversation %s is %s; read it with: parley conversation show %s", c.ID, info.State, c.ID)
		}
		return c.ID, err
	case c.Continue:
		return newestOpen(ctx, server)
	}
	if !c.Shared {
		return server.Start(ctx)
	}
	id, err = server.StartShared(ctx)
	if errors.Is(err, conversation.ErrForbidden) {
		err = errNoShared
	}
	return id, err
}

// newestOpen is the open conversation with the newest activity.
func newestOpen(ctx context.Context, server *client.Client) (string, error) {
	for cursor := ""; ; {
		page, err := server.List(ctx, cursor, 0)
		if err != nil {
			return "", err
		}
		for _, listed := range page.Conversations {
			if listed.State == conversation.StateOpen {
				return listed.ID, nil
			}
		}
		if page.Done {
			return "", errors.New("no open conversation to go on with; parley chat starts one")
		}
		cursor = page.Next
	}
}

// isTerminal reports whether a person is at this end.
func isTerminal(end any) bool {
	file, ok := end.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
