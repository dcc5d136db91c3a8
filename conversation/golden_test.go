package conversation_test

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
)

var update = flag.Bool("update", false, "write the golden logs anew")

// goldenEvent is one line of a golden log.
type goldenEvent struct {
	Stream string         `json:"stream"`
	Kind   string         `json:"kind"`
	ID     string         `json:"id,omitzero"`
	Time   time.Time      `json:"time"`
	Data   jsontext.Value `json:"data,omitzero"`
}

// TestGoldenLogs replays logs that earlier builds wrote: every generation, with
// no divergence, and the conversation goes on (C-16.7, C-43.1). Renew them with
// -update, which is allowed until the first release.
func TestGoldenLogs(t *testing.T) {
	for name, p := range plans() {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", "golden", strings.ReplaceAll(name, " ", "-")+".jsonl")
			if *update {
				writeGolden(t, file, unbroken(t, p, 0).batches)
			}
			synctest.Test(t, func(t *testing.T) {
				store, generations, turns := readGolden(t, file)
				h := build(t, p, journaltest.Wrap(store), &tally{n: map[string]int{}}, 0)
				defer h.rt.Close()
				for g := range generations {
					if _, err := h.rt.Rehearse(t.Context(), "talk", g); err != nil {
						t.Errorf("Rehearse of generation %d: %v", g, err)
					}
				}
				for _, id := range turns {
					if got, err := h.rt.Rehearse(t.Context(), id, 0); err != nil || !got.Ended {
						t.Errorf("Rehearse of %s: %+v, %v", id, got, err)
					}
				}
				if p.shared != (len(turns) > 0) {
					t.Errorf("the log has %d executions of turns", len(turns))
				}
				before := h.transcript()
				h.ask("one more", "one more")
				after := h.transcript()
				if diff := cmp.Diff(before, after[:len(before)]); diff != "" {
					t.Errorf("the transcript changed (-before +after):\n%s", diff)
				}
				if open := h.state() == conversation.StateOpen; open && len(after) != len(before)+2 {
					t.Errorf("transcript grew by %d records; want a question and an answer", len(after)-len(before))
				}
			})
		})
	}
}

func writeGolden(t *testing.T, file string, batches [][]journal.Append) {
	t.Helper()
	var out bytes.Buffer
	for _, batch := range batches {
		for _, part := range batch {
			for _, e := range part.Events {
				line, err := json.Marshal(goldenEvent{part.Stream, e.Kind, e.ID, e.Time, e.Data})
				if err != nil {
					t.Fatal(err)
				}
				out.Write(append(line, '\n'))
			}
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// readGolden lays a golden log into a store, counts its generations, and names the
// executions of its turns.
func readGolden(t *testing.T, file string) (store journal.Store, generations int, turns []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (write it with -update)", err)
	}
	store = memory.New()
	for line := range bytes.Lines(data) {
		var e goldenEvent
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		switch {
		case e.Kind == kernel.KindStarted && strings.HasPrefix(e.Stream, "turn:"):
			turns = append(turns, e.Stream)
		case e.Kind == kernel.KindStarted:
			generations++
		}
		time.Sleep(time.Until(e.Time))
		err := store.Append(t.Context(), journal.Append{
			Stream: e.Stream, Expect: journal.AtEnd,
			Events: []journal.Event{{Kind: e.Kind, ID: e.ID, Time: e.Time, Data: e.Data}},
		})
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return store, generations, turns
}
