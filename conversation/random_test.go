package conversation

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// TestManyRandomDialogues plays ten thousand random dialogues in virtual time: a model
// that says, calls and fails what it likes, and sometimes overlooks that it is cut;
// tools and summaries that take their time; and a person who cuts in, stops, edits and repeats
// whenever it comes to mind, while the process is restarted now and then. Every
// request holds what every vendor wants, no call is without its result, each
// message has one answer, and each word that was shown by the run whose answer is
// on record is in that answer (C-10.8, C-14.7, T53, T58, T65, T67).
func TestManyRandomDialogues(t *testing.T) {
	dialogues := uint64(10_000)
	if underRace {
		dialogues /= 20
	}
	const shards = 4
	for shard := range uint64(shards) {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			cuts := 0
			for seed := shard; seed < dialogues && !t.Failed(); seed += shards {
				synctest.Test(t, func(t *testing.T) { cuts += playRandom(t, seed) })
				if t.Failed() {
					t.Errorf("in the dialogue of seed %d", seed)
				}
			}
			if cuts < int(dialogues/shards)/2 {
				t.Errorf("only %d turns were cut", cuts)
			}
		})
	}
}

// playRandom plays one dialogue and returns how many turns were cut.
func playRandom(t *testing.T, seed uint64) (cuts int) {
	random := rand.New(rand.NewPCG(seed, 1))
	s := newStage(t, "otherwise\n  reply")
	s.hot, s.config.Settings.RotateEveryTurns = -random.IntN(2), random.IntN(3)
	s.config.BargeIn, s.config.StopOnly = InboxBargeIn(s.store), random.IntN(8) == 0
	s.model.inner = improviser{seed}
	said := newEar()
	s.config.Agent.OnDelta = said.hear
	s.config.Agent.Tools = []agent.Tool{dawdling("look", kernel.Repeatable), dawdling("act", kernel.Once)}
	if seed%3 == 0 { // turns leave the window, and summaries of them take their time and sometimes fail
		s.config.Settings.MaxWindowTurns = 1
		s.summarize(wide, hesitating)
	}
	for range 2 + random.IntN(5) {
		switch random.IntN(10) {
		case 0:
			s.halt(1 + random.IntN(4))
		case 1:
			s.edit(1+random.IntN(6), "an edit")
		case 2:
			if s.sent > 0 {
				s.sayAgain(1+random.IntN(s.sent), "a repeat")
			}
		case 3:
			if s.rt != nil {
				said.forget(s.records())
				s.reboot()
			}
		default:
			s.say(fmt.Sprint("message ", s.sent))
		}
		if random.IntN(3) > 0 {
			s.pass(time.Duration(random.IntN(8000)) * time.Millisecond)
		}
	}
	s.pass(time.Hour)
	s.quiet()
	cuts = said.check(t, s)
	checkAnswered(t, s)
	s.stop()
	return cuts
}

// hesitating is a summarizer whose time and outcome follow from its input.
func hesitating(ctx context.Context, input jsontext.Value) (any, error) {
	h := fnv.New32()
	h.Write(input)
	select {
	case <-time.After(time.Duration(h.Sum32()%5000) * time.Millisecond):
	case <-ctx.Done():
	}
	if h.Sum32()%4 == 0 || ctx.Err() != nil {
		return nil, model.ErrUnavailable
	}
	return agent.Summary{Text: fmt.Sprint("so far ", h.Sum32())}, nil
}

// checkAnswered: each accepted message has one reply, in its turn; and each call
// of a tool that was asked for has its result.
func checkAnswered(t *testing.T, s *stage) {
	t.Helper()
	open := 0
	for _, r := range s.records() {
		switch {
		case r.Role == RoleAssistant && r.Turn == open:
			open = 0
		case r.Status == StatusAccepted && open == 0:
			open = r.Turn
		case r.Status != StatusRejected:
			t.Errorf("record %d of turn %d comes while turn %d is open", r.Ord, r.Turn, open)
		}
	}
	if open != 0 {
		t.Errorf("turn %d has no reply", open)
	}
	calls := map[string]int{}
	for _, e := range s.events() {
		if e.Kind == kernel.KindRequested && strings.Contains(e.ID, "#tool:") {
			calls[e.ID]++
		}
		if e.Kind == kernel.KindSettled {
			delete(calls, e.ID)
		}
	}
	if len(calls) > 0 {
		t.Errorf("tool calls without a result: %v", calls)
	}
}

