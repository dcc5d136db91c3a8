package sqlite_test

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"os"
	"path/filepath"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/sqlite"
)

// What a store has acknowledged is there when the file is opened again.
func ExampleOpen() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "journal")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "parley.db")

	for _, text := range []string{`"good morning"`, `"good night"`} {
		store, err := sqlite.Open(ctx, path, sqlite.Config{})
		if err != nil {
			fmt.Println(err)
			return
		}
		err = store.Append(ctx, journal.Append{Stream: "greetings", Expect: journal.AtEnd, Events: []journal.Event{
			{Kind: "SAID", Data: jsontext.Value(text)},
		}})
		if err != nil {
			fmt.Println(err)
		}
		events, err := store.ReadRange(ctx, "greetings", 0, 10, journal.Forward)
		if err != nil {
			fmt.Println(err)
		}
		fmt.Println(len(events), "events, the newest is", events[len(events)-1].Data)
		if err := store.Close(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 1 events, the newest is "good morning"
	// 2 events, the newest is "good night"
}
