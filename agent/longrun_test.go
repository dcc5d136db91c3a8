package agent

import (
	"context"
	"encoding/json/jsontext"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// longRun is a lab whose agent recalls, reads pages, compacts what it read, and
// writes the reply back. It counts what happens beside model and tools.
func longRun(t *testing.T) (l *lab, c *compactor, recalled, kept *atomic.Int32) {
	l, c = newCompactingLab(t, 8, 2<<10, Compaction{Bytes: 6 << 10})
	l.wrap = true
	recalled, kept = &atomic.Int32{}, &atomic.Int32{}
	l.recalls(func(context.Context, string, string) ([]Fact, error) {
		recalled.Add(1)
		return []Fact{{"Pages are long."}}, nil
	})
	l.writesBack(func() error { kept.Add(1); return nil })
	return l, c, recalled, kept
}

// Every prefix of the log of a run that recalls, compacts and writes back is
// resumed, and comes to the same reply; what is on record is not asked for again,
// and a write-back, which runs once, never runs twice (C-10.1, C-10.12, C-10.13).
func TestResumeALongRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole, c, _, _ := longRun(t)
		id := whole.start(job{Limits: whole.def.Limits, Request: Request{Prompt: "read it all"}})
		want := whole.wait(id)
		log := whole.events(id)
		compactions := len(c.inputs)
		whole.stop()
		if compactions < 2 {
			t.Fatalf("only %d compactions: the run is too short", compactions)
		}
		for cut := 1; cut <= len(log); cut++ {
			l, c, recalled, kept := longRun(t)
			lay(t, l.store, id, log[:cut])
			l.boot()
			if diff := cmp.Diff(want, l.wait(id)); diff != "" {
				t.Errorf("cut at %d (-whole +resumed):\n%s", cut, diff)
			}
			settled, open := stepsOf(log[:cut])
			if n := len(c.inputs); n > compactions-settled["summarize"] {
				t.Errorf("cut at %d: %d compactions though %d of %d are on record", cut, n, settled["summarize"], compactions)
			}
			if n := int(kept.Load()); n > 1-settled["keep"]-open["keep"] {
				t.Errorf("cut at %d: written back %d times", cut, n)
			}
			if n := recalled.Load(); n > 0 && hasFact(log[:cut], "loop#recall") {
				t.Errorf("cut at %d: recalled again", cut)
			}
			over := hasFact(log[:cut], "reply")
			if asked := len(l.model.sent()) + len(c.inputs) + int(recalled.Load()+kept.Load()); over && asked > 0 {
				t.Errorf("cut at %d: a finished run asked for %d things", cut, asked)
			}
			l.stop()
		}
	})
}

func hasFact(log []journal.Event, id string) bool {
	for _, e := range log {
		if e.ID == id {
			return true
		}
	}
	return false
}

// K4, K5: a run that was begun with a memory, a compaction and a write-back ends
// in a process whose configuration has none of them, wherever it was cut: what is
// on record is used, what is not is done without. So does one that was begun
// without and ends where all of them are configured: it asks for none.
func TestLongRunUnderAnotherConfiguration(t *testing.T) {
	const pages = 8
	bare := func(t *testing.T) *lab {
		l := newLab(t, reads(pages))
		l.wrap = true
		l.def.Tools = []Tool{pagesOf(2 << 10)}
		return l
	}
	full := func(t *testing.T) *lab {
		l, _, _, _ := longRun(t)
		return l
	}
	for _, test := range []struct {
		name          string
		before, after func(t *testing.T) *lab
	}{
		{"dropped", full, bare},
		{"added", bare, full},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				whole := test.before(t)
				id := whole.start(job{Limits: whole.def.Limits, Request: Request{Prompt: "read it all"}})
				want := whole.wait(id)
				log := whole.events(id)
				whole.stop()
				for cut := 1; cut <= len(log); cut++ {
					if strings.HasSuffix(log[cut-1].ID, ":effect") {
						continue // the choice of an effect and the request of its step are written as one
					}
					l := test.after(t)
					lay(t, l.store, id, log[:cut])
					l.boot()
					if diff := cmp.Diff(want, l.wait(id)); diff != "" {
						t.Errorf("cut at %d (-whole +resumed):\n%s", cut, diff)
					}
					if test.name == "added" {
						for _, fact := range l.facts(id) {
							if strings.Contains(fact, "#recall") || strings.Contains(fact, "#compact") || strings.Contains(fact, "#write") {
								t.Errorf("cut at %d: a run that was begun without has %s", cut, fact)
							}
						}
					}
					l.stop()
				}
			})
		})
	}
}

// The choice of an effect is durable together with the request of its step, so
// that no crash stands between them: a step of an effect that is gone can be
// served, but not asked for.
func TestChoiceAndRequestAreOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, _, _ := longRun(t)
		l.store.Record()
		l.read("read it all")
		var batches [][]string
		for _, batch := range l.store.Recorded() {
			var ids []string
			for _, part := range batch {
				for _, e := range part.Events {
					ids = append(ids, e.Kind+" "+e.ID)
				}
			}
			batches = append(batches, ids)
		}
		choices := 0
		for _, ids := range batches {
			for i, id := range ids {
				choice, ok := strings.CutPrefix(id, "DECIDED ")
				step, isChoice := strings.CutSuffix(choice, ":effect")
				if !ok || !isChoice {
					continue
				}
				choices++
				if i+1 == len(ids) || ids[i+1] != "REQUESTED "+step+":call" {
					t.Errorf("%s is written without its request: %q", id, ids)
				}
			}
		}
		if choices < 3 {
			t.Errorf("%d choices were written", choices)
		}
	})
}

// A compactor that runs once and was cut by a crash has no known outcome: it is
// not asked again for the same cut, and the run goes on.
func TestCompactorCutByACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := newCompactingLab(t, 4, 2<<10, Compaction{Bytes: 6 << 10})
		l.wrap = true
		var called atomic.Int32
		l.other = []kernel.Effect{{ID: "summarize", Mode: kernel.Once, Run: func(ctx context.Context, _ jsontext.Value) (any, error) {
			if called.Add(1) == 1 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return map[string]string{"summary": "short"}, nil
		}}}
		id := l.start(job{Limits: l.def.Limits, Request: Request{Prompt: "read it all"}})
		synctest.Wait()
		l.stop()
		l.boot()
		if got := l.wait(id); got.Code != "" || len(got.Reply.Called) != 4 {
			t.Errorf("came to %+v", got)
		}
		if called.Load() != 2 {
			t.Errorf("the compactor was called %d times, want once more for the next round", called.Load())
		}
		if log := l.facts(id); log[len(log)-1] != "ENDED " {
			t.Errorf("facts %q", log)
		}
	})
}
