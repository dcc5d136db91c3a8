package conversation

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/modeltest"
	"github.com/parley-run/parley/model/script"
	"github.com/parley-run/parley/taint"
)

// stage is one conversation, "talk", past the client: what a test sends goes
// raw through the runtime. Its process can be stopped and made anew.
type stage struct {
	t      *testing.T
	store  *journaltest.Store
	model  *requests
	config Config
	other  []kernel.Effect // of the host
	grant  func(kernel.EffectID) bool
	hot    int // as in kernel.Config
	keys   Keys
	owner  *identity.Principal

	rt      *kernel.Runtime
	changed chan struct{} // an append was written
	sent    int
}

// stages runs a test as it comes; with every park cold; and, hot and cold, with
// a rotation at every envelope (C-19).
func stages(t *testing.T, text string, play func(t *testing.T, s *stage)) {
	t.Helper()
	for _, variant := range []struct {
		name        string
		hot, rotate int
	}{{"hot", 0, 0}, {"cold", -1, 0}, {"hot, rotating", 0, 1}, {"cold, rotating", -1, 1}} {
		t.Run(variant.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, text)
				s.hot, s.config.Settings.RotateEveryTurns = variant.hot, variant.rotate
				play(t, s)
			})
		})
	}
}

// newStage makes one whose model plays the script.
func newStage(t *testing.T, text string) *stage {
	t.Helper()
	played, err := script.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{
		t: t, store: journaltest.Wrap(memory.New()), model: &requests{t: t, inner: played},
		keys: testKeys(t), owner: ann, changed: make(chan struct{}, 1),
	}
	s.store.After(func(int, []journal.Append) error {
		select {
		case s.changed <- struct{}{}:
		default:
		}
		return nil
	})
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	s.config = Config{Keys: s.keys, Log: quiet, Agent: agent.Definition{
		System: taint.Plain("Be brief."), Model: s.model, Log: quiet, Tools: []agent.Tool{agent.Clock()},
	}}
	t.Cleanup(s.stop)
	return s
}

