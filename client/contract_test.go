package client

import (
	"testing"

	"github.com/parley-run/parley/internal/contracttest"
)

// Every code of an error in docs/openapi.yaml is a sentinel here, and each
// sentinel stands for a code that is in it.
func TestSentinelsAreTheContracts(t *testing.T) {
	contract, err := contracttest.Open("../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, code := range contract.Codes() {
		known[code] = true
		if (&Error{Code: code}).Unwrap() == nil {
			t.Errorf("%q is no error here", code)
		}
	}
	for _, sentinel := range sentinels {
		if !known[sentinel.Code] {
			t.Errorf("%q is not in the document", sentinel.Code)
		}
	}
}
