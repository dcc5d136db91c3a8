package browser_test

import (
	"context"
	"fmt"
	"os"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/browser"
)

// The registry of package lease calls the adapter like this, for the holder.
func Example() {
	directory, err := os.MkdirTemp("", "browser")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(directory) }()
	b, err := browser.New(browser.Config{Directory: directory})
	if err != nil {
		panic(err)
	}
	defer func() { _ = b.Close() }()
	_, err = b.Perform(context.Background(), body.Effect{
		Incarnation: "browser.1", Operation: "browser.1.1", Number: 1,
		Action: browser.Open, Input: []byte(`{"url":"file:///etc/passwd"}`),
		Begin: func(context.Context) error { return nil },
	})
	fmt.Println(err)
	// Output: the body refused, nothing was done: only addresses that begin with http:// or https:// can be opened
}
