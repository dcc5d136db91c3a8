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

// A conversation from its start to its close. The model here repeats what it is
// told; with journal/sqlite in place of journal/memory all of it outlives the
// process.
func Example() {
	parrot, err := script.Parse("parrot", []byte("otherwise\n  reply"))
	if err != nil {
		log.Fatal(err)
	}
	keys, err := conversation.NewKeys([]byte("a signing key of at least 32 bytes"))
	if err != nil {
		log.Fatal(err)
	}
	flow, err := conversation.NewFlow(conversation.Config{Keys: keys, Agent: agent.Definition{ID: "parrot", Model: parrot}})
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
	client, err := conversation.NewClient(conversation.ClientConfig{Runtime: runtime, Keys: keys, Policy: &policy})
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	ann := &identity.Principal{Identity: identity.Identity{Actor: "ann"}}
	id, err := client.Start(ctx, ann, "")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.SendTurn(ctx, ann, id, conversation.Message{Text: "Hello!"}); err != nil {
		log.Fatal(err)
	}
	for record, err := range client.Follow(ctx, ann, id, nil) { // until the close
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(record.Role, record.Status, record.Text)
		if record.Role == conversation.RoleAssistant {
			if err := client.Close(ctx, ann, id); err != nil {
				log.Fatal(err)
			}
		}
	}
	bob := &identity.Principal{Identity: identity.Identity{Actor: "bob"}}
	_, err = client.Status(ctx, bob, id)
	fmt.Println("bob:", err)
	// Output:
	// user accepted Hello!
	// assistant complete Hello!
	// bob: conversation not found
}
