package model_test

import (
	"encoding/json/jsontext"
	"errors"
	"strings"
	"testing"

	"github.com/parley-run/parley/model"
)

// TestValidate holds each rule of C-9.6 and of the types' comments.
func TestValidate(t *testing.T) {
	user := func(text string, results ...model.Result) model.Message {
		return model.Message{Role: model.User, Text: text, Results: results}
	}
	assistant := func(text string, calls ...model.Call) model.Message {
		return model.Message{Role: model.Assistant, Text: text, Calls: calls}
	}
	call := func(id, args string) model.Call { return model.Call{ID: id, Name: "look", Args: jsontext.Value(args)} }
	result := func(id string) model.Result { return model.Result{CallID: id, Name: "look", Text: "secret"} }
	tool := func(name, schema string) model.Tool { return model.Tool{Name: name, Schema: jsontext.Value(schema)} }
	for _, tt := range []struct {
		name string
		req  model.Request
		want string // "" for a good one
	}{
		{"one message", model.Request{Messages: []model.Message{user("secret")}}, ""},
		{"a turn with tools", model.Request{
			Messages: []model.Message{user("a"), assistant("", call("1", "{}"), call("2", "{}")), user("", result("2"), result("1"))},
			Tools:    []model.Tool{tool("look", `{"type":"object"}`), tool("see", `{}`)},
		}, ""},
		{"a text beside results", model.Request{Messages: []model.Message{user("a"), assistant("b", call("1", "{}")), user("c", result("1"))}}, ""},
		{"no message", model.Request{}, "does not end with a user message"},
		{"assistant last", model.Request{Messages: []model.Message{user("a"), assistant("secret")}}, "does not end with a user message"},
		{"assistant first", model.Request{Messages: []model.Message{assistant("secret"), user("a")}}, `message 0 has role "assistant"`},
		{"two of one role", model.Request{Messages: []model.Message{user("a"), user("secret")}}, `message 1 has role "user"`},
		{"an unknown role", model.Request{Messages: []model.Message{user("a"), {Role: "system", Text: "secret"}, user("a")}}, `message 1 has role "system"`},
		{"an empty message", model.Request{Messages: []model.Message{user("a"), assistant(""), user("b")}}, "message 1 (assistant): the message is empty"},
		{"invalid UTF-8", model.Request{Messages: []model.Message{user("secret\xff")}}, "not valid UTF-8"},
		{"invalid UTF-8 in the system prompt", model.Request{System: "\xff", Messages: []model.Message{user("a")}}, "not valid UTF-8"},
		{"calls of a user", model.Request{Messages: []model.Message{{Role: model.User, Calls: []model.Call{call("1", "{}")}}}}, "wrong role"},
		{"an unanswered call", model.Request{Messages: []model.Message{user("a"), assistant("", call("1", "{}")), user("b")}}, "0 results for 1 calls"},
		{"an answer without call", model.Request{Messages: []model.Message{user("a", result("1"))}}, "1 results for 0 calls"},
		{"another's answer", model.Request{Messages: []model.Message{user("a"), assistant("", call("1", "{}")), user("", result("2"))}}, "answers no call"},
		{"one answered twice", model.Request{Messages: []model.Message{
			user("a"), assistant("", call("1", "{}"), call("2", "{}")), user("", result("1"), result("1")),
		}}, "answers no call"},
		{"one id twice", model.Request{Messages: []model.Message{
			user("a"), assistant("", call("1", "{}"), call("1", "{}")), user("", result("1"), result("1")),
		}}, "no id of its own"},
		{"arguments", model.Request{Messages: []model.Message{user("a"), assistant("", call("1", `["secret"]`)), user("", result("1"))}}, "no JSON object"},
		{"one tool twice", model.Request{Messages: []model.Message{user("a")}, Tools: []model.Tool{tool("t", "{}"), tool("t", "{}")}}, "no name of its own"},
		{"no schema", model.Request{Messages: []model.Message{user("a")}, Tools: []model.Tool{tool("t", "")}}, "no JSON object"},
	} {
		err := tt.req.Validate()
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v, want no error", tt.name, err)
		case tt.want != "" && (!errors.Is(err, model.ErrRefused) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want ErrRefused with %q", tt.name, err, tt.want)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: the error %q repeats a text", tt.name, err)
		}
	}
}
