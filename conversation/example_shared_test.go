package conversation_test

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"log"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model/script"
	"github.com/parley-run/parley/taint"
)

// Two people in one conversation: what the agent has looked up for one of them is
// shown to the other as far as the host clears them for it.
func ExampleShared() {
	played, err := script.Parse("ops", []byte("when has \"on call\"\n  call rota {}\nthen\n  words \"Ann is.\" 1ms\n"))
	if err != nil {
		log.Fatal(err)
	}
	keys, err := conversation.NewKeys([]byte("a signing key of at least 32 bytes"))
	if err != nil {
		log.Fatal(err)
	}
	rota := agent.Tool{
		Name: "rota", Description: taint.Plain("Says who is on call."), Mode: kernel.Repeatable,
		Run: func(context.Context, jsontext.Value) (agent.Result, error) { return agent.Result{Text: "ann"}, nil },
	}
	store := memory.New()
	shared := &conversation.Shared{
		Service:      identity.Identity{Actor: "service:ops"}, // nobody can sign in as this one
		Participants: conversation.LogParticipants(store),
		ClassOf:      func(tool string) ([]string, bool) { return []string{"internal"}, tool == "rota" },
		Cleared: func(_ context.Context, who identity.Identity, classes []string) (bool, error) {
			return who.Actor == "ann" || who.Actor == "bob", nil
		},
	}
	flow, err := conversation.NewFlow(conversation.Config{
		Keys: keys, Shared: shared, Agent: agent.Definition{Model: played, Tools: []agent.Tool{rota}},
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
		Store: store, Policy: policy, Flows: flow.Kernels(), Effects: flow.Effects(), RequirePrincipal: true,
		Features: []kernel.Feature{kernel.Inbox, kernel.Continuations},
		Reserved: []string{conversation.ParticipantsPrefix},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer runtime.Close()
	client, err := conversation.NewClient(conversation.ClientConfig{Runtime: runtime, Keys: keys, Policy: &policy, Shared: shared})
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	ann := &identity.Principal{Identity: identity.Identity{Actor: "ann"}}
	guest := &identity.Principal{Identity: identity.Identity{Actor: "guest"}}
	id, err := client.StartShared(ctx, ann, "")
	if err != nil {
		log.Fatal(err)
	}
	if err := client.AddParticipant(ctx, ann, id, guest.Identity); err != nil {
		log.Fatal(err)
	}
	if _, err := client.SendTurn(ctx, ann, id, conversation.Message{Text: "Who is on call?"}); err != nil {
		log.Fatal(err)
	}
	for _, who := range []*identity.Principal{ann, guest} {
		entries := 0
		for entry, err := range client.Follow(ctx, who, id, nil) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf("%s sees: %s %s %q\n", who.Actor, entry.Role, entry.Status, entry.Text)
			if entries++; entries == 2 {
				break
			}
		}
	}
	// Output:
	// ann sees: user accepted "Who is on call?"
	// ann sees: assistant complete "Ann is."
	// guest sees: user accepted "Who is on call?"
	// guest sees: assistant restricted ""
}
