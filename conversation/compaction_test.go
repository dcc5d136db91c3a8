package conversation

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// The agent's compaction passes through the conversation unchanged, its limit is
// the one that was recorded for the generation, and a compactor that is taken
// out in between costs the summary and nothing else (C-11.9, C-11.10, C-11.16).
func TestCompactionInAConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "otherwise\n  reply")
		s.config.Agent.Compactor, s.config.Agent.Limits.Compaction = "summarize", agent.Compaction{Messages: 8}
		compactions := 0
		s.other = []kernel.Effect{{ID: "summarize", Run: func(_ context.Context, input jsontext.Value) (any, error) {
			compactions++
			text, err := taint.SummarizerText(input)
			return map[string]string{"summary": "They said: " + text}, err
		}}}
		for i := range 5 {
			s.say(fmt.Sprint("say ", i))
			s.hear(2*i + 2)
		}
		user := func(text string) model.Message {
			return model.Message{Role: model.User, Text: taint.Fence(taint.Tainted(text, taint.OriginUser))}
		}
		said := func(text string) model.Message { return model.Message{Role: model.Assistant, Text: text} }
		sent := s.model.all()
		want := []model.Message{
			{Role: model.User, Text: taint.Fence(taint.Tainted("They said: say 0\nsay 0\nsay 1\nsay 1\nsay 2\nsay 2", taint.OriginSummary))},
			said("Understood."), user("say 3"), said("say 3"), user("say 4"),
		}
		if diff := cmp.Diff(want, sent[len(sent)-1].Messages); diff != "" || compactions != 1 {
			t.Errorf("%d compactions; the compacted request (-want +got):\n%s", compactions, diff)
		}

		s.config.Agent.Compactor, s.config.Agent.Limits, s.other = "", agent.Limits{}, nil
		s.reboot()
		s.say("say 5")
		got := s.hear(12)
		if want := "6/12 assistant complete say 5"; got[11] != want {
			t.Errorf("without a compactor the reply is %q, want %q", got[11], want)
		}
		sent = s.model.all()
		if n := len(sent[len(sent)-1].Messages); n != 11 || compactions != 1 {
			t.Errorf("%d messages after %d compactions, want all 11", n, compactions)
		}
	})
}

// C-13.10: something stands for a reply that is blank, as for one that is empty.
func TestBlankReply(t *testing.T) {
	for _, reply := range []string{"", " \n\t"} {
		if got := (Turn{Reply: reply, Status: StatusComplete}).spoken(); got != placeholderEmpty {
			t.Errorf("a turn with the reply %q is told as %q, want %q", reply, got, placeholderEmpty)
		}
	}
}
