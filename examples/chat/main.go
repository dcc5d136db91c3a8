// Command chat is a chat agent in one file: Parley as a library, without
// server, network or key.
//
// It reads lines and prints answers. Its one argument is the file that holds
// the conversation: kill it at any moment, start it again, and go on.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal/sqlite"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model/eliza"
	"github.com/parley-run/parley/taint"
)

func main() {
	path := "chat.db"
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	if err := chat(context.Background(), path, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "chat:", err)
		os.Exit(1)
	}
}

// chat answers each line of in on out.
func chat(ctx context.Context, path string, in io.Reader, out io.Writer) (err error) {
	// The journal holds everything that must be known after a crash.
	store, err := sqlite.Open(ctx, path, sqlite.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	keys, err := signingKeys(path + ".key")
	if err != nil {
		return err
	}

	// The flow is the dialogue; the agent in it is a model with its tools.
	flow, err := conversation.NewFlow(conversation.Config{Keys: keys, Agent: agent.Definition{
		ID: "chat", System: taint.Plain("Answer briefly."), Model: eliza.New(eliza.Config{}), Tools: []agent.Tool{agent.Clock()},
	}})
	if err != nil {
		return err
	}

	// The runtime runs it. Only its owner may touch a conversation.
	policy, err := kernel.ExecutionAccessPolicy(map[kernel.Operation]kernel.Scope{
		kernel.OpQuery: kernel.ScopeOwner, kernel.OpSend: kernel.ScopeOwner,
		kernel.OpCancel: kernel.ScopeOwner, kernel.OpResume: kernel.ScopeOwner,
	})
	if err != nil {
		return err
	}
	runtime, err := kernel.New(kernel.Config{
		Store: store, Flows: flow.Kernels(), Effects: flow.Effects(),
		Features: []kernel.Feature{kernel.Inbox, kernel.Continuations}, Policy: policy, RequirePrincipal: true,
	})
	if err != nil {
		return err
	}
	defer runtime.Close()
	client, err := conversation.NewClient(conversation.ClientConfig{Runtime: runtime, Keys: keys, Policy: &policy})
	if err != nil {
		return err
	}

	// What a crash left unfinished goes on now.
	if err := runtime.Recover(ctx); err != nil {
		return err
	}
	return talk(ctx, client, in, out)
}

// signingKeys reads the host's key, or makes one. It signs what counts as a
// message: nothing that another program writes into the journal is obeyed.
func signingKeys(path string) (conversation.Keys, error) {
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, conversation.MinKeyBytes)
		rand.Read(key)
		err = os.WriteFile(path, key, 0o600)
	}
	if err != nil {
		return conversation.Keys{}, err
	}
	return conversation.NewKeys(key)
}

// talk goes on with the conversation "chat", or begins it.
func talk(ctx context.Context, client *conversation.Client, in io.Reader, out io.Writer) error {
	me := &identity.Principal{Identity: identity.Identity{Actor: "me"}}
	id, err := client.Start(ctx, me, "chat")
	if err != nil {
		return err
	}
	status, err := client.Status(ctx, me, id)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	var read *conversation.Cursor // up to here the transcript was read
	for turn := status.Turns + 1; lines.Scan(); turn++ {
		if _, err := client.SendTurn(ctx, me, id, conversation.Message{Text: lines.Text()}); err != nil {
			return err
		}
		for record, err := range client.Follow(ctx, me, id, read) {
			if err != nil {
				return err
			}
			read = &record.Cursor
			if record.Turn == turn && record.Role == conversation.RoleAssistant {
				fmt.Fprintln(out, record.Text)
				break
			}
		}
	}
	return lines.Err()
}
