package agent

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/parley-run/parley/fault"
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

// job is the input of the flow that the tests run: one run of the loop.
type job struct {
	Request Request
	Limits  Limits
}

// done is its output.
type done struct {
	Reply Reply
	Code  string // of the error
}

// lab is a journal and the agent that works on it. Its runtime can be stopped
// and made anew, as a process is.
type lab struct {
	t     *testing.T
	store *journaltest.Store
	model *spy
	def   Definition
	grant func(kernel.EffectID) bool
	sign  Signal          // of every run
	other []kernel.Effect // of the host
	wrap  bool            // a decision stands around the loop, as in a conversation
	rt    *kernel.Runtime
	ids   int

	mu  sync.Mutex
	was []error // what was observed
}

func newLab(t *testing.T, m model.Model) *lab {
	t.Helper()
	l := &lab{t: t, store: journaltest.Wrap(memory.New()), model: &spy{t: t, inner: m}}
	l.def = Definition{System: taint.Plain("Be brief."), Model: l.model, Log: quiet()}
	t.Cleanup(func() { l.stop() })
	return l
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func plays(t *testing.T, text string) model.Model {
	t.Helper()
	m, err := script.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// boot makes the runtime.
func (l *lab) boot() {
	l.t.Helper()
	effects, err := l.def.Effects()
	if err != nil {
		l.t.Fatal(err)
	}
	config := kernel.Config{
		Store: l.store, Effects: append(effects, l.other...), Log: quiet(), Policy: kernel.Unguarded(),
		Flows: []kernel.Flow{{Name: "lab", Version: "1", Run: l.run}},
	}
	if l.grant != nil {
		config.Granted = func(_ *identity.Identity, id kernel.EffectID) bool { return l.grant(id) }
	}
	if l.rt, err = kernel.New(config); err != nil {
		l.t.Fatal(err)
	}
	if err := l.rt.Recover(context.Background()); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) stop() {
	if l.rt != nil {
		l.rt.Close()
	}
}

func (l *lab) run(c *kernel.Context, input jsontext.Value) (any, error) {
	var j job
	if err := json.Unmarshal(input, &j); err != nil {
		return nil, err
	}
	c = c.With(func(ctx context.Context) context.Context { return Observe(ctx, l.observed) })
	loop := func() done {
		def := l.def
		def.Limits = j.Limits
		j.Request.Signal = l.sign
		reply, err := Run(c, def, j.Request)
		return done{reply, fault.CodeOf(err)}
	}
	if !l.wrap {
		return loop(), nil
	}
	return c.Decide("reply", "lab", func(context.Context) (done, error) { return loop(), nil })
}

func (l *lab) observed(_ kernel.EffectID, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.was = append(l.was, err)
}

// start starts a run and returns its execution.
func (l *lab) start(j job) string {
	l.t.Helper()
	if l.rt == nil {
		l.boot()
	}
	l.ids++
	if j.Request.LoopID == "" && l.def.ID == "" {
		j.Request.LoopID = "loop"
	}
	id, _, err := l.rt.Start(context.Background(), l.rt.System(), kernel.StartRequest{Flow: "lab", ID: fmt.Sprintf("run%d", l.ids), Input: j})
	if err != nil {
		l.t.Fatal(err)
	}
	return id
}

// wait waits for the end of a run, at most a day of virtual time.
func (l *lab) wait(id string) done {
	l.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	wake, err := l.store.Subscribe(ctx, id)
	if err != nil {
		l.t.Fatal(err)
	}
	patience := time.NewTimer(24 * time.Hour)
	defer patience.Stop()
	for {
		info, err := l.rt.Query(ctx, l.rt.System(), id)
		if err != nil {
			l.t.Fatal(err)
		}
		if info.State.Over() {
			var d done
			if err := json.Unmarshal(info.Output, &d); err != nil {
				l.t.Fatalf("run ended as %s %s: %v", info.State, info.Fault, err)
			}
			return d
		}
		select {
		case <-wake:
		case <-patience.C:
			l.t.Fatalf("run %s does not end; it is %s %s", id, info.State, info.Fault)
		}
	}
}

// ask starts a run and waits for its end.
func (l *lab) ask(prompt string) done {
	l.t.Helper()
	return l.wait(l.start(job{Request: Request{Prompt: prompt}}))
}

// events reads a whole log.
func (l *lab) events(id string) []journal.Event {
	l.t.Helper()
	events, err := l.store.ReadRange(context.Background(), id, 0, 1<<20, journal.Forward)
	if err != nil {
		l.t.Fatal(err)
	}
	return events
}

// ids lists kind and id of each event of a log.
func (l *lab) facts(id string) []string {
	var out []string
	for _, e := range l.events(id) {
		out = append(out, e.Kind+" "+e.ID)
	}
	return out
}

// spy keeps the requests that a model was sent, and holds each against the
// contract of a request and against what vendors refuse (C-9.6).
type spy struct {
	t     *testing.T
	inner model.Model

	mu       sync.Mutex
	requests []model.Request
}

func (s *spy) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	if err := req.Validate(); err != nil {
		s.t.Errorf("the model was sent a bad request: %v", err)
	}
	if found := modeltest.Violations(req); found != nil {
		s.t.Errorf("the model was sent what some vendor refuses: %q", found)
	}
	s.mu.Lock()
	s.requests = append(s.requests, req)
	s.mu.Unlock()
	return s.inner.Stream(ctx, req)
}

func (s *spy) sent() []model.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// modelFunc is a model that is a function.
type modelFunc func(ctx context.Context, req model.Request, yield func(model.Chunk, error) bool)

func (f modelFunc) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) { f(ctx, req, yield) }
}

func says(text string) model.Chunk { return model.Chunk{Text: text} }

func calls(id, name, args string) model.Chunk {
	return model.Chunk{Call: &model.Call{ID: id, Name: name, Args: jsontext.Value(args)}}
}

func ends(reason model.FinishReason) model.Chunk {
	return model.Chunk{Finish: &model.Finish{Reason: reason}}
}

// toolFunc is a tool that is a function.
func toolFunc(name string, mode kernel.Mode, run func(ctx context.Context, args jsontext.Value) (Result, error)) Tool {
	return Tool{Name: name, Description: taint.Plain("Does " + name + "."), Mode: mode, Run: run}
}
