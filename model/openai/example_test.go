package openai_test

import (
	"fmt"

	"github.com/parley-run/parley/model/openai"
)

func ExampleNew() {
	_, err := openai.New("llama3.2", openai.Config{BaseURL: "http://127.0.0.1:11434/v1"})
	fmt.Println(err)
	_, err = openai.New("gpt-5", openai.Config{})
	fmt.Println(err)
	// Output:
	// <nil>
	// openai model "gpt-5": OpenAI wants an API key
}
