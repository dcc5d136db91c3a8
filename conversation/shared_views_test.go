package conversation

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
)

// A placeholder keeps where an entry stands, whose it is and when it was made, and
// nothing else (C-37.3, C-27.12); a turn's execution is told to its asker alone
// (C-37.7).
func TestPlaceholder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.clear(bob, "secret")
		p.open()
		p.ask(ann, "one [use secret]")
		if _, err := p.client.SendTurn(t.Context(), ann, "room", Message{Text: "edited", EditOf: 1}); err != nil {
			t.Fatal(err)
		}
		p.settle()
		shown := func(who *identity.Principal) (entries []map[string]any) {
			t.Helper()
			page, err := p.client.History(t.Context(), who, "room", HistoryOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Entries {
				var fields map[string]any
				if err := json.Unmarshal(encoded(t, r), &fields); err != nil {
					t.Fatal(err)
				}
				entries = append(entries, fields)
			}
			return entries
		}
		own, others, cleared := shown(ann), shown(cal), shown(bob)
		for i, entry := range others {
			if i == 0 {
				continue // the question, which nothing stood before
			}
			want := map[string]any{"status": "restricted"}
			for _, kept := range []string{"turn", "ord", "role", "cursor", "time", "asker"} {
				want[kept] = own[i][kept]
			}
			if diff := cmp.Diff(want, entry); diff != "" {
				t.Errorf("entry %d is shown to who is not cleared as:\n%s", i+1, diff)
			}
		}
		for i, entry := range own {
			_, has := entry["turnExecutionId"]
			if want := entry["role"] == "assistant"; has != want {
				t.Errorf("entry %d of one's own has a turn's execution: %v, want %v", i+1, has, want)
			}
			delete(entry, "turnExecutionId")
			if diff := cmp.Diff(entry, cleared[i]); diff != "" {
				t.Errorf("entry %d is shown to who is cleared as:\n%s", i+1, diff)
			}
		}
	})
}

// Only a yes clears (C-37.2), and within one call each set of classes is asked for
// once, in the next anew (C-37.11).
func TestStrictClearance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		answer := func(context.Context) (bool, error) { return false, nil }
		asked := 0
		p.shared.Cleared = func(ctx context.Context, _ identity.Identity, classes []string) (bool, error) {
			if asked++; len(classes) == 0 {
				t.Error("a viewer's clearance was asked for no class")
			}
			return answer(ctx)
		}
		p.open()
		for range 3 {
			p.ask(ann, "[use secret]")
		}
		for name, hook := range map[string]struct {
			answer func(context.Context) (bool, error)
			sees   string
		}{
			"yes":            {func(context.Context) (bool, error) { return true, nil }, "complete"},
			"no":             {func(context.Context) (bool, error) { return false, nil }, "restricted"},
			"yes and error":  {func(context.Context) (bool, error) { return true, errors.New("away") }, "restricted"},
			"panic":          {func(context.Context) (bool, error) { panic("away") }, "restricted"},
			"yes, too late":  {func(ctx context.Context) (bool, error) { <-ctx.Done(); return true, nil }, "restricted"},
			"context looked": {func(ctx context.Context) (bool, error) { return ctx.Err() == nil, nil }, "complete"},
		} {
			answer, asked = hook.answer, 0
			seen := p.sees(cal)
			if !strings.HasPrefix(seen[1], "1 assistant "+hook.sees) {
				t.Errorf("%s: cal sees %q, want it %s", name, seen[1], hook.sees)
			}
			if asked != 1 { // three answers, and the questions behind them, of one class
				t.Errorf("%s: asked %d times in one call, want once", name, asked)
			}
		}
	})
}

// What a turn's model is sent holds only what its asker is cleared for, each turn as
// a whole (C-38.1, C-38.2), and a verdict once on record is not asked for again.
func TestContextOfTheAsker(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.open()
		p.clear(bob, "secret")
		p.ask(ann, "question-1 [use secret]")
		p.ask(cal, "question-2")
		p.ask(bob, "question-3")
		p.ask(cal, "question-4")
		p.ask(ann, "question-5")
		for last, want := range map[string]string{
			"question-2": "2", "question-3": "1 2 3", "question-4": "2 4", "question-5": "1 2 4 5",
		} {
			var texts []string
			for _, req := range p.model.all() {
				if text := req.Messages[len(req.Messages)-1].Text; strings.Contains(text, last) {
					texts = nil
					for _, m := range req.Messages {
						texts = append(texts, m.Text)
					}
				}
			}
			var has []string
			for n := range 5 {
				if strings.Contains(strings.Join(texts, " "), fmt.Sprint("question-", n+1)) {
					has = append(has, fmt.Sprint(n+1))
				}
			}
			if got := strings.Join(has, " "); got != want {
				t.Errorf("the request of %s has the turns %s, want %s", last, got, want)
			}
		}
		p.clear(bob)
		p.clear(cal, "secret")
		p.reboot()
		p.ask(cal, "question-6")
		p.rehearse(6)
	})
}

