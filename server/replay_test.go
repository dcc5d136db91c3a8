package server

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model/script"
)

// talked is a store with a conversation "talk" of several generations, with
// verdicts of a budget and with summaries.
func talked(t *testing.T) journal.Store {
	t.Helper()
	store := memory.New()
	t.Cleanup(func() { store.Close() })
	keys, err := conversation.NewKeys(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	m, err := script.Parse("script", []byte("when system \"memory of a long conversation\"\n say \"so far\"\nwhen has \"clock\"\n call clock {}\nthen\n say \"late\"\nwhen has \"break\"\n fail refused\notherwise\n reply\n"))
	if err != nil {
		t.Fatal(err)
	}
	settings := Settings{RotateEveryTurns: 2, MaxWindowTurns: 1, ContextWindow: 4000}
	log := slog.New(slog.DiscardHandler)
	flow, err := newFlow(settings, keys, m, surroundings{}, log)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := newRuntime(store, flow, new(rights), log)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	client, err := newClient(settings, keys, rt, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ann := &identity.Principal{Identity: identity.Identity{Actor: "ann"}}
	if _, err := client.Start(t.Context(), ann, "talk"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"hello", "the clock", "break", "again", "once more"} {
		if _, err := client.SendTurn(t.Context(), ann, "talk", conversation.Message{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	replies := 0
	for record, err := range client.Follow(t.Context(), ann, "talk", nil) {
		if err != nil {
			t.Fatal(err)
		}
		if record.Role == conversation.RoleAssistant {
			replies++
		}
		if replies == 5 {
			break
		}
	}
	if log := fmt.Sprint(contents(t, store)); !strings.Contains(log, "conv#o3:summary") || !strings.Contains(log, "conv#fit:5") {
		t.Error("the log has no verdict, or no summary")
	}
	return store
}

// contents are the ids of all facts of "talk".
func contents(t *testing.T, store journal.Store) (ids []string) {
	t.Helper()
	for generation := range 3 {
		events, err := store.ReadRange(t.Context(), kernel.StreamOf("talk", generation), 0, 1000, journal.Forward)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// Every generation is replayed with other keys, without the model, and without
// a write.
func TestReplay(t *testing.T) {
	store := talked(t)
	before := sizes(t, store)
	var got []kernel.Rehearsal
	for rehearsal, err := range Replay(t.Context(), store, "talk") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, rehearsal)
	}
	if len(got) != 3 || !got[0].Ended || !got[1].Ended || got[2].Ended || !strings.Contains(got[2].Would, "waits") {
		t.Errorf("Replay gives %+v, want two ended generations and one that waits", got)
	}
	if after := sizes(t, store); after != before {
		t.Errorf("Replay has written: the streams had %v events and have %v", before, after)
	}
}

func sizes(t *testing.T, store journal.Store) (all [4]journal.Seq) {
	t.Helper()
	for i, stream := range []string{"talk", "talk~1", "talk~2", "inbox:talk"} {
		next, _, err := store.HeadOf(t.Context(), stream)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = next
	}
	return all
}

// renamed is a store in which one decision of generation 1 has another id.
type renamed struct{ journal.Store }

func (s renamed) ReadRange(ctx context.Context, stream string, from journal.Seq, limit int, dir journal.Direction) ([]journal.Event, error) {
	events, err := s.Store.ReadRange(ctx, stream, from, limit, dir)
	for i := range events {
		if stream == "talk~1" && events[i].ID == "conv#o3:reply" {
			events[i].ID = "conv#o3:answer"
		}
	}
	return events, err
}

// A log that this build would not have made is told, with generation and place.
func TestReplayDiverges(t *testing.T) {
	var last error
	generations := 0
	for _, err := range Replay(t.Context(), renamed{talked(t)}, "talk") {
		generations++
		last = err
	}
	if !errors.Is(last, kernel.ErrDivergence) || generations != 2 {
		t.Fatalf("Replay ends with %v after %d generations, want a divergence in the second", last, generations)
	}
	for _, want := range []string{"generation 1", "conv#o3:"} {
		if !strings.Contains(last.Error(), want) {
			t.Errorf("Replay = %v, which does not say %q", last, want)
		}
	}
}

func TestReplayOfNothing(t *testing.T) {
	for _, err := range Replay(t.Context(), memory.New(), "none") {
		if !errors.Is(err, kernel.ErrNotFound) {
			t.Errorf("Replay of an unknown id = %v, want ErrNotFound", err)
		}
	}
}

// An execution of a flow that this build does not have.
func TestReplayOfForeignFlow(t *testing.T) {
	store := memory.New()
	defer store.Close()
	started := jsontext.Value(`{"flow":"other","version":"1"}`)
	if err := store.Append(t.Context(), journal.Append{Stream: "x", Events: []journal.Event{{Kind: kernel.KindStarted, Data: started}}}); err != nil {
		t.Fatal(err)
	}
	for _, err := range Replay(t.Context(), store, "x") {
		if err == nil || !strings.Contains(err.Error(), `"other"`) {
			t.Errorf("Replay of a flow that is not ours = %v, want its name", err)
		}
	}
}
