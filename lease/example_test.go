package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/sim"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/lease"
)

// Two conversations want the browser. One acts under its lease, the other is told
// who has it, and acquires when it is free.
func Example() {
	ctx := context.Background()
	registry, err := lease.Open(ctx, lease.Config{
		Store:   memory.New(),
		Bodies:  map[lease.Resource]body.Adapter{lease.Browser: sim.New(sim.NewWorld())},
		Granted: func(context.Context, lease.Use) bool { return true },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer registry.Close()
	one := lease.Caller{Conversation: "one", Identity: identity.Identity{Actor: "ann"}}
	two := lease.Caller{Conversation: "two", Identity: identity.Identity{Actor: "bob"}}

	claim, err := registry.Acquire(ctx, one, lease.Browser, 0)
	if err != nil {
		log.Fatal(err)
	}
	guard, err := registry.Guard(one, lease.Browser, claim.Token)
	if err != nil {
		log.Fatal(err)
	}
	result, err := guard.Do(ctx, sim.Touch, nil)
	fmt.Println(string(result), err)

	_, err = registry.Acquire(ctx, two, lease.Browser, 0)
	if busy, ok := errors.AsType[*lease.BusyError](err); ok {
		fmt.Println(busy.Resource, "is", busy.State, "by conversation", busy.Owner)
	}

	fmt.Println(guard.Release(ctx))
	_, err = registry.Acquire(ctx, two, lease.Browser, 0)
	fmt.Println(err)
	// Output:
	// "touched" <nil>
	// browser is held by conversation one
	// <nil>
	// <nil>
}
