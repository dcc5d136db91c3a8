package conversation

import (
	"context"
	"encoding/json/jsontext"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
	"github.com/parley-run/parley/tool"
	"github.com/parley-run/parley/tool/tooltest"
)

// C-10.19, C-10.20, K4: a conversation goes on whatever becomes of a set of
// tools: it is there, gone, back with another schema, and out of the
// configuration, with restarts between, and no log diverges.
func TestToolsetComesAndGoes(t *testing.T) {
	const text = "when tool \"wiki_find\"\n  call wiki_find {\"page\":\"tea\"}\nthen\n  results\notherwise\n  say \"I have no wiki\""
	stages(t, text, func(t *testing.T, s *stage) {
		set := tooltest.NewSet("wiki", kernel.Once)
		put := func(schema string) {
			compiled, err := tool.NewSchema(jsontext.Value(schema))
			if err != nil {
				t.Fatal(err)
			}
			set.Put(tool.Offer{Name: "find", Description: taint.Plain("Finds a page."), Schema: compiled},
				func(context.Context, jsontext.Value) (tool.Result, error) {
					return tool.Result{Text: "tea is a drink", Origin: taint.MCPOrigin("wiki", "find")}, nil
				})
		}
		put(`{"type":"object","required":["page"]}`)
		s.config.Agent.Toolsets = []tool.Set{set}
		s.say("one")
		s.hear(2)
		set.Clear()
		s.say("two")
		s.hear(4)
		s.reboot()
		put(`{"type":"object","properties":{"page":{"type":"integer"}}}`)
		s.say("three")
		s.hear(6)
		s.config.Agent.Toolsets = nil
		s.reboot()
		s.say("four")
		s.hear(8)
		var answers []string
		for _, record := range s.records() {
			if record.Role == RoleAssistant {
				answers = append(answers, record.Text)
			}
		}
		const (
			found  = "tea is a drink"
			misfit = "This call was not run. Its arguments do not fit the schema of the tool: validating /properties/page: type: tea has type \"string\", want \"integer\""
			none   = "I have no wiki"
		)
		if diff := cmp.Diff([]string{found, none, misfit, none}, answers); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
	})
}