// boot makes the process, and starts the conversation if there is none.
func (s *stage) boot() {
	s.t.Helper()
	s.bootFlow()
	var caller kernel.Caller
	var owner *identity.Identity
	if s.owner != nil {
		caller, owner = kernel.By(*s.owner), &s.owner.Identity
	}
	_, _, err := s.rt.Start(context.Background(), caller, kernel.StartRequest{Flow: DefaultFlowName, ID: "talk", Input: Stamp(owner)})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) bootFlow() {
	s.t.Helper()
	flow, err := NewFlow(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	config := kernel.Config{
		Store: s.store, Flows: flow.Kernels(), Effects: append(flow.Effects(), s.other...), Hot: s.hot,
		Features: []kernel.Feature{kernel.Inbox, kernel.Continuations}, Log: s.config.Log, Policy: kernel.Unguarded(),
	}
	if s.grant != nil {
		config.Granted = func(_ *identity.Identity, id kernel.EffectID) bool { return s.grant(id) }
	}
	if s.rt, err = kernel.New(config); err != nil {
		s.t.Fatal(err)
	}
	if err := s.rt.Recover(context.Background()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) stop() {
	if s.rt != nil {
		s.rt.Close()
	}
}

// reboot is a restart of the process.
func (s *stage) reboot() {
	s.t.Helper()
	s.stop()
	s.boot()
}

// send puts a payload into the inbox, in the host's own name.
func (s *stage) send(payload jsontext.Value, messageID string) {
	s.t.Helper()
	s.sendAs(nil, payload, messageID)
}

// sendAs does so in the name of a caller, nil for the host.
func (s *stage) sendAs(caller *identity.Principal, payload jsontext.Value, messageID string) {
	s.t.Helper()
	if s.rt == nil {
		s.boot()
	}
	by := s.rt.System()
	if caller != nil {
		by = kernel.By(*caller)
	}
	if err := s.rt.Send(context.Background(), by, "talk", Topic, payload, messageID); err != nil {
		s.t.Fatalf("Send: %v", err)
	}
}

// say sends a text in the owner's name under a message id of its own, as the
// client does.
func (s *stage) say(text string) {
	s.t.Helper()
	s.sent++
	s.sayAgain(s.sent, text)
}

// sayAgain sends the n-th message, under its own id.
func (s *stage) sayAgain(n int, text string) {
	s.t.Helper()
	id := fmt.Sprint("m", n)
	s.sendAs(s.owner, s.keys.signUser("talk", asker(s.owner), id, text, time.Now()), id)
}

// halt sends a stop of a turn.
func (s *stage) halt(turn int) {
	s.t.Helper()
	s.sent++
	id := fmt.Sprint("m", s.sent)
	b := newBody(KindStop, "talk", asker(s.owner), id, time.Now())
	b.Turn = &turn
	s.sendAs(s.owner, s.keys.seal(b), id)
}

// hear waits until the transcript has n records and returns it, one line each.
// After an hour of virtual time the test fails.
func (s *stage) hear(n int) []string {
	s.t.Helper()
	patience := time.NewTimer(time.Hour)
	defer patience.Stop()
	for {
		lines := s.transcript()
		if len(lines) >= n {
			return lines
		}
		select {
		case <-s.changed:
		case <-patience.C:
			info := s.state()
			s.t.Fatalf("the transcript stays at %q; the execution is %s %s", lines, info.State, info.Fault)
		}
	}
}

// quiet waits until nothing moves any more at this point of time.
func (s *stage) quiet() []string {
	synctest.Wait()
	return s.transcript()
}

// pass lets virtual time go by.
func (s *stage) pass(d time.Duration) { <-time.After(d) }

// events reads the logs of all generations, one after another.
func (s *stage) events() []journal.Event {
	s.t.Helper()
	var all []journal.Event
	for g := 0; ; g++ {
		events, err := s.store.ReadRange(context.Background(), kernel.StreamOf("talk", g), 0, 1<<20, journal.Forward)
		if err != nil {
			s.t.Fatal(err)
		}
		if len(events) == 0 {
			return all
		}
		all = append(all, events...)
	}
}

func (s *stage) records() []Record {
	s.t.Helper()
	var records []Record
	for _, e := range s.events() {
		if r, ok := RecordOf(e); ok {
			records = append(records, r)
		}
	}
	return records
}

// transcript renders the records: turn, ord, role, status, reason, text.
func (s *stage) transcript() []string {
	s.t.Helper()
	lines := []string{}
	for _, r := range s.records() {
		words := []string{fmt.Sprintf("%d/%d", r.Turn, r.Ord), string(r.Role), string(r.Status)}
		if r.Reason != "" {
			words = append(words, string(r.Reason))
		}
		lines = append(lines, strings.Join(append(words, r.Text), " "))
	}
	return lines
}

func (s *stage) state() kernel.Info {
	s.t.Helper()
	info, err := s.rt.Query(context.Background(), s.rt.System(), "talk")
	if err != nil {
		s.t.Fatal(err)
	}
	return info
}

// bytes is everything that the store holds of the conversation.
func (s *stage) bytes() string {
	s.t.Helper()
	var out strings.Builder
	inbox, err := s.store.ReadRange(context.Background(), kernel.InboxStream("talk"), 0, 1<<20, journal.Forward)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range append(s.events(), inbox...) {
		fmt.Fprintf(&out, "%s %s %s\n", e.Kind, e.ID, e.Data)
	}
	return out.String()
}

// requests keeps what a model was sent, and holds it against the contract of a
// request (C-9.6).
type requests struct {
	t     *testing.T
	inner model.Model

	mu   sync.Mutex
	sent []model.Request
}

func (r *requests) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	if err := req.Validate(); err != nil {
		r.t.Errorf("the model was sent a bad request: %v", err)
	}
	if found := modeltest.Violations(req); found != nil {
		r.t.Errorf("a vendor would refuse a request: %q", found)
	}
	r.mu.Lock()
	r.sent = append(r.sent, req)
	r.mu.Unlock()
	return r.inner.Stream(ctx, req)
}

func (r *requests) all() []model.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent
}

// panicking is a model that calls before for each request first.
type panicking struct {
	inner  model.Model
	before func()
}

func (p panicking) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		p.before()
		p.inner.Stream(ctx, req)(yield)
	}
}

// signUser makes the payload of a user message, and signClose that of a close.
func (k Keys) signUser(conversationID string, asker *identity.Identity, messageID, text string, now time.Time) jsontext.Value {
	b := newBody(KindUser, conversationID, asker, messageID, now)
	b.Text = text
	return k.seal(b)
}

func (k Keys) signClose(conversationID string, asker *identity.Identity, messageID string, now time.Time) jsontext.Value {
	return k.seal(newBody(KindClose, conversationID, asker, messageID, now))
}
