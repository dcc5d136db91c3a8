package conversation_test

import (
	"context"
	"fmt"
	"log"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model/script"
)

// The words of a reply while the model says them: flow and client share a hub.
func ExampleClient_Live() {
	played, err := script.Parse("slow", []byte("otherwise\n  words \"One moment, please.\" 5ms\n"))
	if err != nil {
		log.Fatal(err)
	}
	keys, err := conversation.NewKeys([]byte("a signing key of at least 32 bytes"))
	if err != nil {
		log.Fatal(err)
	}
	hub := conversation.NewHub(conversation.HubConfig{})
	flow, err := conversation.NewFlow(conversation.Config{Keys: keys, Hub: hub, Agent: agent.Definition{Model: played}})
	if err != nil {
		log.Fatal(err)
	}
	policy, err := kernel.ExecutionAccessPolicy(map[kernel.Operation]kernel.Scope{
		kernel.OpQuery: kernel.ScopeOwner, kernel.OpSend: kernel.ScopeOwner,
		kernel.OpCancel: kernel.ScopeOwner, kernel.OpResume: kernel.ScopeOwner,
	})
	if err != nil {
		log.Fatal(err)
	}
	runtime, err := kernel.New(kernel.Config{
		Store: memory.New(), Policy: policy, Flows: flow.Kernels(), Effects: flow.Effects(),
		Features: []kernel.Feature{kernel.Inbox, kernel.Continuations},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer runtime.Close()
	client, err := conversation.NewClient(conversation.ClientConfig{Runtime: runtime, Keys: keys, Hub: hub, Policy: &policy})
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	ann := &identity.Principal{Identity: identity.Identity{Actor: "ann"}}
	id, err := client.Start(ctx, ann, "")
	if err != nil {
		log.Fatal(err)
	}
	live, err := client.Live(ctx, ann, id)
	if err != nil {
		log.Fatal(err)
	}
	defer live.Close()
	if _, err := client.SendTurn(ctx, ann, id, conversation.Message{Text: "Hello!"}); err != nil {
		log.Fatal(err)
	}
	for said := ""; said != "One moment, please."; {
		<-live.Hint()
		for words := live.Next(); words != nil; words = live.Next() {
			said += words.Text
			fmt.Print(words.Text)
		}
	}
	fmt.Println()
	// Output:
	// One moment, please.
}
