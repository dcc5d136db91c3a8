package conversation_test

import (
	"fmt"
	"log"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/model/script"
)

// A flow that keeps its requests within the window of its model, and has the
// turns that leave it summed up. The summarizer's effect is one of the flow's.
func ExampleBudget() {
	parrot, err := script.Parse("parrot", []byte("otherwise\n  reply"))
	if err != nil {
		log.Fatal(err)
	}
	keys, err := conversation.NewKeys([]byte("a signing key of at least 32 bytes"))
	if err != nil {
		log.Fatal(err)
	}
	summarizer, err := agent.NewSummarizer(agent.SummarizerConfig{Model: parrot}) // any model will do
	if err != nil {
		log.Fatal(err)
	}
	flow, err := conversation.NewFlow(conversation.Config{
		Keys: keys, Agent: agent.Definition{Model: parrot}, Summarizer: summarizer,
		Settings: conversation.Settings{Budget: conversation.Budget{
			ContextWindow: 8192, ReserveOutputTokens: 1024, Summarizer: summarizer.ID,
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, effect := range flow.Effects() {
		fmt.Println(effect.ID)
	}
	// Output:
	// model
	// summarize
}
