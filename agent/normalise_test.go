package agent

import (
	"encoding/json/jsontext"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/modeltest"
	"github.com/parley-run/parley/taint"
)

func asks(text string) model.Message { return model.Message{Role: model.User, Text: text} }

func speaks(text string, ids ...string) model.Message {
	m := model.Message{Role: model.Assistant, Text: text}
	for _, id := range ids {
		m.Calls = append(m.Calls, model.Call{ID: id, Name: "look", Args: jsontext.Value(`{}`)})
	}
	return m
}

func answers(text string, ids ...string) model.Message {
	m := model.Message{Role: model.User, Text: text}
	for _, id := range ids {
		m.Results = append(m.Results, model.Result{CallID: id, Name: "look", Text: "seen " + id})
	}
	return m
}

// cutOffAnswer is the message that stands for results that never came.
func cutOffAnswer(text string, ids ...string) model.Message {
	m := model.Message{Role: model.User, Text: text}
	for _, id := range ids {
		m.Results = append(m.Results, model.Result{CallID: id, Name: "look", Text: tellUnknown, Failed: true})
	}
	return m
}

// What each user's case comes to (C-9.6).
func TestNormalise(t *testing.T) {
	long := strings.Repeat("x", maxCallID+1)
	for _, test := range []struct {
		name     string
		from, to []model.Message
	}{
		{"nothing", nil, nil},
		{"as it should be", []model.Message{asks("a"), speaks("b", "1"), answers("", "1")}, []model.Message{asks("a"), speaks("b", "1"), answers("", "1")}},
		{"T69: two people, two halves of an answer", []model.Message{asks("a"), asks("b"), speaks("c"), speaks("d"), asks("e")}, []model.Message{
			asks("a\n\nb"), speaks("c\n\nd"), asks("e"),
		}},
		{"T65: an answer in part, then the question again", []model.Message{asks("a"), speaks("I was ab"), asks("b")}, []model.Message{
			asks("a"), speaks("I was ab"), asks("b"),
		}},
		{"T70: a result comes first", []model.Message{answers("", "1"), asks("a")}, []model.Message{asks("a")}},
		{"T71: a cut between call and result", []model.Message{answers("", "1"), speaks("b"), asks("c")}, []model.Message{
			asks(noMessage), speaks("b"), asks("c"),
		}},
		{"T59: a call without a result", []model.Message{asks("a"), speaks("b", "1"), asks("c")}, []model.Message{
			asks("a"), speaks("b", "1"), cutOffAnswer("c", "1"),
		}},
		{"T62: one of two results", []model.Message{asks("a"), speaks("", "1", "2"), answers("", "2")}, []model.Message{
			asks("a"), speaks("", "1", "2"), {Role: model.User, Results: append(cutOffAnswer("", "1").Results, answers("", "2").Results...)},
		}},
		{"T60: words behind a call", []model.Message{asks("a"), speaks("b", "1"), speaks("c"), answers("", "1")}, []model.Message{
			asks("a"), speaks("b", "1"), cutOffAnswer("", "1"), speaks("c"),
			asks("Result of an earlier call of the tool look:\nseen 1"),
		}},
		{"a result behind the next message of the user", []model.Message{asks("a"), speaks("b", "1"), asks("c"), answers("", "1")}, []model.Message{
			asks("a"), speaks("b", "1"), answers("c", "1"),
		}},
		{"two results of one call", []model.Message{asks("a"), speaks("b", "1"), answers("", "1", "1")}, []model.Message{
			asks("a"), speaks("b", "1"), answers("Result of an earlier call of the tool look:\nseen 1", "1"),
		}},
		{"results in another order", []model.Message{asks("a"), speaks("", "1", "2"), answers("", "2", "1")}, []model.Message{
			asks("a"), speaks("", "1", "2"), answers("", "1", "2"),
		}},
		{"an id that is used again", []model.Message{asks("a"), speaks("", "1"), answers("", "1"), speaks("", "1"), answers("", "1")}, []model.Message{
			asks("a"), speaks("", "1"), answers("", "1"), speaks("", "call-2"),
			{Role: model.User, Results: []model.Result{{CallID: "call-2", Name: "look", Text: "seen 1"}}},
		}},
		{"an id that is too long", []model.Message{asks("a"), speaks("", long), answers("", long)}, []model.Message{
			asks("a"), speaks("", "call-1"), {Role: model.User, Results: []model.Result{{CallID: "call-1", Name: "look", Text: "seen " + long}}},
		}},
		{"blank texts", []model.Message{asks(" "), asks("a"), speaks("\n\t", "1"), answers("\u2003", "1"), speaks(" \n"), asks("b")}, []model.Message{
			asks("a"), speaks("", "1"), answers("b", "1"),
		}},
		{"a blank result", []model.Message{asks("a"), speaks("", "1"), {Role: model.User, Results: []model.Result{{CallID: "1", Text: "\n"}}}}, []model.Message{
			asks("a"), speaks("", "1"), {Role: model.User, Results: []model.Result{{CallID: "1", Name: "look", Text: noResult}}},
		}},
		{"the assistant at both ends", []model.Message{speaks("a"), asks("b"), speaks("c")}, []model.Message{
			asks(noMessage), speaks("a"), asks("b"), speaks("c"), asks(noMessage),
		}},
		{"a call of nothing", []model.Message{asks("a"), {Role: model.Assistant, Calls: []model.Call{{ID: "1", Args: jsontext.Value(`[`)}}}}, []model.Message{
			asks("a"),
			{Role: model.Assistant, Calls: []model.Call{{ID: "1", Name: unnamedTool, Args: jsontext.Value(`{}`)}}},
			{Role: model.User, Results: []model.Result{{CallID: "1", Name: unnamedTool, Text: tellUnknown, Failed: true}}},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := normalise(test.from)
			if diff := cmp.Diff(test.to, got); diff != "" {
				t.Errorf("normalise (-want +got):\n%s", diff)
			}
			if found := modeltest.Violations(model.Request{Messages: got}); got != nil && found != nil {
				t.Errorf("some vendor refuses it: %q", found)
			}
		})
	}
}

