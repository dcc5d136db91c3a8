package script_test

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/modeltest"
	"github.com/parley-run/parley/model/script"
	"github.com/parley-run/parley/taint"
)

func TestModel(t *testing.T) {
	for name, text := range map[string]string{
		"quick": "when has \"tool\"\n call look {\"at\": [1]}\notherwise\n words \"Good day to you, sir.\"\n usage 3 5",
		"slow":  "when has \"tool\"\n wait 1s\n call look {}\n call look {}\notherwise\n words \"Good day.\" 1m\n wait 1h",
	} {
		t.Run(name, func(t *testing.T) {
			modeltest.Run(t, func(t *testing.T) model.Model { return parse(t, text) }, modeltest.Config{
				Calling:       model.Request{Messages: []model.Message{said("tool")}, Tools: []model.Tool{tool("look")}},
				Deterministic: true,
			})
		})
	}
}

const rules = `
# A rule for each condition.
when is "Hello" replies 0
  say "first"          # a comment
when is "Hello"
  say "later"
when has "weather"
  say "Let me look. "
  call weather {"city": "Oslo"}  # another
then
  say "They say: "
  results
when system "summarize"
  say "a summary"
when tool "clock"
  call clock {}
when has "empty"
otherwise
  say "no rule"
`

func TestRuleIsChosenByTheRequest(t *testing.T) {
	assistant := model.Message{Role: model.Assistant, Text: "Yes."}
	result := model.Message{Role: model.User, Results: []model.Result{
		{CallID: "call-1-1", Name: "weather", Text: "rain"},
		{CallID: "call-1-2", Name: "weather", Text: taint.Fence(taint.Tainted("snow", "tool:weather"))},
	}}
	calls := model.Message{Role: model.Assistant, Calls: []model.Call{
		{ID: "call-1-1", Name: "weather", Args: jsontext.Value("{}")},
		{ID: "call-1-2", Name: "weather", Args: jsontext.Value("{}")},
	}}
	interrupting := result
	interrupting.Text = "Hello"
	fenced := said(taint.Fence(taint.Tainted("Hello", "conversation:user")))
	for _, tt := range []struct {
		name string
		req  model.Request
		want string
	}{
		{"is and replies", request(said("Hello")), "first"},
		{"through a fence", request(fenced), "first"},
		{"is alone", request(said("Hi"), assistant, said("Hello")), "later"},
		{"is means the whole text", request(said("Hello!")), "no rule"},
		{"has", request(said("How is the weather?")), "Let me look. "},
		{"then, with results", request(said("weather"), calls, result), "They say: rain\nsnow"},
		{"a round for which no rule has a block", request(said("weather"), calls, result, calls, result), "weather"},
		{"a text beside results begins a turn", request(said("weather"), calls, interrupting), "later"},
		{"system", model.Request{System: "Please summarize.", Messages: []model.Message{said("x")}}, "a summary"},
		{"tool", model.Request{Messages: []model.Message{said("x")}, Tools: []model.Tool{tool("clock")}}, ""},
		{"an empty block", request(said("empty")), ""},
		{"otherwise", request(said("x")), "no rule"},
	} {
		reply, err := model.Collect(parse(t, rules).Stream(t.Context(), tt.req), nil)
		if err != nil || reply.Text != tt.want {
			t.Errorf("%s: reply = %q, %v, want %q", tt.name, reply.Text, err, tt.want)
		}
	}
}

// TestInvalidRequestIsRefused: what no vendor may be given, no test may give
// the script (C-9.6).
func TestInvalidRequestIsRefused(t *testing.T) {
	reply, err := model.Collect(parse(t, "").Stream(t.Context(), request(said("x"), said("y"))), nil)
	if !errors.Is(err, model.ErrRefused) || reply.Text != "" {
		t.Errorf("two messages of one role got %q, %v, want ErrRefused", reply.Text, err)
	}
}

func TestWithoutRuleTheUsersTextIsReplied(t *testing.T) {
	text := taint.Fence(taint.Tainted("one two\nthree 🙂", "conversation:user"))
	var deltas []string
	_, err := model.Collect(parse(t, "").Stream(t.Context(), request(said(text))), func(d string) { deltas = append(deltas, d) })
	if diff := cmp.Diff([]string{"one ", "two\n", "three ", "🙂"}, deltas); diff != "" || err != nil {
		t.Errorf("deltas, %v: -want +got\n%s", err, diff)
	}
}

func TestActions(t *testing.T) {
	for _, tt := range []struct {
		script string
		want   model.Reply
		took   time.Duration
	}{
		{`say "a"`, model.Reply{Text: "a", Reason: model.FinishStop}, 0},
		{"say `a\"b`", model.Reply{Text: `a"b`, Reason: model.FinishStop}, 0},
		{`words "a b c" 2s`, model.Reply{Text: "a b c", Reason: model.FinishStop}, 6 * time.Second},
		{`repeat 3 "ab" 1s`, model.Reply{Text: "ababab", Reason: model.FinishStop}, 3 * time.Second},
		{`reply 1s`, model.Reply{Text: "go on", Reason: model.FinishStop}, 2 * time.Second},
		{"usage 1 2\nfinish length", model.Reply{Reason: model.FinishLength, Usage: model.Usage{InputTokens: 1, OutputTokens: 2}}, 0},
		{"finish filtered", model.Reply{Reason: model.FinishFiltered}, 0},
		{"wait 1h\nwait 1m", model.Reply{Reason: model.FinishStop}, 61 * time.Minute},
		{"call a {\"x\": 1}\ncall b {}", model.Reply{Reason: model.FinishCalls, Calls: []model.Call{
			{ID: "call-1-1", Name: "a", Args: jsontext.Value(`{"x": 1}`)}, {ID: "call-1-2", Name: "b", Args: jsontext.Value(`{}`)},
		}}, 0},
		{"call a {}\nfinish", model.Reply{Reason: model.FinishCalls, Calls: []model.Call{
			{ID: "call-1-1", Name: "a", Args: jsontext.Value(`{}`)},
		}}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			got, err := model.Collect(parse(t, "otherwise\n"+tt.script).Stream(t.Context(), request(said("go on"))), nil)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil || time.Since(start) != tt.took {
				t.Errorf("%q: %v after %v, want %v: -want +got\n%s", tt.script, err, time.Since(start), tt.took, diff)
			}
		})
	}
}

