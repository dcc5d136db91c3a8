package agent

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/modeltest"
	"github.com/parley-run/parley/taint"
)

// anyDraft is a history, a head and rounds of calls, of random sizes.
func anyDraft(t *testing.T, r *rand.Rand) draft {
	t.Helper()
	text := func(most int) string { return strings.Repeat("é\"", 1+r.IntN(most)) }
	var history []Message
	for range r.IntN(6) {
		history = append(history,
			Message{Role: model.User, Text: taint.Tainted(text(500), taint.OriginUser)},
			Message{Role: model.Assistant, Text: taint.Plain(text(500))})
	}
	var facts taint.Text
	if r.IntN(2) == 0 {
		facts = taint.Tainted(text(50), taint.OriginMemory)
	}
	d, err := newDraft(Request{History: history, Prompt: text(300)}, facts)
	if err != nil {
		t.Fatal(err)
	}
	for round := range r.IntN(6) {
		addRound(t, r, &d, round, text)
	}
	return d
}

func addRound(t *testing.T, r *rand.Rand, d *draft, round int, text func(int) string) {
	t.Helper()
	asked := entry{Role: model.Assistant, Text: taint.Plain(fmt.Sprintf("round %d", round))}
	told := entry{Role: model.User}
	for i := range 1 + r.IntN(3) {
		id := fmt.Sprintf("c%d-%d", round, i)
		asked.Calls = append(asked.Calls, Call{ID: id, Name: "look", Args: jsontext.Value(`{}`)})
		told.Results = append(told.Results, result{CallID: id, Name: "look", Text: taint.Tainted(text(800), "tool:look")})
	}
	for _, e := range []entry{asked, told} {
		if err := d.add(e); err != nil {
			t.Fatal(err)
		}
	}
}

// newestRound is the extent of the last calls and their results, or of nothing.
func newestRound(d draft) extent {
	if d.rounds == len(d.Messages) {
		return extent{}
	}
	return d.of(len(d.Messages)-2, len(d.Messages))
}

// T71, T73, T75: for any transcript above any limit, either there is nothing to
// cut, or what is left is below the limit but for the newest round, has no call
// without its result, begins with the summary, holds the head as it was, and is
// no longer above the limit by the measure that said so, unless that round alone
// is. Compacting again finds nothing.
func TestBoundaryOfAnyTranscript(t *testing.T) {
	cuts, nothing, drafts := 0, 0, 2000
	if underRace {
		drafts /= 10
	}
	for seed := range uint64(drafts) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := anyDraft(t, r)
		limit := Compaction{Messages: []int{0, 8, 10}[r.IntN(3)], Bytes: []int{0, 4 << 10, 8 << 10}[r.IntN(3)]}
		if !d.extent().over(limit) {
			continue
		}
		head, round := d.of(d.head, d.rounds), newestRound(d)
		prompt, said := d.prompt(), d.said()
		cut := d.boundary(limit)
		if cut == 0 {
			nothing++
			if d.head > 0 && d.summaryBytes(limit) >= minSummaryBytes {
				t.Fatalf("seed %d: nothing to cut in a history of %d messages", seed, d.head)
			}
			continue
		}
		cuts++
		summary := strings.Repeat("s", min(r.IntN(2000), d.summaryBytes(limit)))
		if err := d.replace(cut, summary+"."); err != nil {
			t.Fatal(err)
		}
		left := d.extent()
		if bound := limit.Bytes; bound > 0 && left.bytes > bound+round.bytes {
			t.Fatalf("seed %d: %d bytes are left, limit %d, newest round %d, head %d", seed, left.bytes, bound, round.bytes, head.bytes)
		}
		if bound := limit.Messages; bound > 0 && left.messages > bound {
			t.Fatalf("seed %d: %d messages are left, limit %d", seed, left.messages, bound)
		}
		if d.Messages[0].Text.Origin() != taint.OriginSummary || d.prompt() != prompt || d.of(d.head, d.rounds) != head || newestRound(d) != round {
			t.Fatalf("seed %d: summary, head or newest round are not where they were: %+v", seed, d)
		}
		if got := d.said(); got != said {
			t.Fatalf("seed %d: said %q, was %q", seed, got, said)
		}
		for i := d.rounds; i < len(d.Messages); i += 2 {
			if len(d.Messages[i].Calls) == 0 || len(d.Messages[i+1].Results) == 0 {
				t.Fatalf("seed %d: call and result were cut apart at message %d", seed, i)
			}
		}
		if d.summarised < d.head && d.Messages[d.summarised].Role != model.User {
			t.Fatalf("seed %d: an answer is left without its question", seed)
		}
		messages := make([]model.Message, len(d.Messages))
		for i, e := range d.Messages {
			messages[i], _ = boundary(e)
		}
		if found := modeltest.Violations(model.Request{Messages: normalise(messages)}); found != nil {
			t.Fatalf("seed %d: %q", seed, found)
		}
		if again := d.boundary(limit); d.extent().over(limit) && again != 0 {
			t.Fatalf("seed %d: compacted, and %d messages are there to cut again", seed, again)
		}
		var read transcript
		if err := json.Unmarshal(d.input().JSON, &read); err != nil || read.said() != said {
			t.Fatalf("seed %d: the input does not say what was said: %v", seed, err)
		}
		if want := canonical(t, string(d.json())); want != string(d.json()) {
			t.Fatalf("seed %d: the input is not canonical: %s", seed, d.json())
		}
	}
	if cuts < drafts/10 || !underRace && nothing == 0 {
		t.Errorf("%d transcripts were cut and %d not: the test proves little", cuts, nothing)
	}
}
