package main

import (
	"context"
	"encoding/json/jsontext"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
)

// played is a store with an execution "talk" of two generations that has
// consumed three messages.
func played(t *testing.T) journal.Store {
	t.Helper()
	store := memory.New()
	t.Cleanup(func() { store.Close() })
	flow := kernel.Flow{
		Name: "talk", Version: "1", Needs: []kernel.Feature{kernel.Inbox, kernel.Continuations},
		Run: func(c *kernel.Context, _ jsontext.Value) (any, error) {
			for range 2 - c.Generation() {
				c.Receive("talk")
				if _, err := c.Execute[string]("echo#"+string(rune('a'+c.Generation())), "echo", "secret words"); err != nil {
					return nil, err
				}
				if c.Generation() == 0 {
					return nil, kernel.ContinueAsNew("carry")
				}
			}
			return c.Decide("last", "test", func(context.Context) (string, error) { return "secret words", nil })
		},
	}
	rt, err := kernel.New(kernel.Config{
		Store: store, Flows: []kernel.Flow{flow}, Features: flow.Needs,
		Effects: []kernel.Effect{{ID: "echo", Mode: kernel.Repeatable, Run: func(_ context.Context, in jsontext.Value) (any, error) { return in, nil }}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	caller := kernel.By(identity.Principal{Identity: identity.Identity{Actor: "ann"}})
	id, _, err := rt.Start(t.Context(), caller, kernel.StartRequest{Flow: "talk", ID: "talk"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := rt.Send(t.Context(), caller, id, "talk", jsontext.Value(`"secret words"`), ""); err != nil {
			t.Fatal(err)
		}
	}
	waitForEnd(t, rt, store, id)
	return store
}

// waitForEnd follows the logs until the execution is over.
func waitForEnd(t *testing.T, rt *kernel.Runtime, store journal.Store, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for generation := range 2 {
		news, err := store.Subscribe(ctx, kernel.StreamOf(id, generation))
		if err != nil {
			t.Fatal(err)
		}
		for {
			info, err := rt.Query(ctx, rt.System(), id)
			if err != nil {
				t.Fatal(err)
			}
			if info.State.Over() || info.Generation > generation {
				break
			}
			<-news
		}
	}
}

// edited is a store in which what is read of one stream was changed.
type edited struct {
	journal.Store
	stream string
	edit   func([]journal.Event) []journal.Event
}

func (e edited) ReadRange(ctx context.Context, stream string, from journal.Seq, limit int, dir journal.Direction) ([]journal.Event, error) {
	if stream != e.stream {
		return e.Store.ReadRange(ctx, stream, from, limit, dir)
	}
	events, err := e.Store.ReadRange(ctx, stream, 0, 1000, journal.Forward)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(e.edit(events), func(event journal.Event) bool { return event.Seq < from }), nil
}

// A damaged log is told from a whole one, with the place of the damage and
// nothing of its text.
func TestVerify(t *testing.T) {
	store := played(t)
	verify := logVerify{logFlags{ID: "talk"}}
	found, err := verify.verify(t.Context(), store)
	if want := (verified{generations: 2, facts: 11, messages: 2}); err != nil || found != want {
		t.Fatalf("verify = %+v, %v, want %+v", found, err, want)
	}
	drop := func(seq journal.Seq) func([]journal.Event) []journal.Event {
		return func(events []journal.Event) []journal.Event {
			return slices.DeleteFunc(events, func(event journal.Event) bool { return event.Seq == seq })
		}
	}
	change := func(seq journal.Seq, how func(*journal.Event)) func([]journal.Event) []journal.Event {
		return func(events []journal.Event) []journal.Event { how(&events[seq]); return events }
	}
	tests := map[string]struct {
		stream string
		edit   func([]journal.Event) []journal.Event
		want   string
	}{
		"no start":          {"talk", drop(0), "generation 0, event 0: it is missing"},
		"a gap":             {"talk~1", drop(2), "generation 1, event 2: it is missing; the next one is event 3"},
		"not continued":     {"talk", drop(4), "generation 0, event 3: a later generation exists"},
		"start in place 1":  {"talk", change(1, func(e *journal.Event) { e.Kind = kernel.KindStarted }), "generation 0, event 1: STARTED in this place"},
		"no start in 0":     {"talk~1", change(0, func(e *journal.Event) { e.Kind = kernel.KindDecided }), "generation 1, event 0: DECIDED in this place"},
		"end in the middle": {"talk", change(2, func(e *journal.Event) { e.Kind = kernel.KindContinued }), "generation 0, event 3: it comes after the end"},
		"unknown kind":      {"talk", change(2, func(e *journal.Event) { e.Kind = "DREAMT" }), "generation 0, event 2: unknown kind DREAMT"},
		"no JSON":           {"talk", change(1, func(e *journal.Event) { e.Data = jsontext.Value(`{"secret`) }), "generation 0, event 1: "},
		"wrong shape":       {"talk", change(0, func(e *journal.Event) { e.Data = jsontext.Value(`["secret"]`) }), "generation 0, event 0: "},
		"inbox gap":         {"inbox:talk", drop(0), "inbox of talk, event 0: it is missing"},
		"inbox cut":         {"inbox:talk", drop(1), "generation 1, event 1: it consumed message 1, and the inbox holds 1"},
		"inbox of no kind":  {"inbox:talk", change(0, func(e *journal.Event) { e.Kind = kernel.KindDecided }), "inbox of talk, event 0: it is no message"},
		"message no JSON":   {"inbox:talk", change(1, func(e *journal.Event) { e.Data = jsontext.Value(`secret`) }), "inbox of talk, event 1: "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			found, err := verify.verify(t.Context(), edited{store, tt.stream, tt.edit})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("verify = %+v, %v, want %q", found, err, tt.want)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("verify = %v, which repeats the text", err)
			}
		})
	}
	if _, err := (&logVerify{logFlags{ID: "none"}}).verify(t.Context(), store); err == nil || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("verify of an unknown id = %v", err)
	}
}

// Every fact is shown with its place, time and size; texts only when asked for.
func TestShow(t *testing.T) {
	store := played(t)
	var short, long strings.Builder
	show := logShow{logFlags: logFlags{ID: "talk"}}
	if err := show.show(t.Context(), store, &short); err != nil {
		t.Fatal(err)
	}
	show.Text = true
	if err := show.show(t.Context(), store, &long); err != nil {
		t.Fatal(err)
	}
	var places []string
	for line := range strings.Lines(short.String()) {
		fields := strings.Fields(line)
		if len(fields) != 6 {
			t.Errorf("line %q has not 6 columns", line)
		}
		places = append(places, fields[0]+" "+fields[3])
	}
	want := []string{
		"PLACE KIND",
		"0.0 STARTED", "0.1 MESSAGE_CONSUMED", "0.2 REQUESTED", "0.3 SETTLED", "0.4 CONTINUED",
		"1.0 STARTED", "1.1 MESSAGE_CONSUMED", "1.2 REQUESTED", "1.3 SETTLED", "1.4 DECIDED", "1.5 ENDED",
		"inbox.0 MESSAGE", "inbox.1 MESSAGE",
	}
	if !slices.Equal(places, want) {
		t.Errorf("show gives %q, want %q", places, want)
	}
	if strings.Contains(short.String(), "secret") {
		t.Errorf("show gives texts unasked:\n%s", short.String())
	}
	if !strings.Contains(long.String(), "secret words") {
		t.Errorf("show --text gives no texts:\n%s", long.String())
	}
}
