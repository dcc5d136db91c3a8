package agent

import (
	"encoding/json/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// C-10.4 to C-10.6: what each field adds to the request, byte for byte, and that
// none adds anything but its own.
func TestRequestBytesOfEachField(t *testing.T) {
	const plain = `"messages":[{"role":"user","text":"hi"}]}`
	quoted := func(text taint.Text) string {
		data, err := json.Marshal(taint.Fence(text))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, test := range []struct {
		name string
		req  Request
		want string // the messages
	}{
		{"none", Request{}, plain},
		{"LoopID", Request{LoopID: "other"}, plain},
		{
			"History",
			Request{History: []Message{{Role: model.User, Text: taint.Plain("a")}, NewMessage(model.Assistant, taint.Plain("b"))}},
			`"messages":[{"role":"user","text":"a"},{"role":"assistant","text":"b"},{"role":"user","text":"hi"}]}`,
		},
		{
			"History with an origin",
			Request{History: []Message{NewMessage(model.User, taint.Tainted("a", taint.OriginNotice)), {Role: model.Assistant, Text: taint.Plain("b")}}},
			`"messages":[{"role":"user","text":` + quoted(taint.Tainted("a", taint.OriginNotice)) +
				`},{"role":"assistant","text":"b"},{"role":"user","text":"hi"}]}`,
		},
		{
			"PromptOrigin",
			Request{PromptOrigin: taint.OriginUser},
			`"messages":[{"role":"user","text":` + quoted(taint.Tainted("hi", taint.OriginUser)) + `}]}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, plays(t, "otherwise\n  say \"hello\""))
				test.req.Prompt = "hi"
				l.def.ID = "plain"
				l.wait(l.start(job{Request: test.req}))
				data, err := json.Marshal(l.model.sent()[0])
				if err != nil {
					t.Fatal(err)
				}
				system := `{"system":"Be brief.",`
				if strings.Contains(test.want, "untrusted") {
					system = `{"system":"Be brief.\n\n` + strings.ReplaceAll(taint.Explanation, `"`, `\"`) + `",`
				}
				if got := string(data); got != system+test.want {
					t.Errorf("request\n got %s\nwant %s", got, system+test.want)
				}
				if n := len(l.facts("run1")); n != 5 {
					t.Errorf("%d facts, want start, checkpoint, request, result and end: %q", n, l.facts("run1"))
				}
			})
		})
	}
}

// A history that is not as a request has to be is told as well as it can be
// (C-9.6, T69): two questions in a row, an answer first, a blank answer.
func TestUnevenHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, plays(t, "otherwise\n  say \"hello\""))
		said := func(role model.Role, text string) Message { return Message{Role: role, Text: taint.Plain(text)} }
		l.wait(l.start(job{Request: Request{Prompt: "d", History: []Message{
			said(model.Assistant, "a"), said(model.User, "b"), said(model.Assistant, " \n"), said(model.User, "c"),
		}}}))
		data, _ := json.Marshal(l.model.sent()[0].Messages)
		want := `[{"role":"user","text":"(no message)"},{"role":"assistant","text":"a"},{"role":"user","text":"b\n\nc\n\nd"}]`
		if string(data) != want {
			t.Errorf("messages\n got %s\nwant %s", data, want)
		}
	})
}
