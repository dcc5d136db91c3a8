package eliza_test

import (
	"context"
	"fmt"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/eliza"
)

func ExampleNew() {
	m := eliza.New(eliza.Config{})
	req := model.Request{Messages: []model.Message{
		{Role: model.User, Text: "My brother never calls."},
		{Role: model.Assistant, Text: "Tell me more about your brother."},
		{Role: model.User, Text: "Hm."},
	}}
	reply, err := model.Collect(m.Stream(context.Background(), req), nil)
	fmt.Println(reply.Text, err)
	// Output: I am still thinking of what you told me about your brother. <nil>
}
