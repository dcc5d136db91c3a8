package tool_test

import (
	"encoding/json/jsontext"
	"fmt"

	"github.com/parley-run/parley/tool"
)

// Arguments that a model made up are held against the schema of a tool.
func ExampleSchema_Misfit() {
	schema, err := tool.NewSchema(jsontext.Value(`{
		"type": "object",
		"properties": {"city": {"type": "string"}, "days": {"type": "integer", "maximum": 7}},
		"required": ["city"]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(schema.Misfit(jsontext.Value(`{"city": "Oslo", "days": 3}`)) == "")
	fmt.Println(schema.Misfit(jsontext.Value(`{"days": 3}`)))
	// Output:
	// true
	// required: missing properties: ["city"]
}