// TestFailures plays each typed error before and after the first delta (C-9.7).
func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		script string
		want   error
		after  time.Duration // -1: no retry
		text   string
	}{
		{"fail cut", model.ErrCut, -1, ""},
		{"say \"par\"\nfail malformed", model.ErrMalformed, -1, "par"},
		{`fail refused "no such model"`, model.ErrRefused, -1, ""},
		{"fail unavailable after 0s", model.ErrUnavailable, 0, ""},
		{"say \"par\"\nfail rate-limited after 2s \"slow down\"", model.ErrRateLimited, 2 * time.Second, "par"},
		{"fail overflow", model.ErrOverflow, -1, ""},
		{"fail timeout", model.ErrTimeout, -1, ""},
		{"say \"par\"\nend", model.ErrCut, -1, "par"},
		{"end", model.ErrCut, -1, ""},
	} {
		got, err := model.Collect(parse(t, "otherwise\n"+tt.script).Stream(t.Context(), request(said("x"))), nil)
		after := time.Duration(-1)
		if retry, ok := errors.AsType[*model.RetryError](err); ok {
			after = retry.After
		}
		if !errors.Is(err, tt.want) || after != tt.after || got.Text != tt.text {
			t.Errorf("%q: %q, %v, retry after %v; want %q, %v, %v", tt.script, got.Text, err, after, tt.text, tt.want, tt.after)
		}
	}
	_, err := model.Collect(parse(t, "otherwise\nfail refused \"no such model\"").Stream(t.Context(), request(said("x"))), nil)
	if want := "script test:2: no such model: " + model.ErrRefused.Error(); err.Error() != want {
		t.Errorf("error = %q, want %q", err, want)
	}
}

// TestDeafReplyOverlooksItsContext: it waits and yields on though its context
// is done, and ends as a whole one (C-9.7).
func TestDeafReplyOverlooksItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		m := parse(t, "otherwise\ndeaf\nrepeat 3 \"on \" 1h\nwait 1h\nsay \"end\"")
		reply, err := model.Collect(m.Stream(ctx, request(said("x"))), nil)
		if reply.Text != "on on on end" || err != nil || time.Since(start) != 4*time.Hour {
			t.Errorf("reply = %q, %v after %v, want a whole one after 4h", reply.Text, err, time.Since(start))
		}
	})
}

// TestUnboundedReplyEndsWithItsReader: forever ends when it is left, or when
// its context is done (C-9.7).
func TestUnboundedReplyEndsWithItsReader(t *testing.T) {
	for _, delay := range []string{"", " 1s"} {
		synctest.Test(t, func(t *testing.T) {
			m := parse(t, "otherwise\nforever \"on \""+delay)
			n := 0
			for range m.Stream(t.Context(), request(said("x"))) {
				if n++; n == 1000 {
					break
				}
			}
			if n != 1000 {
				t.Errorf("%d chunks, want 1000", n)
			}
			ctx, cancel := context.WithCancel(t.Context())
			_, err := model.Collect(m.Stream(ctx, request(said("x"))), func(string) {
				if n++; n == 2000 {
					cancel()
				}
			})
			if !errors.Is(err, context.Canceled) || n != 2000 {
				t.Errorf("after a cancellation: %v and %d chunks, want context.Canceled and 2000", err, n)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if _, err := script.Load(write("good", "otherwise\r\n  say \"a\"\r\n")); err != nil {
		t.Errorf("Load: %v", err)
	}
	path := write("bad", "otherwise\n  sya \"a\"\n")
	_, err := script.Load(path)
	bad, ok := errors.AsType[*script.SyntaxError](err)
	if !ok || bad.Line != 2 || bad.Column != 3 || !strings.HasPrefix(err.Error(), path+":2:3: ") {
		t.Errorf("Load of a bad script = %v, want its place %s:2:3", err, path)
	}
	if _, err := script.Load(write("large", strings.Repeat("#", script.MaxBytes+1))); err == nil {
		t.Error("Load of a script of more than MaxBytes gave no error")
	}
	if _, err := script.Load(write("largest", strings.Repeat("#", script.MaxBytes))); err != nil {
		t.Errorf("Load of a script of MaxBytes: %v", err)
	}
	if _, err := script.Load(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of no file = %v, want os.ErrNotExist", err)
	}
}

func parse(t *testing.T, text string) *script.Model {
	t.Helper()
	m, err := script.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func said(text string) model.Message { return model.Message{Role: model.User, Text: text} }

func tool(name string) model.Tool { return model.Tool{Name: name, Schema: jsontext.Value("{}")} }

func request(messages ...model.Message) model.Request { return model.Request{Messages: messages} }
