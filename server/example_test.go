package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/server"
	"github.com/parley-run/parley/server/datadir"
)

// A server in a program of one's own: made, asked over HTTP, stopped.
func ExampleNew() {
	folder, err := os.MkdirTemp("", "parley")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	s, err := server.New(context.Background(), server.Config{
		Data:     filepath.Join(folder, "data"),
		Settings: server.Settings{Listen: "127.0.0.1:0", Model: "eliza"},
		Log:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()

	token, err := datadir.ReadToken(s.Directory().OwnTokenFile())
	if err != nil {
		panic(err)
	}
	me, err := client.New(s.URL(), token.Reveal(), nil)
	if err != nil {
		panic(err)
	}
	id, err := me.Start(ctx)
	if err != nil {
		panic(err)
	}
	if _, err := me.Send(ctx, id, conversation.Message{Text: "I am tired of my computer."}); err != nil {
		panic(err)
	}
	for event, err := range me.Follow(ctx, id, nil) {
		if err != nil {
			panic(err)
		}
		if event.Kind == client.Message && event.Record.Role == conversation.RoleAssistant {
			fmt.Println(event.Record.Text)
			break
		}
	}
	stop()
	fmt.Println(<-done)
	// Output:
	// Machines come up. Is that because you are talking to one?
	// <nil>
}
