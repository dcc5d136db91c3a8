package agent

import (
	"context"
	"encoding/json/jsontext"
	"maps"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/tool"
	"github.com/parley-run/parley/tool/tooltest"
)

// C-10.1: a crash resumes the loop where it was. Every prefix of a finished log
// is laid into a fresh store and run to its end: the reply is the same, no step
// with a result runs again, and a finished run makes no call at all (C-13.20).
func TestResumeFromEveryPrefix(t *testing.T) {
	const text = `
when has "fails"
  say "I begin, "
  fail unavailable
when has "tools"
  say "Looking. "
  call once {}
  call again {}
  call wiki_act {}
  call nothing {}
then
  call once {}
then
  words "There it is."
`
	for _, prompt := range []string{"fails", "use tools"} {
		t.Run(prompt, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				whole := newLab(t, plays(t, text))
				ran := countTools(whole)
				whole.wrap = true
				id := whole.start(job{Request: Request{Prompt: prompt}})
				want := whole.wait(id)
				log := whole.events(id)
				wantRuns := ran()
				whole.stop()

				for cut := 1; cut <= len(log); cut++ {
					l := newLab(t, plays(t, text))
					l.wrap = true
					ran := countTools(l)
					lay(t, l.store, id, log[:cut])
					l.boot()
					got := l.wait(id)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("cut at %d (-whole +resumed):\n%s", cut, diff)
					}
					settled, open := stepsOf(log[:cut])
					if n := len(l.model.sent()); n > len(whole.model.sent())-settled["model"] {
						t.Errorf("cut at %d: %d model calls though %d of %d are on record", cut, n, settled["model"], len(whole.model.sent()))
					}
					for tool, effect := range map[string]string{"once": "tool.once", "act": "tool.wiki"} {
						if n, most := ran()[tool], wantRuns[tool]-settled[effect]-open[effect]; n > most {
							t.Errorf("cut at %d: %s, which runs once, ran %d times, want at most %d", cut, tool, n, most)
						}
					}
					if log[cut-1].ID == "reply" && len(l.model.sent())+ran()["once"]+ran()["again"]+ran()["act"] > 0 {
						t.Errorf("cut at %d: a finished run called something", cut)
					}
					l.stop()
				}
			})
		})
	}
}

// countTools gives the agent its tools and returns their counters.
func countTools(l *lab) func() map[string]int {
	var mu sync.Mutex
	ran := map[string]int{}
	count := func(name string, mode kernel.Mode) Tool {
		return toolFunc(name, mode, func(context.Context, jsontext.Value) (Result, error) {
			mu.Lock()
			defer mu.Unlock()
			ran[name]++
			return Result{Text: name}, nil
		})
	}
	l.def.Tools = []Tool{count("once", kernel.Once), count("again", kernel.Repeatable)}
	set := tooltest.NewSet("wiki", kernel.Once)
	set.Put(tool.Offer{Name: "act"}, count("act", kernel.Once).Run)
	l.def.Toolsets = []tool.Set{set}
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(ran)
	}
}

// lay puts the beginning of a log into a store, as a crash leaves it.
func lay(t *testing.T, store journal.Store, stream string, log []journal.Event) {
	t.Helper()
	err := store.Append(context.Background(), journal.Append{
		Stream: stream, Events: log, Rows: []journal.Row{{Space: "work", Key: stream}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// stepsOf counts the steps of a log by effect: those with a result, and those
// without.
func stepsOf(log []journal.Event) (settled, open map[string]int) {
	settled, open = map[string]int{}, map[string]int{}
	effects := map[string]string{}
	for _, e := range log {
		switch e.Kind {
		case kernel.KindRequested:
			data, _ := kernel.DecodeEvent[kernel.Requested](e)
			effects[e.ID] = string(data.Effect)
			open[effects[e.ID]]++
		case kernel.KindSettled:
			settled[effects[e.ID]]++
			open[effects[e.ID]]--
		}
	}
	return settled, open
}

// A changed prompt, description or tool list makes no recorded run diverge
// (K4): it resumes under the new configuration.
func TestChangedConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := newLab(t, plays(t, "otherwise\n  call clock {}\nthen\n  say \"late\""))
		whole.def.Tools = []Tool{Clock()}
		id := whole.start(job{Request: Request{Prompt: "go"}})
		whole.wait(id)
		log := whole.events(id)
		whole.stop()
		for cut := 1; cut <= len(log); cut++ {
			if cut == 4 || cut == 5 {
				continue // a reply with a call and the call's request are written as one
			}
			l := &lab{t: t, store: journaltest.Wrap(memory.New()), model: &spy{t: t, inner: plays(t, "otherwise\n  say \"late\"\nthen\n  say \"late\"")}}
			l.def = Definition{Model: l.model, Log: quiet()}
			lay(t, l.store, id, log[:cut])
			l.boot()
			synctest.Wait()
			info, err := l.rt.Query(t.Context(), l.rt.System(), id)
			if err != nil || info.State != kernel.Completed {
				t.Errorf("cut at %d: %s %s, %v; want it completed", cut, info.State, info.Fault, err)
			}
			l.stop()
		}
	})
}
