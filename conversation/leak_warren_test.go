package conversation

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// warren is a party in which each text bears a canary, and all that anybody is
// given is kept.
type warren struct {
	*party
	seed      uint64
	random    *rand.Rand // the driver's
	ctx       context.Context
	stopping  context.CancelFunc
	listening sync.WaitGroup

	history []change // of clearances and of who takes part; the driver's alone
	counts  []counted

	mu       sync.Mutex
	fresh    *rand.Rand
	births   map[string]birth
	received []received
	sent     []sent
	runs     []run
	places   map[string]*Cursor
	logged   strings.Builder
}

// birth says where a canary came up: in a question of somebody's, in a result, a
// fact or an answer that belongs to the n-th message, or in a summary.
type birth struct {
	kind string
	who  string
	n    int
	need []string // classes that it bears from there
}

// change is one of the clearance, or of the membership, of somebody.
type change struct {
	at      time.Time
	who     string
	cleared bool // of the clearance
	classes []string
	member  bool
}

// received is what somebody was given; of an entry it is the entry.
type received struct {
	at         time.Time
	who        *identity.Principal
	kind, text string
	record     *Record
}

// sent is what went out in the n-th message's turn.
type sent struct {
	n           int
	kind, scope string
	text        string
}

// run is a run of a tool in the n-th message's turn.
type run struct {
	n    int
	tool string
}

// counted is how many entries the history had.
type counted struct {
	at time.Time
	n  int
}

var canary = regexp.MustCompile(`cnry[0-9a-f]{10}`)

// classOfTool is what the host says of its tools. Of "unknown" it says nothing.
var classOfTool = map[string][]string{
	"secret": {"secret"}, "top": {"top"}, "open": nil, "breaks": {"broken"}, "act": {"acted", "secret"},
}

func newWarren(t *testing.T, seed uint64) *warren {
	w := &warren{
		party: newParty(t), seed: seed, random: newRandom(seed, "d"), fresh: newRandom(seed, "c"),
		births: map[string]birth{}, places: map[string]*Cursor{},
	}
	w.hot, w.config.Settings.RotateEveryTurns = -w.random.IntN(2), []int{1, 100}[w.random.IntN(2)]
	w.config.StopOnly = w.chance(1, 8)
	w.config.Log = slog.New(slog.NewTextHandler(w, nil))
	w.config.Agent.Log, w.config.Agent.Tools = w.config.Log, nil
	for _, name := range []string{"secret", "top", "open", "unknown", "breaks", "act"} {
		w.config.Agent.Tools = append(w.config.Agent.Tools, w.tool(name))
	}
	w.shared.ClassOf = func(tool string) ([]string, bool) {
		classes, known := classOfTool[tool]
		return classes, known
	}
	w.model.inner = gossip{w}
	if w.chance(1, 2) {
		w.remember()
	}
	if w.chance(1, 2) {
		w.config.Settings.MaxWindowTurns = 1 + w.random.IntN(4)
		w.summarize()
	}
	t.Cleanup(w.unfollow)
	return w
}

// Write takes a line of the log.
func (w *warren) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.logged.Write(line)
}

// born makes a canary.
func (w *warren) born(b birth) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := fmt.Sprintf("cnry%010x", w.fresh.Uint64()&(1<<40-1))
	w.births[name] = b
	return name
}

func (w *warren) receive(who *identity.Principal, kind, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.received = append(w.received, received{at: time.Now(), who: who, kind: kind, text: text})
}

func (w *warren) entry(who *identity.Principal, r Record) {
	text := string(encoded(w.t, r))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.received = append(w.received, received{at: time.Now(), who: who, kind: "entry", text: text, record: &r})
}

func (w *warren) send(s sent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.party.t.Helper()
	w.sent = append(w.sent, s)
}

func (w *warren) place(who *identity.Principal) *Cursor {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.places[who.Actor]
}

func (w *warren) setPlace(who *identity.Principal, c Cursor) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.places[who.Actor] = &c
}

// ordinalOf is the message whose turn runs in an execution, or whose fact the
// coordinator makes.
func ordinalOf(ctx context.Context) (n int) {
	step, _ := kernel.StepFrom(ctx)
	_, rest, ok := strings.Cut(step.Execution, ":o")
	if !ok {
		rest = strings.TrimPrefix(step.ID, loopPrefix)
	}
	_, _ = fmt.Sscanf(rest, "%d", &n)
	return n
}

