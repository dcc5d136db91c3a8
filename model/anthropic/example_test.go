package anthropic_test

import (
	"fmt"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/model/anthropic"
)

func ExampleNew() {
	_, err := anthropic.New("claude-sonnet-5", anthropic.Config{APIKey: identity.NewSecret("sk-ant-…")})
	fmt.Println(err)
	_, err = anthropic.New("claude-sonnet-5", anthropic.Config{APIKey: identity.NewSecret("sk-ant-1")})
	fmt.Println(err)
	// Output:
	// anthropic model "claude-sonnet-5": the API key holds a character that no key has
	// <nil>
}
