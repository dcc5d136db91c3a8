package model_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/eliza"
	"github.com/parley-run/parley/model/script"
)

func ExampleCollect() {
	req := model.Request{Messages: []model.Message{{Role: model.User, Text: "Hello!"}}}
	if err := req.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	chunks := eliza.New(eliza.Config{}).Stream(context.Background(), req)
	reply, err := model.Collect(chunks, func(delta string) { fmt.Print(delta) })
	if retry, ok := errors.AsType[*model.RetryError](err); ok {
		fmt.Println("again after", retry.After)
		return
	}
	fmt.Printf("\n%s, %d words\n", reply.Reason, reply.Usage.OutputTokens)
	// Output:
	// Welcome. What is on your mind?
	// stop, 6 words
}

func ExampleWithLimits() {
	slow, err := script.Parse("slow", []byte("otherwise\n say \"Well, \"\n wait 1h"))
	if err != nil {
		fmt.Println(err)
		return
	}
	m := model.WithLimits(slow, model.Limits{Idle: time.Millisecond})
	req := model.Request{Messages: []model.Message{{Role: model.User, Text: "Hello!"}}}
	reply, err := model.Collect(m.Stream(context.Background(), req), nil)
	fmt.Printf("%q %v\n", reply.Text, err)
	// Output: "Well, " the model did not answer in time: nothing came for 1ms
}