// A hook that answers otherwise later changes nothing of what is on record: the
// classes of an answer are the ones that it was recorded with (C-36.4), and a tool
// that failed, or whose turn was cut after it, counts (C-36.6).
func TestClassesAreRecorded(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		class := "first"
		p.shared.ClassOf = func(string) ([]string, bool) { return []string{class, "always"}, true }
		p.open()
		p.ask(ann, "[use secret]")
		class = "second"
		p.reboot()
		p.say(ann, "[use unknown] [slowly]")
		<-time.After(time.Second)
		p.say(ann, "three")
		p.settle()
		p.expect(ann,
			"1 user accepted ann [use secret]", "1 assistant complete ann re: [use secret] secret-result [always first]",
			"2 user accepted ann [use unknown] [slowly] [always first]",
			"2 assistant interrupted ann re: [use unknown] [slowly] [always first second]",
			"3 user accepted ann three [always first second]", "3 assistant complete ann re: three [always first second]")
	})
}

// A tool of which nothing is known has the class unclassified (C-36.2), and so has
// one whose classes are no labels.
func TestUnclassified(t *testing.T) {
	for name, classOf := range map[string]func(string) ([]string, bool){
		"no hook":     nil,
		"not known":   func(string) ([]string, bool) { return nil, false },
		"no label":    func(string) ([]string, bool) { return []string{""}, true },
		"long label":  func(string) ([]string, bool) { return []string{strings.Repeat("x", 129)}, true },
		"hook panics": func(string) ([]string, bool) { panic("away") },
	} {
		s := &Shared{ClassOf: classOf}
		if got := s.ofAnswer([]string{"b"}, []string{"tool", "tool"}, ""); !slices.Equal(got, []string{"b", Unclassified}) {
			t.Errorf("%s: the classes are %q, want b and unclassified", name, got)
		}
	}
}

// A set of classes is never so large that one of them could be missing and nobody
// notice.
func TestManyClasses(t *testing.T) {
	var many []string
	for i := range 600 {
		many = append(many, fmt.Sprintf("c%03d", i))
	}
	s := &Shared{
		ClassOf: func(string) ([]string, bool) { return many, true },
		Cleared: func(context.Context, identity.Identity, []string) (bool, error) { return true, nil },
	}
	all := s.ofAnswer(nil, []string{"tool"}, "")
	if !validClasses(all) || s.clearanceOf(bob.Identity).covers(t.Context(), all) {
		t.Errorf("%d classes: valid %v, want them valid and cleared for nobody", len(all), validClasses(all))
	}
}

// Entries come to each follower as they may see them, and none after they were
// removed (C-37.8, C-37.10).
func TestSharedFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.open()
		p.ask(ann, "one [use secret]")
		next, stop := iter.Pull2(p.client.Follow(t.Context(), cal, "room", nil))
		defer stop()
		for _, want := range []string{"1 user accepted ann one [use secret]", "1 assistant restricted ann"} {
			if r, err, ok := next(); !ok || err != nil || line(r) != want {
				t.Fatalf("cal follows %q, %v, %v; want %q", line(r), err, ok, want)
			}
		}
		p.ask(ann, "two")
		if r, err, ok := next(); !ok || err != nil || r.Status != StatusRestricted { // its context was restricted
			t.Fatalf("cal follows %q, %v, %v", line(r), err, ok)
		}
		if err := p.client.RemoveParticipant(t.Context(), ann, "room", cal.Identity); err != nil {
			t.Fatal(err)
		}
		if r, err, ok := next(); !ok || err != error(ErrNotFound) {
			t.Errorf("after the removal cal follows %q, %v, %v; want ErrNotFound", line(r), err, ok)
		}
	})
}

// The words of a turn are for its asker alone as they come, the partial and the
// reset included (C-37.9).
func TestSharedLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.open()
		heard := func(l *Live) (words []string) {
			for piece := l.Next(); piece != nil; piece = l.Next() {
				words = append(words, string(piece.Kind)+" "+piece.Text)
			}
			return words
		}
		follow := func(who *identity.Principal) *Live {
			t.Helper()
			l, err := p.client.Live(t.Context(), who, "room")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(l.Close)
			return l
		}
		early := map[string]*Live{"ann": follow(ann), "bob": follow(bob)}
		p.say(bob, "one [use open] [slowly]")
		<-time.After(5 * time.Second)
		synctest.Wait()
		if got := heard(early["ann"]); got != nil || len(early["ann"].Hint()) != 0 {
			t.Errorf("ann hears %q of a turn of bob's, and %d hints", got, len(early["ann"].Hint()))
		}
		if got := heard(early["bob"]); len(got) != 1 || !strings.Contains(got[0], "re: one") {
			t.Errorf("bob hears %q of his own turn", got)
		}
		if got := heard(follow(ann)); got != nil {
			t.Errorf("ann, who comes in mid-answer, hears %q", got)
		}
		if got := heard(follow(bob)); len(got) != 1 || !strings.HasPrefix(got[0], "partial re: one") {
			t.Errorf("bob, who comes in mid-answer, hears %q", got)
		}
		p.reboot()
		p.settle()
		if got := heard(early["ann"]); got != nil {
			t.Errorf("ann hears %q of a turn that begins again", got)
		}
	})
}

