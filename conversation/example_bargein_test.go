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

var ann = &identity.Principal{Identity: identity.Identity{Actor: "ann"}}

// talkative starts a conversation with a model that never ends an answer by
// itself. Messages cut in, since the flow watches the inbox in the store.
func talkative(ctx context.Context) (client *conversation.Client, id string, end func()) {
	endless, err := script.Parse("endless", []byte("when has \"story\"\n  forever \"and then \" 1ms\notherwise\n  reply"))
	if err != nil {
		log.Fatal(err)
	}
	keys, err := conversation.NewKeys([]byte("a signing key of at least 32 bytes"))
	if err != nil {
		log.Fatal(err)
	}
	store, hub := memory.New(), conversation.NewHub(conversation.HubConfig{})
	flow, err := conversation.NewFlow(conversation.Config{
		Keys: keys, Hub: hub, BargeIn: conversation.InboxBargeIn(store), Agent: agent.Definition{Model: endless},
	})
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
		Store: store, Policy: policy, Flows: flow.Kernels(), Effects: flow.Effects(),
		Features: []kernel.Feature{kernel.Inbox, kernel.Continuations},
	})
	if err != nil {
		log.Fatal(err)
	}
	client, err = conversation.NewClient(conversation.ClientConfig{Runtime: runtime, Keys: keys, Hub: hub, Policy: &policy})
	if err != nil {
		log.Fatal(err)
	}
	if id, err = client.Start(ctx, ann, ""); err != nil {
		log.Fatal(err)
	}
	return client, id, runtime.Close
}

// begun says something and waits for the first words of the answer.
func begun(ctx context.Context, client *conversation.Client, id, text string) {
	live, err := client.Live(ctx, ann, id)
	if err != nil {
		log.Fatal(err)
	}
	defer live.Close()
	if _, err := client.SendTurn(ctx, ann, id, conversation.Message{Text: text}); err != nil {
		log.Fatal(err)
	}
	for live.Next() == nil {
		<-live.Hint()
	}
}

// A message that comes while an answer is written ends that answer, which keeps
// the words that were said.
func ExampleInboxBargeIn() {
	ctx := context.Background()
	client, id, end := talkative(ctx)
	defer end()
	begun(ctx, client, id, "Tell me a story!")
	if _, err := client.SendTurn(ctx, ann, id, conversation.Message{Text: "Enough."}); err != nil {
		log.Fatal(err)
	}
	for record, err := range client.Follow(ctx, ann, id, nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(record.Turn, record.Role, record.Status, record.Text != "")
		if record.Turn == 2 && record.Role == conversation.RoleAssistant {
			break
		}
	}
	// Output:
	// 1 user accepted true
	// 1 assistant interrupted true
	// 2 user accepted true
	// 2 assistant complete true
}

// A stop ends the answer of the turn that it names, and says nothing.
func ExampleClient_Stop() {
	ctx := context.Background()
	client, id, end := talkative(ctx)
	defer end()
	begun(ctx, client, id, "Tell me a story!")
	if err := client.Stop(ctx, ann, id, 1); err != nil {
		log.Fatal(err)
	}
	for record, err := range client.Follow(ctx, ann, id, nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(record.Turn, record.Role, record.Status)
		if record.Role == conversation.RoleAssistant {
			break
		}
	}
	// Output:
	// 1 user accepted
	// 1 assistant interrupted
}
