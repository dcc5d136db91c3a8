package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
)

// A question to a running server, and what is said until its answer is there.
func ExampleClient_Follow() {
	ctx := context.Background()
	c, err := client.New("http://127.0.0.1:8080", "parley_token", nil)
	if err != nil {
		log.Fatal(err)
	}
	id, err := c.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := c.Send(ctx, id, conversation.Message{Text: "Hello!"}); err != nil {
		log.Fatal(err)
	}
	for event, err := range c.Follow(ctx, id, nil) {
		if err != nil {
			log.Fatal(err)
		}
		if event.Kind == client.Message {
			fmt.Println(event.Record.Role, event.Record.Text)
			if event.Record.Role == "assistant" {
				break
			}
		}
	}
}
