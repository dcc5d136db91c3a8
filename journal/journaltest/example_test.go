package journaltest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
)

// The second append is written, but its caller is told that it failed: the
// crash between a commit and its acknowledgement.
func ExampleWrap() {
	ctx := context.Background()
	store := journaltest.Wrap(memory.New())
	store.FailAfter(2, errors.New("cut off"))
	for range 3 {
		fmt.Println(store.Append(ctx, journal.Append{
			Stream: "s", Expect: journal.AtEnd, Events: []journal.Event{{Kind: "FACT"}},
		}))
	}
	counts := store.Counts()
	fmt.Println(counts.Appends, "appends,", counts.EventsWritten, "events written")
	// Output:
	// <nil>
	// cut off
	// <nil>
	// 3 appends, 3 events written
}