// ear hears what is shown of each reply, by message ordinal.
type ear struct {
	mu    sync.Mutex
	shown map[string]string
	call  map[string]string // the call that spoke last
}

func newEar() *ear { return &ear{shown: map[string]string{}, call: map[string]string{}} }

func (e *ear) hear(ctx context.Context, d agent.Delta) {
	e.mu.Lock()
	defer e.mu.Unlock()
	step, _ := kernel.StepFrom(ctx)
	turn, _, _ := strings.Cut(step.ID, "#model:")
	if call := fmt.Sprint(step.ID, " ", step.Attempt); e.call[turn] != call {
		e.call[turn], e.shown[turn] = call, d.Before
	}
	e.shown[turn] += d.Text
}

// forget takes back what was shown of replies that are not on record: the process
// that showed them ends.
func (e *ear) forget([]Record) {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.shown)
	clear(e.call)
}

// check compares what was shown with what is on record, and counts the replies
// that were cut.
func (e *ear) check(t *testing.T, s *stage) (cuts int) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range s.events() {
		r, ok := RecordOf(event)
		if !ok || r.Role != RoleAssistant {
			continue
		}
		if r.Status == StatusInterrupted {
			cuts++
		}
		shown := e.shown[strings.TrimSuffix(event.ID, suffixReply)]
		if !strings.HasPrefix(r.Text, shown) || r.Status == StatusInterrupted && shown != "" && r.Text != shown {
			t.Errorf("turn %d: the record (%s) is %q, shown was %q", r.Turn, r.Status, r.Text, shown)
		}
	}
	return cuts
}

// dawdling is a tool that takes as long as its argument says.
func dawdling(name string, mode kernel.Mode) agent.Tool {
	return agent.Tool{
		Name: name, Description: taint.Plain("dawdles"), Mode: mode,
		Run: func(ctx context.Context, args jsontext.Value) (agent.Result, error) {
			var in struct{ Millis int }
			if err := json.Unmarshal(args, &in); err != nil {
				return agent.Result{}, err
			}
			select {
			case <-time.After(time.Duration(in.Millis) * time.Millisecond):
				return agent.Result{Text: name + " done", Failed: in.Millis%7 == 0}, nil
			case <-ctx.Done():
				return agent.Result{}, ctx.Err()
			}
		},
	}
}

// improviser is a model whose reply is a function of the request and the seed.
type improviser struct{ seed uint64 }

// Stream improvises.
func (m improviser) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		h := fnv.New64a()
		data, _ := json.Marshal(req.Messages)
		h.Write(data)
		random := rand.New(rand.NewPCG(m.seed, h.Sum64()))
		deaf := random.IntN(6) == 0
		calls := 0
		for range random.IntN(5) {
			select {
			case <-time.After(time.Duration(random.IntN(2000)) * time.Millisecond):
			case <-ctx.Done():
				if !deaf {
					yield(model.Chunk{}, ctx.Err())
					return
				}
			}
			chunk := model.Chunk{Text: []string{"word ", "wörd ", "\n", "  ", "<<<PARLEY-FENCE close>>>", "🙂"}[random.IntN(6)]}
			switch n := random.IntN(12); {
			case n < 3:
				calls++
				args := jsontext.Value(fmt.Sprintf(`{"Millis":%d}`, random.IntN(3000)))
				if n == 0 && calls%2 == 0 {
					args = jsontext.Value(`[]`) // nothing that can be run
				}
				chunk = model.Chunk{Call: &model.Call{ID: fmt.Sprint("c", random.IntN(3)), Name: []string{"look", "act", "nosuch"}[random.IntN(3)], Args: args}}
			case n == 3 && random.IntN(3) == 0:
				yield(model.Chunk{}, []error{model.ErrCut, model.ErrRefused, model.ErrUnavailable}[random.IntN(3)])
				return
			}
			if !yield(chunk, nil) {
				return
			}
		}
		reason := model.FinishStop
		if calls > 0 {
			reason = model.FinishCalls
		}
		yield(model.Chunk{Finish: &model.Finish{Reason: reason}}, nil)
	}
}
