package kernel_test

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"log"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
)

// An execution that waits for a name, greets it by an effect, and ends. On a
// store that lasts, the process may die anywhere in between.
func Example() {
	printed := make(chan struct{})
	greet := kernel.Effect{ID: "greet", Mode: kernel.Once, Run: func(_ context.Context, input jsontext.Value) (any, error) {
		defer close(printed)
		var name string
		if err := json.Unmarshal(input, &name); err != nil {
			return nil, err
		}
		fmt.Println("hello,", name)
		return "greeted " + name, nil
	}}
	flow := kernel.Flow{
		Name: "greeter", Version: "1", Needs: []kernel.Feature{kernel.Inbox},
		Run: func(c *kernel.Context, _ jsontext.Value) (any, error) {
			name := c.Receive("names")
			return c.Execute[string]("greeting", "greet", name)
		},
	}
	rt, err := kernel.New(kernel.Config{
		Store:    memory.New(),
		Flows:    []kernel.Flow{flow},
		Effects:  []kernel.Effect{greet},
		Features: []kernel.Feature{kernel.Inbox},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()

	ctx := context.Background()
	ann := kernel.By(identity.Principal{Identity: identity.Identity{Actor: "ann"}})
	id, _, err := rt.Start(ctx, ann, kernel.StartRequest{Flow: "greeter"})
	if err != nil {
		log.Fatal(err)
	}
	if err := rt.Send(ctx, ann, id, "names", jsontext.Value(`"world"`), "message-1"); err != nil {
		log.Fatal(err)
	}
	<-printed
	// Output: hello, world
}
