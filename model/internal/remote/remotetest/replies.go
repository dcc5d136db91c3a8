package remotetest

import (
	"encoding/json/jsontext"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/modeltest"
)

// suite runs the suite of every model against a service that answers well.
func (d Dialect) suite(t *testing.T) {
	tool := model.Tool{Name: "look", Description: "Looks.", Schema: jsontext.Value(`{"type":"object"}`)}
	modeltest.Run(t, func(t *testing.T) model.Model {
		return d.serve(t, Config{}, func(w http.ResponseWriter, req *http.Request) {
			body := make([]byte, 4096)
			n, _ := req.Body.Read(body)
			if strings.Contains(string(body[:n]), "look") {
				send(w, d.Begin, d.Call("1", "look", `"{}"`), d.End(model.FinishCalls))
				return
			}
			send(w, d.Begin, d.Text(`"Good "`), d.Text(`"day "`), d.Text(`"to you."`), d.End(model.FinishStop))
		}).model
	}, modeltest.Config{
		Calling:       model.Request{Messages: request().Messages, Tools: []model.Tool{tool}},
		Deterministic: true,
	})
}

// replies reads whole replies of each kind.
func (d Dialect) replies(t *testing.T) {
	usage := model.Usage{InputTokens: 3, OutputTokens: 5}
	call := func(id, args string) model.Call { return model.Call{ID: id, Name: "look", Args: jsontext.Value(args)} }
	for _, tt := range []struct {
		name   string
		events []string
		want   model.Reply
	}{
		{
			"text",
			[]string{d.Text(`"Good "`), d.Text(`"day."`), d.End(model.FinishStop)},
			model.Reply{Text: "Good day.", Reason: model.FinishStop, Usage: usage},
		},
		{
			"thoughts are not text",
			[]string{d.Think, d.Text(`"Yes."`), d.End(model.FinishStop)},
			model.Reply{Text: "Yes.", Reason: model.FinishStop, Usage: usage},
		},
		{"nothing", []string{d.End(model.FinishStop)}, model.Reply{Reason: model.FinishStop, Usage: usage}},
		{
			"the limit of tokens",
			[]string{d.Text(`"Good"`), d.End(model.FinishLength)},
			model.Reply{Text: "Good", Reason: model.FinishLength, Usage: usage},
		},
		{
			"the filter",
			[]string{d.Text(`"Good"`), d.End(model.FinishFiltered)},
			model.Reply{Text: "Good", Reason: model.FinishFiltered, Usage: usage},
		},
		{
			"calls behind a text",
			[]string{d.Text(`"Wait."`), d.Call("a", "look", `"{\"at\": "`, `"[1]}"`), d.Call("b", "look"), d.End(model.FinishCalls)},
			model.Reply{
				Text: "Wait.", Reason: model.FinishCalls, Usage: usage,
				Calls: []model.Call{call("a", `{"at": [1]}`), call("b", `{}`)},
			},
		},
		{
			"T60: words on both sides of a call",
			[]string{d.Text(`"Wait."`), d.Call("a", "look", `"{}"`), d.Text(`"I "`), d.Text(`"look."`), d.End(model.FinishCalls)},
			model.Reply{Text: "Wait.\n\nI look.", Reason: model.FinishCalls, Usage: usage, Calls: []model.Call{call("a", `{}`)}},
		},
		{
			"calls without an end mark of their own",
			[]string{d.Call("a", "look", `"{}"`), d.End(model.FinishStop)},
			model.Reply{Reason: model.FinishCalls, Usage: usage, Calls: []model.Call{call("a", `{}`)}},
		},
		{
			"two calls of one id",
			[]string{d.Call("a", "look", `"{}"`), d.Call("a", "look", `"{}"`), d.End(model.FinishCalls)},
			model.Reply{Reason: model.FinishCalls, Usage: usage, Calls: []model.Call{call("a", `{}`), call("call-2", `{}`)}},
		},
		{
			"half a call at the limit of tokens",
			[]string{d.Text(`"Wait."`), d.Call("a", "look", `"{\"at\": "`), d.End(model.FinishLength)},
			model.Reply{Text: "Wait.", Reason: model.FinishLength, Usage: usage},
		},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			s := d.serve(t, Config{}, stream(append([]string{d.Begin}, tt.events...)...))
			got, _, err := s.ask(t)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("reply, %v: -want +got\n%s", err, diff)
			}
		})
	}
}

// splits sends characters in halves (SSE-41): they come out whole.
func (d Dialect) splits(t *testing.T) {
	for _, tt := range []struct {
		name string
		raws []string
		want []string
	}{
		{"between the bytes", []string{"\"a\xf0\x9f\"", "\"\x99\x82b\""}, []string{"a", "🙂b"}},
		{"byte by byte", []string{"\"\xf0\"", "\"\x9f\"", "\"\x99\"", "\"\x82\""}, []string{"🙂"}},
		{"between the surrogates", []string{`"a\ud83d"`, `"\ude42b"`}, []string{"a", "🙂b"}},
		{"in one delta", []string{`"\ud83d\ude42"`, `"\uD83D\uDE42"`, `"🙂"`}, []string{"🙂", "🙂", "🙂"}},
		{"a half alone", []string{"\"a\xf0\x9f\"", `"b"`, `"\ud83d"`, `"c"`, `"\ude42"`}, []string{"a", "\ufffdb", "\ufffdc", "\ufffd"}},
		{"a half at the end", []string{`"a"`, "\"\xe2\x82\""}, []string{"a", "\ufffd"}},
		{"an escaped backslash", []string{`"\\ud83d"`, `"\\ude42\n\u00e9"`}, []string{`\ud83d`, "\\ude42\né"}},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			events := []string{d.Begin}
			for _, raw := range tt.raws {
				events = append(events, d.Text(raw))
			}
			s := d.serve(t, Config{}, stream(append(events, d.End(model.FinishStop))...))
			_, got, err := s.ask(t)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("deltas, %v: -want +got\n%s", err, diff)
			}
		})
	}
	bubble(t, "in arguments", func(t *testing.T) {
		s := d.serve(t, Config{}, stream(d.Begin, d.Call("a", "look", "\"{\\\"at\\\": \\\"\xf0\x9f\"", "\"\x99\x82\\\"}\""), d.End(model.FinishCalls)))
		got, _, err := s.ask(t)
		if err != nil || len(got.Calls) != 1 || string(got.Calls[0].Args) != `{"at": "🙂"}` {
			t.Errorf("calls = %s, %v, want the emoji whole", got.Calls, err)
		}
	})
	bubble(t, "by the network", func(t *testing.T) {
		all := strings.Join([]string{d.Begin, d.Text(`"a🙂b\ud83d\ude42"`), d.End(model.FinishStop)}, "")
		bytes := make([]string, len(all))
		for i := range len(all) {
			bytes[i] = all[i : i+1]
		}
		got, _, err := d.serve(t, Config{}, stream(bytes...)).ask(t)
		if err != nil || got.Text != "a🙂b🙂" {
			t.Errorf("reply = %q, %v, want the emoji whole", got.Text, err)
		}
	})
}
