package taint_test

import (
	"encoding/json/jsontext"
	"errors"
	"testing"

	"github.com/parley-run/parley/taint"
)

type message struct {
	Role    string     `json:"role"`
	Text    taint.Text `json:"text,omitzero"`
	Results []result   `json:"results,omitempty"`
}

type result struct {
	Name   string     `json:"name"`
	Text   taint.Text `json:"text"`
	Failed bool       `json:"failed,omitzero"`
}

// C-8.7: what TextOf refuses, the sanctioned reader reads, however it nests.
func TestSummarizerText(t *testing.T) {
	mcp := taint.ToolOrigin("mcp/search")
	tests := map[string]struct {
		value any
		want  string
	}{
		"plain text":          {taint.Plain("hello"), "hello"},
		"tainted text":        {taint.Tainted("hello", taint.OriginUser), "hello"},
		"string":              {"hello", "hello"},
		"nothing":             {nil, ""},
		"number":              {7, ""},
		"history with origin": {[]message{{Role: "user", Text: taint.Tainted("q", taint.OriginUser)}, {Role: "assistant", Text: taint.Plain("a")}}, "q\na"},
		"failed tool call": {
			message{Role: "user", Results: []result{{Name: "clock", Text: taint.Tainted("no clock", taint.ToolOrigin("clock")), Failed: true}}},
			"no clock",
		},
		"input of a compaction": {
			map[string]any{"messages": []message{{Text: taint.Tainted("q", taint.OriginUser)}, {Results: []result{{Text: taint.Tainted("r", mcp)}}}}},
			"q\nr",
		},
		"whole value": {taint.Value[[]string]{Origin: mcp, Value: []string{"a", "b"}}, "a\nb"},
		"parts in a wrapped result": {
			jsontext.Value(`{"type":"tool_result","content":{"tainted":"tool:mcp","value":[{"type":"text","text":"a"},{"type":"text","text":{"tainted":"x","value":"b"}}]}}`),
			"a\nb",
		},
		"wrapper in a wrapper": {jsontext.Value(`{"tainted":"x","value":{"tainted":"y","value":"deep"}}`), "deep"},
		"other members":        {jsontext.Value(`{"role":"user","name":"n","id":["i"],"args":{"text":"no"},"text":"yes"}`), "yes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := taint.SummarizerText(tt.value); got != tt.want || err != nil {
				t.Errorf("SummarizerText = %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// The ordinary reader refuses each tainted text that the suite above reads.
func TestTextOfRefusesWhatTheSummarizerReads(t *testing.T) {
	for _, origin := range []taint.Origin{taint.OriginUser, taint.OriginSummary, taint.ToolOrigin("mcp/search")} {
		if _, err := taint.TextOf(taint.Tainted("x", origin)); !errors.Is(err, taint.ErrTaintedContent) {
			t.Errorf("TextOf of a text from %q: %v, want ErrTaintedContent", origin, err)
		}
	}
}

func TestSummarizerTextNeedsJSON(t *testing.T) {
	for name, value := range map[string]any{"channel": make(chan int), "cut": jsontext.Value(`{"text":"x"`), "not UTF-8": "\xff"} {
		if got, err := taint.SummarizerText(value); err == nil || got != "" {
			t.Errorf("SummarizerText(%s) = %q, %v, want an error", name, got, err)
		}
	}
}
