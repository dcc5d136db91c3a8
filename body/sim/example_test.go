package sim_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/sim"
)

// A call whose answer is lost: the caller knows nothing, the world knows better.
func Example() {
	ctx := context.Background()
	world := sim.NewWorld()
	b := sim.New(world)
	b.On(sim.AfterAct, func(context.Context, body.Incarnation) error { return errors.New("connection reset") })

	_, err := b.Perform(ctx, body.Effect{
		Incarnation: "browser.1", Operation: "browser.1.1", Number: 1, Action: sim.Touch,
		Begin: func(context.Context) error { return nil },
	})
	fmt.Println(err)
	fmt.Println(world.Acts(), world.Alive())

	life := body.Life{Incarnation: "browser.1", Begun: 1, Unsettled: []string{"browser.1.1"}}
	_, err = b.Check(ctx, life)
	fmt.Println(err)
	fmt.Println(b.Stop(ctx, life, func(context.Context) error { return nil }))
	evidence, err := b.Check(ctx, life)
	fmt.Println(evidence.Incarnation, evidence.Proof, err)
	// Output:
	// connection reset
	// [browser.1.1] [browser.1]
	// the body is still alive
	// <nil>
	// browser.1 gone <nil>
}
