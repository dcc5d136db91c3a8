package conversation_test

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/script"
	"github.com/parley-run/parley/taint"
)

var (
	zoe   = &identity.Principal{Identity: identity.Identity{Tenant: identity.Some("acme"), Actor: "zoe"}}
	token = []byte("the matrix's own signing key, 32+")
)

// house is a whole conversation system on one store: what a process is made of.
type house struct {
	t        *testing.T
	store    *journaltest.Store
	rt       *kernel.Runtime
	client   *conversation.Client
	calls    *tally
	settings conversation.Settings
	tolerant bool // the store may fail, and calls with it
	shared   bool
	speaker  *identity.Principal
}

// plan is one dialogue of the matrix.
type plan struct {
	script   string
	settings conversation.Settings
	once     bool // it uses the tool that runs once
	bargeIn  bool // one may cut in
	shared   bool // among several people
	beside   bool // the agent recalls, compacts and writes back

	system string   // the system prompt, "You are a test." if empty
	tools  []string // look and act if nil
	keys   [][]byte // the first signs; token if nil

	say func(h *house)
}

// tally counts the model's calls and the runs of each tool, over all processes
// of a run.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[name]++
}

// counted is a model that counts the requests made of it.
type counted struct {
	model.Model
	calls *tally
}

func (c counted) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	c.calls.add("model")
	return c.Model.Stream(ctx, req)
}

