package fault_test

import (
	"errors"
	"fmt"

	"github.com/parley-run/parley/fault"
)

var errClosed = fault.New("ConversationClosed", "the conversation is closed")

// An error keeps its code over a wire, and leaves its text behind.
func Example() {
	failed := fmt.Errorf("send to %s: %w", "somebody", errClosed)

	wire := fault.CodeOf(failed)
	read := fault.FromCode(wire)
	fmt.Println(wire, errors.Is(read, errClosed))
	fmt.Println(read)
	// Output:
	// ConversationClosed true
	// recorded failure ConversationClosed
}
