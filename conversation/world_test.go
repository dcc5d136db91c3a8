package conversation

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
)

var testTime = time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

func person(tenant, actor string) *identity.Principal {
	return &identity.Principal{Identity: identity.Identity{Tenant: identity.Some(tenant), Actor: actor}}
}

var ann = person("acme", "ann")

func testKeys(t testing.TB) Keys {
	t.Helper()
	keys, err := NewKeys([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// ownerScoped is a policy that passes C-24.
func ownerScoped(t testing.TB) kernel.Policy {
	t.Helper()
	policy, err := kernel.ExecutionAccessPolicy(map[kernel.Operation]kernel.Scope{
		kernel.OpQuery: kernel.ScopeOwner, kernel.OpSend: kernel.ScopeOwner,
		kernel.OpCancel: kernel.ScopeOwner, kernel.OpResume: kernel.ScopeOwner,
	})
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// readerWorld is a client over a journal into which a test lays logs by hand.
type readerWorld struct {
	t      testing.TB
	store  *journaltest.Store
	rt     *kernel.Runtime
	client *Client
}

// newReaderWorld makes one. Its runtime has the flow of [parrot].
func newReaderWorld(t testing.TB, inner journal.Store) *readerWorld {
	t.Helper()
	w := &readerWorld{t: t, store: journaltest.Wrap(inner)}
	policy := ownerScoped(t)
	var err error
	w.rt, err = kernel.New(kernel.Config{
		Store: w.store, Policy: policy, Flows: []kernel.Flow{parrot()},
		Features: []kernel.Feature{kernel.Inbox, kernel.Continuations},
		Log:      slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.rt.Close)
	w.client, err = NewClient(ClientConfig{Runtime: w.rt, Keys: testKeys(t), Policy: &policy})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func newMemoryWorld(t testing.TB) *readerWorld { return newReaderWorld(t, memory.New()) }

// laid is a chain whose logs a test lays by hand.
type laid struct {
	w          *readerWorld
	id         string
	owner      *identity.Identity
	generation int
	pending    []journal.Event
	n, rec     int
	turn       int
	want       []Record // the transcript, with cursors
	next       journal.Seq
}

// lay begins a conversation of ann's.
func (w *readerWorld) lay(id string) *laid { return w.layFor(id, &ann.Identity) }

func (w *readerWorld) layFor(id string, owner *identity.Identity) *laid {
	l := &laid{w: w, id: id, owner: owner}
	l.start(Stamp(owner))
	return l
}

func (l *laid) start(input any) *laid {
	return l.event(kernel.KindStarted, "", kernel.Started{
		Flow: DefaultFlowName, Version: "1", Principal: l.owner, Input: encoded(l.w.t, input),
	})
}

func encoded(t testing.TB, value any) jsontext.Value {
	t.Helper()
	data, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (l *laid) event(kind, id string, data any) *laid {
	e := journal.Event{Kind: kind, ID: id, Time: testTime}
	if data != nil {
		e.Data = encoded(l.w.t, data)
	}
	l.pending = append(l.pending, e)
	l.next++
	return l
}

// flush writes what was laid into the store.
func (l *laid) flush() *laid {
	l.w.t.Helper()
	if len(l.pending) == 0 {
		return l
	}
	stream := kernel.StreamOf(l.id, l.generation)
	expect := l.next - journal.Seq(len(l.pending))
	if err := l.w.store.Append(context.Background(), journal.Append{Stream: stream, Expect: expect, Events: l.pending}); err != nil {
		l.w.t.Fatalf("lay %s: %v", stream, err)
	}
	l.pending = nil
	return l
}

// record lays a record under its decision.
func (l *laid) record(id string, r Record) *laid {
	l.rec++
	r.Ord, r.Time, r.Asker = l.rec, testTime, l.owner
	l.event(kernel.KindDecided, id, kernel.Decided{Source: SourceRecord, Value: encoded(l.w.t, r)})
	r.Cursor = Cursor{Generation: l.generation, Seq: l.next - 1}
	l.want = append(l.want, r)
	return l
}

// said lays an accepted message with its reply.
func (l *laid) said(text string) *laid {
	l.n++
	l.turn++
	l.record(idUser(l.n), Record{Turn: l.turn, Role: RoleUser, Status: StatusAccepted, Text: text})
	l.noise(2)
	return l.record(idReply(l.n), Record{Turn: l.turn, Role: RoleAssistant, Status: StatusComplete, Text: "re: " + text})
}

// refused lays a rejected message.
func (l *laid) refused() *laid {
	l.n++
	return l.record(idUser(l.n), Record{Role: RoleUser, Status: StatusRejected, Reason: ReasonStale})
}

// noise lays tool traffic.
func (l *laid) noise(events int) *laid {
	for i := range events {
		id := loopID(l.n) + "#tool" + strconv.Itoa(i/2)
		if i%2 == 0 {
			l.event(kernel.KindRequested, id, kernel.Requested{Effect: "tool", Hash: "h"})
		} else {
			l.event(kernel.KindSettled, id, kernel.Settled{Value: jsontext.Value(`"result"`)})
		}
	}
	return l
}

// rotate ends the generation and begins the next.
func (l *laid) rotate() *laid {
	l.event(kernel.KindContinued, "", nil).flush()
	l.generation++
	l.next = 0
	return l.start(map[string]int{"v": 1}).flush()
}

// close lays the close and the end.
func (l *laid) close() *laid {
	l.event(kernel.KindDecided, idClosed, kernel.Decided{Source: SourceRecord, Value: encoded(l.w.t, Closed{Time: testTime})})
	return l.event(kernel.KindEnded, "", kernel.Ended{State: kernel.Completed}).flush()
}

// parrot is a flow that keeps a conversation's promises to its readers with no
// agent: each message is recorded and repeated, "rotate" continues as new, and
// a close ends it.
func parrot() kernel.Flow {
	type state struct{ N, Rec, Turn int }
	return kernel.Flow{
		Name: DefaultFlowName, Version: "1", Needs: []kernel.Feature{kernel.Inbox, kernel.Continuations},
		Run: func(c *kernel.Context, input jsontext.Value) (any, error) {
			var s state
			if c.Generation() > 0 {
				if err := json.Unmarshal(input, &s); err != nil {
					return nil, err
				}
			}
			record := func(id string, r Record) {
				s.Rec++
				c.Decide(id, SourceRecord, func(context.Context) (Record, error) {
					r.Turn, r.Ord, r.Time = s.Turn, s.Rec, time.Now()
					return r, nil
				})
			}
			for {
				e, _ := split(c.Receive(Topic))
				b, _ := e.read()
				s.N++
				if b.Kind == KindClose {
					c.Decide(idClosed, SourceRecord, func(context.Context) (Closed, error) {
						return Closed{Asker: b.Asker, Time: time.Now()}, nil
					})
					return nil, nil
				}
				s.Turn++
				record(idUser(s.N), Record{Role: RoleUser, Status: StatusAccepted, Text: b.Text, Asker: b.Asker})
				record(idReply(s.N), Record{Role: RoleAssistant, Status: StatusComplete, Text: b.Text, Asker: b.Asker})
				if b.Text == "rotate" {
					return nil, kernel.ContinueAsNew(s)
				}
			}
		},
	}
}

// texts renders records short.
func texts(records []Record) []string {
	var out []string
	for _, r := range records {
		out = append(out, fmt.Sprintf("%d %s %s", r.Ord, r.Role, r.Text))
	}
	return out
}
