package script_test

import (
	"context"
	"fmt"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/script"
)

func ExampleParse() {
	m, err := script.Parse("greeting.script", []byte(`
when has "morning"
  words "Good morning." 20ms
otherwise
  fail rate-limited after 2s
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{"Good morning!", "Good night!"} {
		req := model.Request{Messages: []model.Message{{Role: model.User, Text: text}}}
		reply, err := model.Collect(m.Stream(context.Background(), req), func(delta string) { fmt.Printf("%q\n", delta) })
		fmt.Println(reply.Reason, err)
	}
	// Output:
	// "Good "
	// "morning."
	// stop <nil>
	//  script greeting.script:5: the model's service asks to slow down
}