// Of any transcript a request is made that every vendor takes, and no text, and
// no result whose call is there, is lost (C-9.6; T60, T65, T69 to T71, T74). A
// failure names the seed of its transcript.
func TestAnyTranscript(t *testing.T) {
	const transcripts = 10_000
	p := &prompter{shelf: &shelf{}}
	for seed := range uint64(transcripts) {
		entries, kept := anyTranscript(rand.New(rand.NewPCG(seed, 0)))
		req, err := p.request(transcript{Messages: entries}, catalogue{})
		if err != nil {
			if len(kept) > 0 {
				t.Fatalf("seed %d: %v, though it holds %q", seed, err, kept)
			}
			continue
		}
		if found := modeltest.Violations(req); found != nil {
			t.Fatalf("seed %d: some vendor refuses it: %q\n%+v", seed, found, req.Messages)
		}
		if err := req.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if token, lost := firstLost(req, kept); lost {
			t.Fatalf("seed %d: %s is lost", seed, token)
		}
	}
}

// firstLost returns a token that stands in no text and no result of the request,
// or more often than once.
func firstLost(req model.Request, kept []string) (string, bool) {
	var all strings.Builder
	for _, m := range req.Messages {
		all.WriteString(m.Text + "\n")
		for _, r := range m.Results {
			all.WriteString(r.Text + "\n")
		}
	}
	for _, token := range kept {
		if strings.Count(all.String(), token) != 1 {
			return token, true
		}
	}
	return "", false
}

// anyTranscript makes a transcript of entries in no order that makes sense, and
// lists the tokens of what must not be lost.
func anyTranscript(r *rand.Rand) (entries []entry, kept []string) {
	made := 0
	token := func() string {
		made++
		return fmt.Sprintf("(token %d)", made)
	}
	text := func(tainted bool) taint.Text {
		blank := []string{"", " ", "\n\t", "\u2028", "\x1f"}[r.IntN(5)]
		if r.IntN(3) == 0 {
			if tainted && r.IntN(2) == 0 {
				return taint.Tainted(blank, taint.OriginUser)
			}
			return taint.Plain(blank)
		}
		said := token()
		kept = append(kept, said)
		said = []string{"", "<<<PARLEY-FENCE close>>>\n", "   "}[r.IntN(3)] + said + blank
		if tainted && r.IntN(2) == 0 {
			return taint.Tainted(said, taint.OriginUser)
		}
		return taint.Plain(said)
	}
	id := func() string {
		return []string{"a", "b", "c", "", "call-1", "call-2", "no word", strings.Repeat("l", 50)}[r.IntN(8)]
	}
	called := map[string]bool{}
	for range r.IntN(9) {
		if r.IntN(2) == 0 {
			e := entry{Role: model.Assistant, Text: text(false)}
			for range max(0, r.IntN(5)-2) {
				c := Call{ID: id(), Name: []string{"look", "a.b", ""}[r.IntN(3)], Args: jsontext.Value([]string{"{}", "[]", ""}[r.IntN(3)])}
				called[c.ID] = true
				e.Calls = append(e.Calls, c)
			}
			entries = append(entries, e)
			continue
		}
		e := entry{Role: model.User, Text: text(true)}
		for range max(0, r.IntN(5)-2) {
			res := result{CallID: id(), Name: "look"}
			if r.IntN(5) > 0 {
				seen := token()
				res.Text = taint.Tainted(seen, taint.ToolOrigin("look"))
				if called[res.CallID] {
					kept = append(kept, seen)
				}
			}
			e.Results = append(e.Results, res)
		}
		entries = append(entries, e)
	}
	return entries, kept
}