// The summary is made of turns without classes alone; one that has some is evicted
// without it (C-38.3), by age (C-38.4).
func TestSharedSummary(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		var given []string
		p.config.Summarizer = kernel.Effect{
			ID: agent.DefaultSummarizer, Mode: kernel.Repeatable,
			Run: func(ctx context.Context, input jsontext.Value) (any, error) {
				given = append(given, string(input))
				return map[string]string{"summary": "what-was-said"}, nil
			},
		}
		p.config.Settings.MaxWindowTurns = 8
		p.config.Settings.Budget = Budget{ContextWindow: 100_000, Summarizer: agent.DefaultSummarizer}
		p.open()
		p.clear(bob, "secret")
		p.ask(ann, "restricted-question [use secret]")
		for i := range 9 {
			p.ask(cal, fmt.Sprint("plain-", i))
		}
		all := strings.Join(given, "\n")
		if len(given) == 0 || !strings.Contains(all, "plain-0") {
			t.Errorf("the summarizer was given %q, want plain-0 in it", all)
		}
		for _, leak := range []string{"restricted-question", "secret-result"} {
			if strings.Contains(all, leak) {
				t.Errorf("the summarizer was given %s", leak)
			}
		}
		last := p.model.all()[len(p.model.all())-1]
		if !strings.Contains(last.Messages[0].Text, "what-was-said") {
			t.Errorf("the newest request begins with %q, want the summary", last.Messages[0].Text)
		}
		p.rehearse(10)
	})
}

// A slice that is too small for one asker's turn leaves out what does not fit, the
// summary too, for that turn alone (C-38.5).
func TestSharedBudget(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.config.Settings.Budget = Budget{ContextWindow: 2000, ReserveOutputTokens: 200}
		p.open()
		p.ask(ann, "first "+strings.Repeat("a", 1500))
		p.ask(bob, "second "+strings.Repeat("b", 4500))
		p.ask(cal, "third")
		sizes := map[string]int{}
		for _, req := range p.model.all() {
			text := req.Messages[len(req.Messages)-1].Text
			for _, word := range []string{"first", "second", "third"} {
				if strings.Contains(text, word) {
					sizes[word] = len(req.Messages)
				}
			}
		}
		if want := map[string]int{"first": 1, "second": 1, "third": 1}; !cmp.Equal(sizes, want) {
			t.Errorf("the requests have %v messages, want %v: the second turn leaves no room for the first, and is itself too large for the third", sizes, want)
		}
		p.ask(cal, "fourth")
		last := p.model.all()[len(p.model.all())-1]
		if len(last.Messages) != 3 {
			t.Errorf("the fourth request has %d messages, want the third turn before it", len(last.Messages))
		}
		p.rehearse(4)
	})
}

// The log of a dialogue and the logs of its turns are the same byte for byte whether
// its executions stay hot or go cold at every park, rotating at every envelope or not.
func TestSharedHotIsCold(t *testing.T) {
	for _, rotate := range []int{0, 1} {
		t.Run(fmt.Sprint("rotate every ", rotate), func(t *testing.T) {
			hot, cold := sharedLogs(t, rotate, 0), sharedLogs(t, rotate, -1)
			if diff := cmp.Diff(hot, cold); diff != "" {
				t.Errorf("hot and cold differ:\n%s", diff)
			}
		})
	}
}

// sharedLogs plays a dialogue and returns its logs. No two tools of it end at the
// same moment, which either could record first.
func sharedLogs(t *testing.T, rotate, hot int) (lines []string) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.hot, p.config.Settings.RotateEveryTurns = hot, rotate
		p.open()
		p.clear(bob, "secret", "top")
		for _, said := range []struct {
			who  *identity.Principal
			text string
		}{{ann, "[use secret]"}, {bob, "[use top]"}, {cal, "hello"}, {ann, "and [use open]"}, {bob, "last"}} {
			if _, err := p.client.SendTurn(t.Context(), said.who, "room", Message{Text: said.text, ID: said.text}); err != nil {
				t.Fatal(err)
			}
			p.settle()
		}
		var streams []string
		for n := range 5 {
			streams = append(streams, kernel.StreamOf("room", n), turnID(p.config.Keys.signing, "room", n+1))
		}
		for _, stream := range streams {
			for _, e := range p.read(stream) {
				lines = append(lines, fmt.Sprintf("%s %d %s %s %s", stream, e.Seq, e.Kind, e.ID, e.Data))
			}
		}
	})
	return lines
}

// A captured envelope counts once, also under a new message id, and nobody's asker
// can be put on it (C-12, T93).
func TestT93SharedReplay(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.open()
		envelope := p.config.Keys.signUser("room", &bob.Identity, "m", "once", now())
		for _, id := range []string{senderKey(&bob.Identity, "m"), "another"} {
			if err := p.rt.Send(t.Context(), p.rt.System(), "room", Topic, envelope, id); err != nil {
				t.Fatal(err)
			}
			p.settle()
		}
		p.expect(ann, "1 user accepted bob once", "1 assistant complete bob re: once", "0 user rejected bob replayed")
	})
}