// build makes a process on the store. hot is as in kernel.Config.
func build(t *testing.T, p plan, store *journaltest.Store, calls *tally, hot int) *house {
	t.Helper()
	played, err := script.Parse("dialogue", []byte(p.script))
	if err != nil {
		t.Fatal(err)
	}
	if p.keys == nil {
		p.keys = [][]byte{token}
	}
	keys, err := conversation.NewKeys(p.keys[0], p.keys[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	tool := func(name string, mode kernel.Mode, takes time.Duration) agent.Tool {
		return agent.Tool{
			Name: name, Description: taint.Plain("does " + name), Mode: mode,
			Run: func(ctx context.Context, args jsontext.Value) (agent.Result, error) {
				calls.add(name)
				select {
				case <-time.After(takes + time.Duration(len(args))*time.Millisecond): // no two at the same time

					return agent.Result{Text: name + " done"}, nil
				case <-ctx.Done():
					return agent.Result{}, ctx.Err()
				}
			},
		}
	}
	all := map[string]agent.Tool{
		"look": tool("look", kernel.Repeatable, time.Second),
		"act":  tool("act", kernel.Once, 2*time.Second),
	}
	if p.tools == nil {
		p.tools = []string{"look", "act"}
	}
	if p.system == "" {
		p.system = "You are a test."
	}
	var tools []agent.Tool
	for _, name := range p.tools {
		tools = append(tools, all[name])
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	var source conversation.BargeInSource
	if p.bargeIn {
		source = conversation.InboxBargeIn(store)
	}
	definition := agent.Definition{
		ID: "test", System: taint.Plain(p.system), Model: counted{played, calls}, Log: quiet, Tools: tools,
	}
	var other []kernel.Effect
	summarizer := summing(calls)
	if p.beside {
		other, summarizer = beside(&definition, calls), kernel.Effect{} // it has one of its own
		if p.settings.Budget.Summarizer != "" {
			summarizer, other = other[0], other[1:] // which serves both (C-21.2)
		}
	}
	shared := sharing(p, store)
	flow, err := conversation.NewFlow(conversation.Config{
		BargeIn: source, Shared: shared,
		Keys: keys, Settings: p.settings, Log: quiet, Hub: conversation.NewHub(conversation.HubConfig{}),
		OnError: func(string, error, conversation.Where) { calls.add("onError") },
		OnTurn:  func(conversation.TurnReport) { calls.add("onTurn") },
		Agent:   definition, Summarizer: summarizer,
	})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := kernel.ExecutionAccessPolicy(map[kernel.Operation]kernel.Scope{
		kernel.OpQuery: kernel.ScopeOwner, kernel.OpSend: kernel.ScopeOwner,
		kernel.OpCancel: kernel.ScopeOwner, kernel.OpResume: kernel.ScopeOwner,
	})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, store: store, calls: calls, settings: p.settings, shared: p.shared, speaker: zoe}
	h.rt, err = kernel.New(kernel.Config{
		Store: store, Flows: flow.Kernels(), Effects: append(flow.Effects(), other...), Hot: hot, Policy: policy,
		Features: []kernel.Feature{kernel.Inbox, kernel.Continuations}, RequirePrincipal: true, Log: quiet,
		Reserved: []string{conversation.ParticipantsPrefix},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.client, err = conversation.NewClient(conversation.ClientConfig{Runtime: h.rt, Keys: keys, Policy: &policy, Shared: shared})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.rt.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

// send says a text under a message id of its own and waits no longer than
// until it is accepted.
func (h *house) send(id, text string) { h.edit(id, 0, text) }

// edit is a send that edits the record with the ord, none for 0.
func (h *house) edit(id string, ord int, text string) {
	h.t.Helper()
	_, err := h.client.SendTurn(h.t.Context(), h.speaker, "talk", conversation.Message{Text: text, ID: id, EditOf: ord})
	if err != nil && !errors.Is(err, conversation.ErrClosed) && !(h.tolerant && gaveUp(err)) { // a prefix may hold the close already
		h.t.Fatalf("SendTurn(%q): %v", text, err)
	}
}

// stop ends a turn a while after what came before.
func (h *house) stop(turn int) {
	h.t.Helper()
	h.pass()
	if err := h.client.Stop(h.t.Context(), h.speaker, "talk", turn); err != nil && !(h.tolerant && gaveUp(err)) {
		h.t.Fatalf("Stop(%d): %v", turn, err)
	}
	h.settle()
}

// cutIn sends while the answer to what came before is being made.
func (h *house) cutIn(id, text string) {
	h.t.Helper()
	h.pass()
	h.send(id, text)
}

// pass lets enough time go by for something to be said, and not for all of it.
func (h *house) pass() {
	time.Sleep(1500 * time.Millisecond)
	synctest.Wait()
}

// ask sends, and waits for the answer.
func (h *house) ask(id, text string) {
	h.t.Helper()
	h.send(id, text)
	h.settle()
}

func (h *house) close() {
	h.t.Helper()
	if err := h.client.Close(h.t.Context(), zoe, "talk"); err != nil && !errors.Is(err, conversation.ErrClosed) && !(h.tolerant && gaveUp(err)) {
		h.t.Fatalf("Close: %v", err)
	}
}

// settle lets virtual time pass until everything is answered.
func (h *house) settle() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

// run holds the whole dialogue.
func (h *house) run(p plan) {
	h.t.Helper()
	start := h.client.Start
	if h.shared {
		start = h.client.StartShared
	}
	if _, err := start(h.t.Context(), zoe, "talk"); err != nil && !(h.tolerant && gaveUp(err)) {
		h.t.Fatalf("Start: %v", err)
	}
	p.say(h)
	h.settle()
}

// transcript is what the owner sees, without times, cursors and error ids.
func (h *house) transcript() []string {
	h.t.Helper()
	return h.seenBy(zoe)
}

func (h *house) seenBy(who *identity.Principal) []string {
	h.t.Helper()
	var lines []string
	var from *conversation.Cursor
	for {
		page, err := h.client.History(h.t.Context(), who, "talk", conversation.HistoryOptions{Cursor: from, Limit: 3})
		if h.shared && errors.Is(err, conversation.ErrNotFound) {
			return []string{"nothing"}
		}
		if err != nil {
			h.t.Fatalf("History: %v", err)
		}
		for _, r := range page.Entries {
			line := fmt.Sprintf("%d/%d %s %s %s %q", r.Turn, r.Ord, r.Role, r.Status, r.Reason, r.Text)
			if h.shared {
				line = fmt.Sprint(r.Asker.Actor, " ", r.Classes, " ", r.TurnExecutionID != "", " ", line)
			}
			lines = append(lines, line)
		}
		if page.Done {
			return lines
		}
		from = &page.Next
	}
}

func (h *house) state() conversation.State {
	h.t.Helper()
	status, err := h.client.Status(h.t.Context(), zoe, "talk")
	if err != nil {
		h.t.Fatalf("Status: %v", err)
	}
	return status.State
}

// logs renders every stream of the conversation.
func (h *house) logs() []string {
	h.t.Helper()
	var lines []string
	streams := h.besideTalk()
	for g := 0; ; g++ {
		stream := kernel.StreamOf("talk", g)
		if _, ok, err := h.store.HeadOf(h.t.Context(), stream); err != nil || !ok {
			break
		}
		streams = append(streams, stream)
	}
	for _, stream := range streams {
		events, err := h.store.ReadRange(h.t.Context(), stream, 0, 10_000, journal.Forward)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, e := range events {
			lines = append(lines, fmt.Sprintf("%s %d %s %s %s %s", stream, e.Seq, e.Kind, e.ID, e.Time.Format(time.RFC3339Nano), e.Data))
		}
	}
	return renamed(lines)
}

var (
	randomID = regexp.MustCompile(`\b[a-z2-7]{26}\b`)
	ofOrder  = regexp.MustCompile(`"id":"[0-9a-f]{64}","kind":"(close|stop)"(.*?)},"sig":"[0-9a-f]{64}"`)
	ofSigned = regexp.MustCompile(`(MESSAGE |"messageId":")[0-9a-f]{64}(.*"kind":"(?:close|stop)")`) // stored under its key (C-12.12)
	ofSeen   = regexp.MustCompile(`"key":"[0-9a-f]{64}"|"window":{[^}]*}`)
)

// renamed gives each random id a number by its first appearance. The envelopes of
// a close and of a stop are signed over such an id, and the next generation is told
// of it.
func renamed(lines []string) []string {
	names := map[string]string{}
	for i, line := range lines {
		line = ofOrder.ReplaceAllString(line, `"kind":"$1"$2`)
		line = ofSigned.ReplaceAllString(line, `$1$2`)
		line = ofSeen.ReplaceAllString(line, `""`)
		lines[i] = randomID.ReplaceAllStringFunc(line, func(id string) string {
			if names[id] == "" {
				names[id] = fmt.Sprint("id", len(names)+1)
			}
			return names[id]
		})
	}
	return lines
}

// finished is what an unbroken run came to.
type finished struct {
	transcript []string
	views      [][]string // of the others
	state      conversation.State
	logs       []string
	batches    [][]journal.Append
	calls      map[string]int
}

func unbroken(t *testing.T, p plan, hot int) (f finished) {
	synctest.Test(t, func(t *testing.T) {
		store := journaltest.Wrap(memory.New())
		store.Record()
		calls := &tally{n: map[string]int{}}
		h := build(t, p, store, calls, hot)
		h.run(p)
		f = finished{h.transcript(), h.views(), h.state(), h.logs(), store.Recorded(), calls.n}
		h.rt.Close()
	})
	return f
}

// TestHotEqualsCold: the log is the same byte for byte whether an execution
// stays hot or goes cold at every wait (design §3).
func TestHotEqualsCold(t *testing.T) {
	for name, p := range plans() {
		t.Run(name, func(t *testing.T) {
			hot, cold := unbroken(t, p, 0), unbroken(t, p, -1)
			if diff := cmp.Diff(hot.logs, cold.logs); diff != "" {
				t.Errorf("logs (-hot +cold):\n%s", diff)
			}
			if len(hot.transcript) < 2 {
				t.Errorf("transcript = %v; want a dialogue", hot.transcript)
			}
		})
	}
}

// places are the prefixes of finished logs to resume from, by their number: all of
// them, but one in seven under the race detector, which slows each tenfold.
func places(batches [][]journal.Append) iter.Seq2[int, [][]journal.Append] {
	return func(yield func(int, [][]journal.Append) bool) {
		n := 0
		for prefix := range journaltest.Prefixes(batches) {
			if (!conversation.UnderRace || n%7 == 0) && !yield(n, prefix) {
				return
			}
			n++
		}
	}
}

// TestCrashMatrix lays every prefix of each finished dialogue, event by event
// in commit order, into a fresh store, lets the sender repeat everything it was
// not answered, and wants the transcript of the unbroken run (K12, C-1.12,
// C-15.2, T11, T26, T27, T29, T62).
func TestCrashMatrix(t *testing.T) {
	for name, p := range plans() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := unbroken(t, p, 0)
			tried := 0
			for n, prefix := range places(want.batches) {
				tried++
				for _, hot := range []int{0, -1} {
					if p.shared && hot != -(n%2) { // which are large: in turn
						continue
					}
					synctest.Test(t, func(t *testing.T) { resume(t, p, want, prefix, hot) })
				}
				if t.Failed() {
					t.Fatalf("after a prefix of %d writes", n)
				}
			}
			t.Logf("%d places, hot and cold", tried)
		})
	}
}

// resume goes on from a prefix and compares.
func resume(t *testing.T, p plan, want finished, prefix [][]journal.Append, hot int) {
	inner := memory.New()
	effectOf := map[string]string{} // by stream and step
	requested, settled := map[string]int{}, map[string]int{}
	for _, batch := range prefix {
		if err := inner.Append(t.Context(), batch...); err != nil {
			t.Fatalf("lay prefix: %v", err)
		}
		for _, part := range batch {
			for _, e := range part.Events {
				time.Sleep(time.Until(e.Time)) // the process comes back after it died, not before
				step := part.Stream + " " + e.ID
				switch e.Kind {
				case kernel.KindRequested:
					request, err := kernel.DecodeEvent[kernel.Requested](e)
					if err != nil {
						t.Fatal(err)
					}
					effectOf[step] = string(request.Effect)
					requested[effectOf[step]]++
				case kernel.KindSettled:
					if result, err := kernel.DecodeEvent[kernel.Settled](e); err != nil {
						t.Fatal(err)
					} else if result.Fault == "" { // a failure is run again until a decision around it is on record (C-6.7)
						settled[effectOf[step]]++
					}
				}
			}
		}
	}
	calls := &tally{n: map[string]int{}}
	h := build(t, p, journaltest.Wrap(inner), calls, hot)
	defer h.rt.Close()
	h.run(p)

	unknown := requested["tool.act"] > settled["tool.act"] // cut between request and result: that the outcome is unknown is the one trace allowed
	views := append(h.views(), h.transcript())
	for i, want := range append(slices.Clone(want.views), want.transcript) {
		if unknown {
			allowUnknown(want, views[i])
		}
		allowCuts(want, views[i])
		if diff := cmp.Diff(want, views[i]); diff != "" {
			t.Errorf("hot %d: transcript of reader %d (-want +got):\n%s", hot, i, diff)
		}
	}
	if h.state() != want.state {
		t.Errorf("hot %d: state = %s; want %s", hot, h.state(), want.state)
	}
	if ran := calls.n["act"]; ran+requested["tool.act"] > want.calls["act"] {
		t.Errorf("hot %d: the Once tool ran %d times after %d requests; want %d in all", hot, ran, requested["tool.act"], want.calls["act"])
	}
	if ran := calls.n["look"]; ran+settled["tool.look"] > want.calls["look"] {
		t.Errorf("hot %d: the repeatable tool ran %d times after %d results; want %d in all", hot, ran, settled["tool.look"], want.calls["look"])
	}
	if ran := calls.n["keep"]; ran+requested["keep"] > want.calls["keep"] {
		t.Errorf("hot %d: %d write-backs after %d requests; want %d in all", hot, ran, requested["keep"], want.calls["keep"])
	}
	if ran := calls.n["summarize"]; ran+settled["summarize"] > want.calls["summarize"] {
		t.Errorf("hot %d: %d compactions after %d results; want %d in all", hot, ran, settled["summarize"], want.calls["summarize"])
	}
	most := want.calls["model"]
	if p.bargeIn {
		most++ // a turn may come further than it did before one cuts in
	}
	if ran := calls.n["summarize"]; ran+settled["summarize"] > want.calls["summarize"] {
		t.Errorf("hot %d: the summarizer ran %d times after %d results; want %d in all", hot, ran, settled["summarize"], want.calls["summarize"])
	}
	if ran := calls.n["model"]; ran+settled["model"] > most {
		t.Errorf("hot %d: the model was called %d times after %d results; want at most %d in all", hot, ran, settled["model"], most)
	}
	failures := strings.Count(strings.Join(want.transcript, "\n"), " failed ")
	onRecord := strings.Count(strings.Join(recorded(prefix), "\n"), `"status":"failed"`)
	if calls.n["onError"] < failures-onRecord {
		t.Errorf("hot %d: onError was called %d times for %d failures that were not on record", hot, calls.n["onError"], failures-onRecord)
	}
	replies := strings.Count(strings.Join(want.transcript, "\n"), " assistant ")
	onRecord = strings.Count(strings.Join(recorded(prefix), "\n"), `"role":"assistant"`)
	if calls.n["onTurn"] != replies-onRecord {
		t.Errorf("hot %d: onTurn was called %d times for %d replies that were not on record", hot, calls.n["onTurn"], replies-onRecord)
	}
}

// allowCuts takes a reply that was cut elsewhere for the wanted one, if one of the
// two is the beginning of the other: a recovered turn is cut before it speaks if
// the message that cuts it waits already (C-14.18), and later if that is late.
func allowCuts(want, got []string) {
	const cut = ` assistant interrupted  "`
	for i := range min(len(got), len(want)) {
		turn, text, ok := strings.Cut(strings.TrimSuffix(got[i], `"`), cut)
		wantTurn, wantText, wantOK := strings.Cut(strings.TrimSuffix(want[i], `"`), cut)
		if ok && wantOK && turn == wantTurn && (strings.HasPrefix(text, wantText) || strings.HasPrefix(wantText, text)) {
			got[i] = want[i]
		}
	}
}

// allowUnknown takes a reply that says that an outcome is unknown for the wanted one.
func allowUnknown(want, got []string) {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] && unknownOutcome(got[i]) {
			got[i] = want[i]
		}
	}
}

// unknownOutcome reports whether a reply repeats what the model is told of a
// tool call that was cut.
func unknownOutcome(line string) bool { return strings.Contains(line, "unknown") }

// recorded renders the data of every event of the batches.
func recorded(batches [][]journal.Append) (data []string) {
	for _, batch := range batches {
		for _, part := range batch {
			for _, e := range part.Events {
				data = append(data, string(e.Data))
			}
		}
	}
	return data
}
