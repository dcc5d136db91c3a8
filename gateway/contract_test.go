package gateway

import "github.com/parley-run/parley/internal/contracttest"

// contract is docs/openapi.yaml. It is read before any test, since a bubble of
// virtual time would wait for what its reading leaves running.
var contract = func() *contracttest.Contract {
	c, err := contracttest.Open("../docs/openapi.yaml")
	if err != nil {
		panic(err)
	}
	return c
}()
