package modeltest

import (
	"encoding/json/jsontext"
	"strings"
	"testing"

	"github.com/parley-run/parley/model"
)

// exchange is a request that every vendor takes: a question, two calls, their
// results, a remark.
func exchange() model.Request {
	return model.Request{
		System: "Be brief.",
		Messages: []model.Message{
			{Role: model.User, Text: "What time is it?"},
			{Role: model.Assistant, Text: "Let me look.", Calls: []model.Call{
				{ID: "a", Name: "look", Args: jsontext.Value(`{}`)},
				{ID: "b", Name: "look", Args: jsontext.Value(`{"at":1}`)},
			}},
			{Role: model.User, Results: []model.Result{
				{CallID: "a", Name: "look", Text: "noon"},
				{CallID: "b", Name: "look", Text: "no clock here", Failed: true},
			}},
			{Role: model.Assistant, Text: "It is noon."},
			{Role: model.User, Text: "Thank you."},
		},
		Tools: []model.Tool{{Name: "look", Schema: jsontext.Value(`{"type":"object"}`)}},
	}
}

func TestGoodRequest(t *testing.T) {
	if got := Violations(exchange()); got != nil {
		t.Errorf("Violations of a good request = %q", got)
	}
}

// TestEachRuleFindsWhatItIsFor gives each rule (C-9.6) a request that it refuses
// and no other does, so that none of them is idle.
func TestEachRuleFindsWhatItIsFor(t *testing.T) {
	tested := map[string]bool{}
	for _, tt := range []struct {
		rule  string
		spoil func(*model.Request)
	}{
		{"there is a message", func(r *model.Request) { r.Messages = nil }},
		{"the first message is the user's", func(r *model.Request) { r.Messages = r.Messages[3:] }},
		{"the last message is the user's", func(r *model.Request) { r.Messages = r.Messages[:4] }},
		{"the last message is the user's", func(r *model.Request) { r.Messages = r.Messages[:2] }},
		{"roles alternate (T69)", func(r *model.Request) {
			r.Messages = append(r.Messages, model.Message{Role: model.User, Text: "And you?"})
		}},
		{"roles are known", func(r *model.Request) { r.Messages[4].Role = "tool" }},
		{"no message is empty (C-9.6)", func(r *model.Request) { r.Messages[3].Text = "" }},
		{"no text is blank (C-9.6)", func(r *model.Request) { r.Messages[1].Text = " \n\t " }},
		{"results say something (C-9.6)", func(r *model.Request) { r.Messages[2].Results[0].Text = "\n" }},
		{"only the assistant calls", func(r *model.Request) {
			r.Messages[4].Calls = []model.Call{{ID: "c", Name: "look", Args: jsontext.Value(`{}`)}}
		}},
		{"only the user has results", func(r *model.Request) {
			r.Messages[3].Results = []model.Result{{CallID: "c", Text: "noon"}}
		}},
		{"no result comes first (T70)", func(r *model.Request) { r.Messages = r.Messages[2:] }},
		{"each call has its result in the next message (T62, T63, T64)", func(r *model.Request) {
			r.Messages[2].Results = r.Messages[2].Results[:1]
		}},
		{"each result has its call in the message before (T71)", func(r *model.Request) {
			r.Messages[4].Results = []model.Result{{CallID: "c", Name: "look", Text: "noon"}}
		}},
		{"each result has its call in the message before (T71)", func(r *model.Request) {
			r.Messages[4].Results = r.Messages[2].Results[:1]
		}},
		{"a call is answered once (T71)", func(r *model.Request) {
			r.Messages[2].Results = append(r.Messages[2].Results, r.Messages[2].Results[0])
		}},
		{"ids of calls are unique in the request", func(r *model.Request) {
			r.Messages[3].Calls = r.Messages[1].Calls[:1]
			r.Messages[4].Results = r.Messages[2].Results[:1]
		}},
		{"ids of calls are short words", func(r *model.Request) {
			id := strings.Repeat("x", 41)
			r.Messages[1].Calls[0].ID, r.Messages[2].Results[0].CallID = id, id
		}},
		{"ids of calls are short words", func(r *model.Request) {
			r.Messages[1].Calls[0].ID, r.Messages[2].Results[0].CallID = "a:b", "a:b"
		}},
		{"tools have names that are short words", func(r *model.Request) {
			r.Messages[1].Calls[0].Name, r.Messages[2].Results[0].Name = "", ""
		}},
		{"tools have names that are short words", func(r *model.Request) { r.Tools[0].Name = "look.up" }},
		{"a result names the tool of its call", func(r *model.Request) { r.Messages[2].Results[1].Name = "hear" }},
		{"arguments are one JSON object", func(r *model.Request) { r.Messages[1].Calls[0].Args = jsontext.Value(`[]`) }},
		{"arguments are one JSON object", func(r *model.Request) { r.Messages[1].Calls[0].Args = nil }},
		{"texts are valid UTF-8", func(r *model.Request) { r.Messages[0].Text = "\xff" }},
		{"texts are valid UTF-8", func(r *model.Request) { r.Messages[2].Results[0].Text = "\xff" }},
		{"texts are valid UTF-8", func(r *model.Request) { r.System = "\xff" }},
		{"tools are offered once", func(r *model.Request) { r.Tools = append(r.Tools, r.Tools[0]) }},
		{"schemas are JSON objects", func(r *model.Request) { r.Tools[0].Schema = jsontext.Value(`true`) }},
	} {
		tested[tt.rule] = true
		req := exchange()
		tt.spoil(&req)
		got := Violations(req)
		if len(got) != 1 || !strings.HasPrefix(got[0], tt.rule+": ") {
			t.Errorf("Violations = %q, want one of the rule %q", got, tt.rule)
		}
	}
	for _, r := range rules {
		if !tested[r.name] {
			t.Errorf("no request breaks the rule %q", r.name)
		}
	}
}
