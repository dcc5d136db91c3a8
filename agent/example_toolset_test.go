package agent_test

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"log"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model/script"
	"github.com/parley-run/parley/taint"
	"github.com/parley-run/parley/tool"
)

// garden is a set of tools: what it offers may change while the agent works.
type garden struct{ offers []tool.Offer }

func (garden) Name() string           { return "garden" }
func (garden) Mode() kernel.Mode      { return kernel.Repeatable }
func (g garden) Offers() []tool.Offer { return g.offers }

func (garden) Call(_ context.Context, name string, _ jsontext.Value) (tool.Result, error) {
	if name != "look" {
		return tool.Result{}, tool.ErrAbsent
	}
	return tool.Result{Text: "The roses are in bloom."}, nil
}

// An agent with a set of tools, which the model meets under the name of the set.
func Example_toolset() {
	played, err := script.Parse("garden", []byte(`
when tool "garden_look"
  call garden_look {}
then
  results
`))
	if err != nil {
		log.Fatal(err)
	}
	definition := agent.Definition{
		ID: "gardener", Model: played,
		Toolsets: []tool.Set{garden{[]tool.Offer{{Name: "look", Description: taint.Plain("Looks at the garden.")}}}},
	}
	effects, err := definition.Effects()
	if err != nil {
		log.Fatal(err)
	}
	answered := make(chan agent.Reply, 1)
	runtime, err := kernel.New(kernel.Config{
		Store: memory.New(), Effects: effects, Policy: kernel.Unguarded(),
		Flows: []kernel.Flow{{Name: "ask", Version: "1", Run: func(c *kernel.Context, _ jsontext.Value) (any, error) {
			reply, err := agent.Run(c, definition, agent.Request{Prompt: "What is in bloom?"})
			answered <- reply
			return reply.Text, err
		}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer runtime.Close()
	if _, _, err := runtime.Start(context.Background(), runtime.System(), kernel.StartRequest{Flow: "ask"}); err != nil {
		log.Fatal(err)
	}
	reply := <-answered
	fmt.Println(reply.Called, reply.Text)
	// Output: [garden_look] The roses are in bloom.
}
