package kernel_test

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
)

var (
	ann = kernel.By(identity.Principal{Identity: identity.Identity{Tenant: identity.Some("acme"), Actor: "ann"}})
	bob = kernel.By(identity.Principal{Identity: identity.Identity{Tenant: identity.Some("acme"), Actor: "bob"}})
)

// world is one store with one runtime after another on it.
type world struct {
	t      *testing.T
	inner  journal.Store
	store  *journaltest.Store // around inner
	config kernel.Config
	rt     *kernel.Runtime
	logged *strings.Builder
}

func newWorld(t *testing.T, config kernel.Config) *world {
	t.Helper()
	w := &world{t: t, inner: memory.New(), config: config}
	w.store = journaltest.Wrap(w.inner)
	w.boot()
	t.Cleanup(func() { w.rt.Close() })
	return w
}

// boot makes a runtime on the store and recovers what is there.
func (w *world) boot() {
	w.t.Helper()
	w.logged = &strings.Builder{}
	config := w.config
	config.Store = w.store
	config.Features = []kernel.Feature{kernel.Inbox, kernel.Continuations}
	config.Log = slog.New(slog.NewTextHandler(&lockedWriter{w: w.logged}, nil))
	rt, err := kernel.New(config)
	if err != nil {
		w.t.Fatalf("New: %v", err)
	}
	w.rt = rt
	if err := rt.Recover(w.t.Context()); err != nil {
		w.t.Fatalf("Recover: %v", err)
	}
	synctest.Wait()
}

// reboot closes the runtime and boots another one with the same store.
func (w *world) reboot() {
	w.t.Helper()
	w.rt.Close()
	w.boot()
}

// heal takes the faults from the store, as opening it again would.
func (w *world) heal() { w.store = journaltest.Wrap(w.inner) }

func (w *world) start(flow, id string, input any) {
	w.t.Helper()
	if _, _, err := w.rt.Start(w.t.Context(), ann, kernel.StartRequest{Flow: flow, ID: id, Input: input}); err != nil {
		w.t.Fatalf("Start(%q): %v", id, err)
	}
	synctest.Wait()
}

func (w *world) send(id, text, messageID string) {
	w.t.Helper()
	w.sendBy(ann, id, text, messageID)
}

func (w *world) sendBy(caller kernel.Caller, id, text, messageID string) {
	w.t.Helper()
	err := w.rt.Send(w.t.Context(), caller, id, "in", quoted(text), messageID)
	if err != nil && !errors.Is(err, kernel.ErrEnded) { // a prefix may hold the end already
		w.t.Fatalf("Send(%q, %q): %v", id, text, err)
	}
	synctest.Wait()
}

func (w *world) state(id string) kernel.State {
	w.t.Helper()
	info, err := w.rt.Query(w.t.Context(), ann, id)
	if err != nil {
		w.t.Fatalf("Query(%q): %v", id, err)
	}
	return info.State
}

// log renders one stream, an event a line, without times.
func (w *world) log(stream string) []string {
	w.t.Helper()
	events, err := w.store.ReadRange(context.Background(), stream, 0, 10_000, journal.Forward)
	if err != nil {
		w.t.Fatalf("ReadRange(%q): %v", stream, err)
	}
	var lines []string
	for _, e := range events {
		lines = append(lines, fmt.Sprintf("%d %s %s %s", e.Seq, e.Kind, e.ID, e.Data))
	}
	return lines
}

// kinds renders the kinds and ids of one stream.
func (w *world) kinds(stream string) []string {
	w.t.Helper()
	var kinds []string
	for _, line := range w.log(stream) {
		fields := strings.SplitN(line, " ", 4)
		kinds = append(kinds, strings.TrimSpace(fields[1]+" "+fields[2]))
	}
	return kinds
}

func (w *world) wantKinds(stream string, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.kinds(stream)); diff != "" {
		w.t.Errorf("log of %q (-want +got):\n%s", stream, diff)
	}
}

func quoted(text string) jsontext.Value {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return data
}

func unquoted(data jsontext.Value) string {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		panic(err)
	}
	return text
}

// counter counts by name from many goroutines.
type counter struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counter) add(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[name]++
	return c.n[name]
}

func (c *counter) count(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[name]
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// echo is an effect that returns its input.
var echo = kernel.Effect{ID: "echo", Mode: kernel.Repeatable, Run: func(_ context.Context, input jsontext.Value) (any, error) {
	return input, nil
}}

// chatter is a flow that answers each message with a step, rotates after
// three, and ends on "end".
func chatter(calls *counter) kernel.Flow {
	return kernel.Flow{
		Name: "chatter", Version: "1", Needs: []kernel.Feature{kernel.Inbox, kernel.Continuations},
		Run: func(c *kernel.Context, input jsontext.Value) (any, error) {
			type carry struct {
				N       int    `json:"n"`
				Pending string `json:"pending"`
			}
			var at carry
			if err := json.Unmarshal(input, &at); err != nil {
				return nil, err
			}
			for round := 0; ; round++ {
				text := at.Pending
				if at.Pending = ""; text == "" {
					text = unquoted(c.Receive("in"))
					if round == 3 {
						return nil, kernel.ContinueAsNew(carry{N: at.N, Pending: text})
					}
				}
				at.N++
				if text == "end" {
					return at.N, nil
				}
				_, err := c.Decide(fmt.Sprintf("turn%d", at.N), "turn", func(context.Context) (string, error) {
					calls.add("turn")
					return c.Execute[string](fmt.Sprintf("turn%d/step", at.N), "echo", text)
				})
				if err != nil {
					return nil, err
				}
			}
		},
	}
}

// grantsNothing is a Granted that denies every effect.
func grantsNothing(*identity.Identity, kernel.EffectID) bool { return false }
