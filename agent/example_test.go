package agent_test

import (
	"context"
	"encoding/json/jsontext"
	"fmt"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model/script"
	"github.com/parley-run/parley/taint"
)

// An agent with one tool answers one prompt, as a flow of its own.
func Example() {
	played, err := script.Parse("weather", []byte(`
otherwise
  call weather {"city": "Oslo"}
then
  say "Take an umbrella."
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	definition := agent.Definition{
		ID: "advisor", System: taint.Plain("You advise on clothing."), Model: played,
		Tools: []agent.Tool{{
			Name: "weather", Description: taint.Plain("Tells the weather of a city."), Mode: kernel.Repeatable,
			Run: func(context.Context, jsontext.Value) (agent.Result, error) {
				return agent.Result{Text: "rain"}, nil
			},
		}},
	}
	effects, err := definition.Effects()
	if err != nil {
		fmt.Println(err)
		return
	}
	answered := make(chan agent.Reply, 1)
	runtime, err := kernel.New(kernel.Config{
		Store: memory.New(), Effects: effects,
		Flows: []kernel.Flow{{Name: "advise", Version: "1", Run: func(c *kernel.Context, _ jsontext.Value) (any, error) {
			reply, err := agent.Run(c, definition, agent.Request{Prompt: "What shall I wear in Oslo?"})
			answered <- reply
			return reply.Text, err
		}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer runtime.Close()
	ann := kernel.By(identity.Principal{Identity: identity.Identity{Actor: "ann"}})
	if _, _, err := runtime.Start(context.Background(), ann, kernel.StartRequest{Flow: "advise"}); err != nil {
		fmt.Println(err)
		return
	}
	reply := <-answered
	fmt.Println(reply.Called, reply.Text)
	// Output: [weather] Take an umbrella.
}

// A summarizer folds what a model will not be shown again into a few words.
func ExampleNewSummarizer() {
	m, err := script.Parse("summary", []byte("otherwise\n  say \"Ann wants to see Oslo in May.\""))
	if err != nil {
		panic(err)
	}
	effect, err := agent.NewSummarizer(agent.SummarizerConfig{Model: m})
	if err != nil {
		panic(err)
	}
	summary, err := effect.Run(context.Background(), jsontext.Value(
		`{"messages":[{"role":"user","text":{"tainted":"conversation:user","value":"I am Ann. Is May good for Oslo?"}}]}`))
	fmt.Println(summary.(agent.Summary).Text, err)
	// Output: Ann wants to see Oslo in May. <nil>
}
