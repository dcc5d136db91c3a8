package memory_test

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/memory"
)

// A stream grows by appends that name where it ends; who is wrong about that
// writes nothing.
func ExampleNew() {
	ctx := context.Background()
	store := memory.New()
	defer store.Close()

	greet := journal.Append{Stream: "greetings", Expect: 0, Events: []journal.Event{
		{Kind: "SAID", Data: jsontext.Value(`"good morning"`)},
	}}
	fmt.Println("first:", store.Append(ctx, greet))
	fmt.Println("again:", errors.Is(store.Append(ctx, greet), journal.ErrConflict))

	events, err := store.ReadRange(ctx, "greetings", 0, 10, journal.Forward)
	if err != nil {
		fmt.Println(err)
	}
	for _, event := range events {
		fmt.Println(event.Seq, event.Kind, event.Data)
	}
	// Output:
	// first: <nil>
	// again: true
	// 0 SAID "good morning"
}
