package eliza_test

import (
	"context"
	"encoding/json/jsontext"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/eliza"
	"github.com/parley-run/parley/model/modeltest"
	"github.com/parley-run/parley/taint"
)

var update = flag.Bool("update", false, "renew the dialogues under testdata")

var clockTool = model.Tool{
	Name: eliza.ClockTool, Description: "Tells the time of day.", Schema: jsontext.Value(`{"type":"object"}`),
}

func TestModel(t *testing.T) {
	for _, delay := range []time.Duration{0, 35 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			modeltest.Run(t, func(*testing.T) model.Model { return eliza.New(eliza.Config{Delay: delay}) }, modeltest.Config{
				Calling:       model.Request{Messages: []model.Message{said("What time is it?")}, Tools: []model.Tool{clockTool}},
				Deterministic: true,
			})
		})
	}
}

// TestDialogues plays each dialogue under testdata anew, every turn as a
// request of its own to a new model with all that was said before. So it also
// proves that turns and memory are a function of the request.
func TestDialogues(t *testing.T) {
	for _, name := range []string{"testdata/first-talk.txt", "testdata/memory.txt", "testdata/hard-words.txt"} {
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		var messages []model.Message
		for line := range strings.Lines(string(want)) {
			text, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "> ")
			if !ok {
				continue
			}
			messages = append(messages, said(text))
			reply := ask(t, eliza.New(eliza.Config{}), model.Request{Messages: messages})
			messages = append(messages, model.Message{Role: model.Assistant, Text: reply.Text})
			fmt.Fprintf(&got, "> %s\n  %s\n", text, reply.Text)
		}
		if *update {
			if err := os.WriteFile(name, []byte(got.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

func TestFencedTextIsHeardAsPlainText(t *testing.T) {
	fence := model.Message{Role: model.User, Text: taint.Fence(taint.Tainted("I need a holiday", "conversation:user"))}
	if !strings.Contains(fence.Text, "conversation:user") {
		t.Fatalf("the test's text is not fenced: %q", fence.Text)
	}
	for _, m := range []model.Message{fence, said("I need a holiday")} {
		got := ask(t, eliza.New(eliza.Config{}), model.Request{Messages: []model.Message{m}}).Text
		if want := "What would be different if you had a holiday?"; got != want {
			t.Errorf("reply to %q = %q, want %q", m.Text, got, want)
		}
	}
}

// C-27.8: an edit is answered as if it had been said at once, and what it quotes
// brings no keyword.
func TestEditIsHeardWithoutItsMarker(t *testing.T) {
	const text = "I need a holiday"
	want := ask(t, eliza.New(eliza.Config{}), model.Request{Messages: []model.Message{said(text)}}).Text
	for _, quote := range []string{"My mother is ill", "two\nlines", ""} {
		edit := taint.Tainted(`[This message edits the user's earlier message "`+quote+"\".]\n"+text, taint.OriginUser)
		got := ask(t, eliza.New(eliza.Config{}), model.Request{Messages: []model.Message{said(taint.Fence(edit))}}).Text
		if got != want {
			t.Errorf("the reply to an edit of %q is %q, want %q", quote, got, want)
		}
	}
	for text, want := range map[string]string{ // which only look like edits
		`[This message edits the user's earlier message "my mother`:     "Tell me more about your mother.",
		"I need a holiday [This message edits the user's earlier\".]\n": "What would be different if you had a holiday",
	} {
		got := ask(t, eliza.New(eliza.Config{}), model.Request{Messages: []model.Message{said(text)}}).Text
		if !strings.HasPrefix(got, want) {
			t.Errorf("the reply to %q is %q, want %q", text, got, want)
		}
	}
}

func TestTimeIsReadFromTheClock(t *testing.T) {
	question := said("Hello, could you tell me the time?")
	req := model.Request{Messages: []model.Message{question}}
	if reply := ask(t, eliza.New(eliza.Config{}), req); len(reply.Calls) != 0 || !strings.Contains(reply.Text, "no clock") {
		t.Errorf("without the tool the reply is %+v, want a text that she has no clock", reply)
	}
	req.Tools = []model.Tool{{Name: "calendar"}, clockTool}
	reply := ask(t, eliza.New(eliza.Config{}), req)
	want := model.Reply{
		Calls:  []model.Call{{ID: "clock-1", Name: "clock", Args: jsontext.Value("{}")}},
		Reason: model.FinishCalls,
		Usage:  model.Usage{InputTokens: 7},
	}
	if diff := cmp.Diff(want, reply); diff != "" {
		t.Fatalf("call: -want +got\n%s", diff)
	}
	for _, tt := range []struct {
		result model.Result
		want   string
	}{
		{model.Result{Text: "2026-03-01T14:05:00Z"}, "it is 14:05 (UTC) on Sunday, 1 March 2026."},
		{model.Result{Text: taint.Fence(taint.Tainted("half past three", "tool:clock"))}, "it is half past three."},
		{model.Result{Text: `{"time": "2026-03-01T14:05:00+01:00"}`}, "it is 14:05 (+0100)"},
		{model.Result{Text: `"noon."`}, "it is noon."},
		{model.Result{Text: "noon", Failed: true}, "would not tell me"},
		{model.Result{Text: ""}, "would not tell me"},
		{model.Result{Text: "one\ntwo"}, "would not tell me"},
		{model.Result{Text: strings.Repeat("late ", 100)}, "would not tell me"},
	} {
		tt.result.CallID, tt.result.Name = "clock-1", "clock"
		answered := req
		answered.Messages = []model.Message{
			question,
			{Role: model.Assistant, Calls: reply.Calls},
			{Role: model.User, Results: []model.Result{tt.result}},
		}
		got := ask(t, eliza.New(eliza.Config{}), answered)
		if !strings.Contains(got.Text, tt.want) || got.Reason != model.FinishStop {
			t.Errorf("after the result %q she says %q (%s), want %q in it", tt.result.Text, got.Text, got.Reason, tt.want)
		}
	}
}

// TestNewTextOverridesResult: a message with results and a text is an
// interruption, and it is the text that wants an answer.
func TestNewTextOverridesResult(t *testing.T) {
	got := ask(t, eliza.New(eliza.Config{}), model.Request{
		Messages: []model.Message{
			said("What time is it?"),
			{Role: model.Assistant, Calls: []model.Call{{ID: "clock-1", Name: "clock", Args: jsontext.Value("{}")}}},
			{Role: model.User, Results: []model.Result{{CallID: "clock-1", Name: "clock", Failed: true}}, Text: "I need a rest"},
		},
		Tools: []model.Tool{clockTool},
	})
	if want := "What would be different if you had a rest?"; got.Text != want {
		t.Errorf("reply = %q, want %q", got.Text, want)
	}
}

func TestDelayIsSpentBeforeEachWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		reply := ask(t, eliza.New(eliza.Config{Delay: 40 * time.Millisecond}), model.Request{Messages: []model.Message{said("hello")}})
		words := len(strings.Fields(reply.Text))
		if got, want := time.Since(start), time.Duration(words)*40*time.Millisecond; got != want || words == 0 {
			t.Errorf("%d words took %v, want %v", words, got, want)
		}
	})
}

// FuzzReply checks that every text, however odd, gets a bounded answer of valid
// UTF-8, and the same one again.
func FuzzReply(f *testing.F) {
	for _, seed := range []string{"", "my my my", "i " + strings.Repeat("you ", 3000), "\xff\xfe", "’’’", "{1} {9} =i", "why can't I {", "what time is it"} {
		f.Add(seed, "my friend left")
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		req := model.Request{
			Messages: []model.Message{said(first), {Role: model.Assistant, Text: "Go on."}, said(second)},
			Tools:    []model.Tool{clockTool},
		}
		reply := ask(t, eliza.New(eliza.Config{}), req)
		if reply.Text == "" && len(reply.Calls) == 0 || !utf8.ValidString(reply.Text) || len(reply.Text) > 32<<10 {
			t.Errorf("reply to %q is %q", second, reply.Text)
		}
		if again := ask(t, eliza.New(eliza.Config{}), req); !cmp.Equal(reply, again) {
			t.Errorf("reply to %q is %+v, and again %+v", second, reply, again)
		}
	})
}

func said(text string) model.Message { return model.Message{Role: model.User, Text: text} }

func ask(t *testing.T, m model.Model, req model.Request) model.Reply {
	t.Helper()
	reply, err := model.Collect(m.Stream(context.WithoutCancel(t.Context()), req), nil)
	if err != nil {
		t.Fatalf("Stream: %v", err)
	}
	return reply
}
