package conversation

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// byLength counts a token a byte, and what it is asked.
type byLength struct {
	asked []string
	per   int
}

func (c *byLength) Count(_ context.Context, text string) (int, error) {
	c.asked = append(c.asked, text)
	return len(text), nil
}
func (c *byLength) PerMessage() int { return c.per }

// said is a part of one plain message with so many bytes.
func said(bytes int) FitPart {
	return FitPart{Messages: []agent.Message{agent.NewMessage(model.Assistant, taint.Plain(strings.Repeat("x", bytes)))}}
}

func prompted(bytes int) agent.Message {
	return agent.NewMessage(model.User, taint.Plain(strings.Repeat("p", bytes)))
}

// Whatever has to find room: what is kept fits, one turn more would not, and no
// turn beyond that one is counted (C-20.2 to C-20.6, C-20.13).
func TestFitToWindowKeepsWhatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 60), 0, 12).Draw(t, "turns")
		known := rapid.SliceOfN(rapid.Bool(), len(sizes), len(sizes)).Draw(t, "counted before")
		counter := &byLength{per: rapid.IntRange(0, 5).Draw(t, "per message")}
		cost := func(bytes int) int { return bytes + counter.per }
		r := FitRequest{
			ContextWindow: rapid.IntRange(1, 400).Draw(t, "window"), System: []string{"sys", "tool"},
			Prompt: prompted(rapid.IntRange(1, 80).Draw(t, "prompt")), Counter: counter,
			Most:        rapid.IntRange(0, 14).Draw(t, "most"),
			SummaryRoom: rapid.SampledFrom([]int{0, 0, 20, 70}).Draw(t, "summary room"),
		}
		r.ReserveOutputTokens = rapid.IntRange(0, r.ContextWindow-1).Draw(t, "reserve")
		summary := 0
		if n := rapid.IntRange(-20, 60).Draw(t, "summary"); n > 0 {
			r.Summary, summary = said(n), cost(n)
		}
		for i, size := range sizes {
			part := said(size)
			if known[i] {
				part.Tokens = cost(size)
			}
			r.Turns = append(r.Turns, part)
		}
		room := r.ContextWindow - r.ReserveOutputTokens - cost(7) - cost(len(prompted(0).Crossing())) - len(r.Prompt.Crossing())
		fit := FitToWindow(t.Context(), r)

		if fit.OK != (room >= 0) {
			t.Fatalf("with room %d the verdict is %+v", room, fit)
		}
		if !fit.OK {
			if fit.Keep != 0 || fit.Counted != nil {
				t.Fatalf("what does not fit keeps turns: %+v", fit)
			}
			return
		}
		if fit.DropSummary != (summary > room) {
			t.Fatalf("a summary of %d in room for %d: %+v", summary, room, fit)
		}
		if fit.DropSummary {
			summary = 0
		}
		actual := summary
		newest := func(n int) (sum int) {
			for _, size := range sizes[len(sizes)-n:] {
				sum += cost(size)
			}
			return sum
		}
		if want := cost(7) + cost(len(r.Prompt.Crossing())) + summary + newest(fit.Keep); fit.Tokens != want {
			t.Fatalf("%+v, want %d tokens", fit, want)
		}
		if fit.Keep < len(sizes) && !fit.DropSummary && r.SummaryRoom <= room {
			summary = max(summary, r.SummaryRoom)
		}
		if fit.Keep > r.Most || fit.Keep > 0 && summary+newest(fit.Keep) > room {
			t.Fatalf("%+v keeps more than fit into %d beside %d", fit, room, summary)
		}
		if fit.Keep < min(len(sizes), r.Most) && summary+newest(fit.Keep+1) <= room {
			t.Fatalf("%+v keeps less than fit into %d beside %d", fit, room, summary)
		}
		fitting := 0 // beside the summary as it is
		for fitting < min(len(sizes), r.Most) && actual+newest(fitting+1) <= room {
			fitting++
		}
		if len(fit.Counted) > fitting+1 {
			t.Fatalf("%d turns are counted where %d fit", len(fit.Counted), fitting)
		}
	})
}

