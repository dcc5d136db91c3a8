package conversation_test

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model/script"
	"github.com/parley-run/parley/taint"
)

// A whole chat: a flow with its agent, a runtime, a client.
func ExampleNewFlow() {
	played, err := script.Parse("echo", []byte("otherwise\n  say \"You said: \"\n  reply\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	key := make([]byte, conversation.MinKeyBytes)
	rand.Read(key)
	keys, err := conversation.NewKeys(key)
	if err != nil {
		fmt.Println(err)
		return
	}
	flow, err := conversation.NewFlow(conversation.Config{
		Keys:  keys,
		Agent: agent.Definition{System: taint.Plain("You are a parrot."), Model: played},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, err := kernel.ExecutionAccessPolicy(map[kernel.Operation]kernel.Scope{
		kernel.OpQuery: kernel.ScopeOwner, kernel.OpSend: kernel.ScopeOwner,
		kernel.OpCancel: kernel.ScopeOwner, kernel.OpResume: kernel.ScopeOwner,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	runtime, err := kernel.New(kernel.Config{
		Store: memory.New(), Flows: flow.Kernels(), Effects: flow.Effects(), Policy: policy,
		Features: []kernel.Feature{kernel.Inbox, kernel.Continuations},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer runtime.Close()
	client, err := conversation.NewClient(conversation.ClientConfig{Runtime: runtime, Keys: keys, Policy: &policy})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	ann := &identity.Principal{Identity: identity.Identity{Actor: "ann"}}
	id, err := client.Start(ctx, ann, "")
	if err == nil {
		_, err = client.SendTurn(ctx, ann, id, conversation.Message{Text: "hello"})
	}
	if err == nil {
		err = client.Close(ctx, ann, id)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	for record, err := range client.Follow(ctx, ann, id, nil) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %s\n", record.Role, record.Text)
	}
	// Output:
	// user: hello
	// assistant: You said: hello
}