// tool is a tool whose result has a canary.
func (w *warren) tool(name string) agent.Tool {
	mode := kernel.Repeatable
	if name == "act" {
		mode = kernel.Once
	}
	need, known := classOfTool[name]
	if !known {
		need = []string{Unclassified}
	}
	return agent.Tool{
		Name: name, Description: taint.Plain("does " + name), Mode: mode,
		Run: func(ctx context.Context, _ jsontext.Value) (agent.Result, error) {
			n := ordinalOf(ctx)
			w.mu.Lock()
			w.runs = append(w.runs, run{n, name})
			w.mu.Unlock()
			text := w.born(birth{kind: "result", n: n, need: need})
			select {
			case <-time.After(2 * time.Second):
			case <-ctx.Done():
				return agent.Result{}, ctx.Err()
			}
			if name == "breaks" {
				return agent.Result{}, errors.New(text)
			}
			return agent.Result{Text: text}, nil
		},
	}
}

// remember gives the agent a memory of each asker's own, which knows a new fact each
// time, and sometimes fails; cal goes without.
func (w *warren) remember() {
	w.shared.MemoryScope = func(who identity.Identity) string {
		if who == cal.Identity {
			return ""
		}
		return who.Actor
	}
	w.config.Agent.Memory, w.config.Agent.WriteBack = elephant{w}, "keep"
	w.other = append(w.other, kernel.Effect{ID: "keep", Mode: kernel.Once, Run: func(ctx context.Context, input jsontext.Value) (any, error) {
		var note agent.Note
		if err := json.Unmarshal(input, &note); err != nil {
			return nil, err
		}
		w.send(sent{ordinalOf(ctx), "note", note.Scope, string(input)})
		return nil, nil
	}})
}

// elephant is that memory.
type elephant struct{ w *warren }

func (e elephant) Recall(ctx context.Context, scope, query string) ([]agent.Fact, error) {
	n := ordinalOf(ctx)
	e.w.send(sent{n, "recall", scope, query})
	text := e.w.born(birth{kind: "fact", who: scope, n: n, need: []string{memoryClass + scope}})
	if strings.Contains(query, "[use top]") {
		return nil, errors.New(text)
	}
	return []agent.Fact{{Text: text}}, nil
}

// summarize gives the conversation a budget, with a summarizer that repeats all that
// it is given, and fails now and then.
func (w *warren) summarize() {
	w.config.Summarizer = kernel.Effect{ID: agent.DefaultSummarizer, Mode: kernel.Repeatable, Run: func(ctx context.Context, input jsontext.Value) (any, error) {
		w.send(sent{ordinalOf(ctx), "summarizer", "", string(input)})
		random := rand.New(rand.NewPCG(w.seed, digest(input)))
		if random.IntN(5) == 0 {
			return nil, model.ErrRefused
		}
		words := canary.FindAllString(string(input), -1)
		words = append(words[max(len(words)-8, 0):], w.born(birth{kind: "summary"}))
		return agent.Summary{Text: strings.Join(words, " ")}, nil
	}}
	w.config.Settings.Budget = Budget{
		ContextWindow: 1500 + w.random.IntN(4)*1000, ReserveOutputTokens: 100, MaxSummaryTokens: 200, Summarizer: agent.DefaultSummarizer,
	}
}

func digest(data []byte) uint64 {
	h := fnv.New64a()
	h.Write(data)
	return h.Sum64()
}

// gossip is a model that repeats most of the canaries that it was given, makes one
// of its own, and does what the newest question orders.
type gossip struct{ w *warren }

func (g gossip) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	data, err := json.Marshal(req, json.Deterministic(true))
	if err != nil {
		g.w.t.Error(err)
	}
	n := ordinalOf(ctx)
	g.w.send(sent{n, "model", "", string(data)})
	random := rand.New(rand.NewPCG(g.w.seed, digest(data)))
	last := req.Messages[len(req.Messages)-1]
	question := last.Text
	for _, m := range slices.Backward(req.Messages) {
		if question == "" && m.Role == model.User {
			question = m.Text
		}
	}
	words := canary.FindAllString(string(data), -1)
	random.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	words = append(words[:min(len(words), 8)], g.w.born(birth{kind: "answer", n: n}))
	pause := 100 * time.Millisecond
	if strings.Contains(question, "[slowly]") {
		pause = 4 * time.Second
	}
	return func(yield func(model.Chunk, error) bool) {
		calls := orders.FindAllStringSubmatch(question, -1)
		if len(last.Results) > 0 {
			calls = nil
		}
		for i, word := range words {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				yield(model.Chunk{}, ctx.Err())
				return
			}
			if i == 2 && strings.Contains(question, "[fail]") {
				yield(model.Chunk{}, model.ErrRefused)
				return
			}
			if !yield(model.Chunk{Text: word + " "}, nil) {
				return
			}
		}
		for i, call := range calls {
			if !yield(model.Chunk{Call: &model.Call{ID: fmt.Sprint("c", i), Name: call[1], Args: jsontext.Value(`{}`)}}, nil) {
				return
			}
		}
		reason := model.FinishStop
		if len(calls) > 0 {
			reason = model.FinishCalls
		}
		yield(model.Chunk{Finish: &model.Finish{Reason: reason}}, nil)
	}
}