func TestFitToWindow(t *testing.T) {
	turns := func(sizes ...int) (parts []FitPart) {
		for _, size := range sizes {
			parts = append(parts, said(size))
		}
		return parts
	}
	counted := turns(10, 10, 10)
	counted[1].Tokens = 11
	for _, test := range []struct {
		name string
		r    FitRequest
		want Fit
	}{
		{"all of it", FitRequest{ContextWindow: 100, Turns: turns(10, 20), Most: 9}, Fit{OK: true, Keep: 2, Counted: []int{20, 10}, Tokens: 40}},
		{"to the last token", FitRequest{ContextWindow: 40, Turns: turns(10, 20), Most: 9}, Fit{OK: true, Keep: 2, Counted: []int{20, 10}, Tokens: 40}},
		{"one too few", FitRequest{ContextWindow: 39, Turns: turns(10, 20), Most: 9}, Fit{OK: true, Keep: 1, Counted: []int{20, 10}, Tokens: 30}},
		{"the reserve", FitRequest{ContextWindow: 49, ReserveOutputTokens: 10, Turns: turns(10, 20), Most: 9}, Fit{OK: true, Keep: 1, Counted: []int{20, 10}, Tokens: 30}},
		{"no turn is skipped", FitRequest{ContextWindow: 60, Turns: turns(10, 90, 10), Most: 9}, Fit{OK: true, Keep: 1, Counted: []int{10, 90}, Tokens: 20}},
		{"at most so many", FitRequest{ContextWindow: 100, Turns: turns(10, 10, 10), Most: 2}, Fit{OK: true, Keep: 2, Counted: []int{10, 10}, Tokens: 30}},
		{"a known cost is not counted", FitRequest{ContextWindow: 100, Turns: counted, Most: 9}, Fit{OK: true, Keep: 3, Counted: []int{10, 10}, Tokens: 41}},
		{"the prompt alone", FitRequest{ContextWindow: 10, Turns: turns(10), Most: 9}, Fit{OK: true, Counted: []int{10}, Tokens: 10}},
		{"not even that", FitRequest{ContextWindow: 9, Turns: turns(10), Most: 9}, Fit{Tokens: 10}},
		{"instructions count", FitRequest{ContextWindow: 12, System: []string{"abc"}}, Fit{Tokens: 13}},
		{"a summary", FitRequest{ContextWindow: 40, Summary: said(15), Turns: turns(10, 10), Most: 9}, Fit{OK: true, Keep: 1, Counted: []int{10, 10}, Tokens: 35}},
		{"a summary too large", FitRequest{ContextWindow: 40, Summary: said(31), Turns: turns(10, 10), Most: 9}, Fit{OK: true, Keep: 2, Counted: []int{10, 10}, Tokens: 30, DropSummary: true}},
		{"room for a new summary", FitRequest{ContextWindow: 60, Summary: said(5), SummaryRoom: 30, Turns: turns(10, 10, 10, 20), Most: 9}, Fit{OK: true, Keep: 1, Counted: []int{20, 10, 10, 10}, Tokens: 35}},
		{"no room set aside where nothing goes", FitRequest{ContextWindow: 60, SummaryRoom: 30, Turns: turns(20, 20), Most: 9}, Fit{OK: true, Keep: 2, Counted: []int{20, 20}, Tokens: 50}},
		{"something set aside", FitRequest{ContextWindow: 49, Aside: 10, Turns: turns(10, 20), Most: 9}, Fit{OK: true, Keep: 1, Counted: []int{20, 10}, Tokens: 30}},
		{"too much set aside", FitRequest{ContextWindow: 49, Aside: 40, Turns: turns(10), Most: 9}, Fit{Tokens: 10}},
		{"a counter that counts half", FitRequest{ContextWindow: 80, Scale: 200, Turns: turns(10, 20), Most: 9}, Fit{OK: true, Keep: 2, Counted: []int{20, 10}, Tokens: 40, Scale: 200}},
		{"a counter that counts double", FitRequest{ContextWindow: 20, Scale: 50, Turns: turns(10, 20), Most: 9}, Fit{OK: true, Keep: 2, Counted: []int{20, 10}, Tokens: 40, Scale: 50}},
	} {
		test.r.Prompt, test.r.Counter = prompted(10), &byLength{}
		if diff := cmp.Diff(test.want, FitToWindow(t.Context(), test.r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// A steady conversation counts each text once (C-20.4).
func TestFitCountsWhatIsKept(t *testing.T) {
	counter := &byLength{}
	r := FitRequest{ContextWindow: 75, Prompt: prompted(10), Most: 100, Counter: counter}
	for range 50 {
		r.Turns = append(r.Turns, said(20))
	}
	fit := FitToWindow(t.Context(), r)
	if fit.Keep != 3 || len(counter.asked) != 1+4 {
		t.Errorf("%+v with %d texts counted, want 3 of 50 turns and 5 texts", fit, len(counter.asked))
	}
}

// The size of a turn in a carry is known when its cost is on it, too (C-19.12).
func TestPrice(t *testing.T) {
	w := newWindow([]Turn{{Turn: 1, Tokens: 3}, {Turn: 2}, {Turn: 3}, {Turn: 4}})
	w.price([]int{0, 7, 12345}, placesOf(4))
	w.price([]int{0}, placesOf(4))
	for i, want := range []int{3, 12345, 7, 0} {
		if got := w.turns[i]; got.Tokens != want || w.sizes[i] != jsonBytes(got)+len(",") {
			t.Errorf("turn %d costs %d and has %d bytes, want %d and %d", i+1, got.Tokens, w.sizes[i], want, jsonBytes(got)+1)
		}
	}
}

func ExampleFitToWindow() {
	message := func(role model.Role, text string) agent.Message { return agent.NewMessage(role, taint.Plain(text)) }
	fit := FitToWindow(context.Background(), FitRequest{
		ContextWindow: 60, ReserveOutputTokens: 20, Most: 64,
		System: []string{"Be brief."},
		Turns: []FitPart{
			{Messages: []agent.Message{message(model.User, "What is the capital of Norway?"), message(model.Assistant, "Oslo.")}},
			{Messages: []agent.Message{message(model.User, "And of Denmark?"), message(model.Assistant, "Copenhagen.")}},
		},
		Prompt: message(model.User, "Which is larger?"),
	})
	fmt.Println(fit.Keep, "turn stays;", fit.Tokens, "tokens")
	// Output: 1 turn stays; 30 tokens
}
