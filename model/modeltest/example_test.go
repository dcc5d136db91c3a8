package modeltest_test

import (
	"fmt"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/modeltest"
)

// A request whose first message is a tool's result, as it is left where history
// was cut between a call and its result.
func ExampleViolations() {
	req := model.Request{Messages: []model.Message{
		{Role: model.User, Results: []model.Result{{CallID: "a", Name: "look", Text: "noon"}}},
		{Role: model.Assistant, Text: "It is noon."},
		{Role: model.Assistant, Text: "Anything else?"},
		{Role: model.User, Text: "No."},
	}}
	for _, violation := range modeltest.Violations(req) {
		fmt.Println(violation)
	}
	// Output:
	// roles alternate (T69): message 2
	// no result comes first (T70): message 0
}
