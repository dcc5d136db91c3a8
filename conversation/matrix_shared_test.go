package conversation_test

import (
	"context"
	"slices"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

var (
	yan = &identity.Principal{Identity: identity.Identity{Tenant: identity.Some("acme"), Actor: "yan"}}
	xia = &identity.Principal{Identity: identity.Identity{Tenant: identity.Some("acme"), Actor: "xia"}}
	wim = &identity.Principal{Identity: identity.Identity{Tenant: identity.Some("acme"), Actor: "wim"}}
)

// sharing makes the conversations of a plan shared ones: yan is cleared for all that
// there is, xia for nothing.
func sharing(p plan, store journal.Store) *conversation.Shared {
	if !p.shared {
		return nil
	}
	return &conversation.Shared{
		Service:      identity.Identity{Actor: "parley:service"},
		Participants: conversation.LogParticipants(store),
		Cleared: func(_ context.Context, who identity.Identity, _ []string) (bool, error) {
			return who == yan.Identity, nil
		},
		ClassOf: func(tool string) ([]string, bool) { return []string{tool}, tool == "act" },
	}
}

// among is a dialogue of three people: tools that bring classes, one that fails,
// interruptions and stops of one's own and of others', edits, somebody who leaves, and
// a close.
func among() plan {
	return plan{
		script: `when has "long"
  words "I was going to say" 1s
  forever "." 30s
when has "tools"
  say "Wait. "
  call look {}
  call act {"n": 1}
then
  results
when has "fail"
  fail refused "no"
otherwise
  reply`,
		shared: true, once: true, bargeIn: true,
		say: func(h *house) {
			h.invite(yan, xia, wim)
			h.as(wim).ask("1", "hello")
			h.as(zoe).ask("2", "use your tools")
			h.as(yan).ask("3", "what was that")
			h.as(xia).send("4", "a long story")
			h.as(zoe).cutIn("5", "this waits")
			h.as(xia).cutIn("6", "enough")
			h.settle()
			h.dismiss(wim)
			h.as(yan).edit("7", 5, "what was it")
			h.settle()
			h.as(yan).edit("8", 1, "an edit of somebody else's")
			h.settle()
			h.as(xia).ask("9", "fail")
			h.as(yan).send("10", "a long one")
			h.as(xia).stop(9)
			h.as(zoe).stop(9)
			h.as(xia).ask("11", "bye")
			h.as(zoe).close()
		},
	}
}

// as lets somebody speak.
func (h *house) as(who *identity.Principal) *house {
	h.speaker = who
	return h
}

func (h *house) invite(people ...*identity.Principal) {
	h.t.Helper()
	for _, who := range people {
		if err := h.client.AddParticipant(h.t.Context(), zoe, "talk", who.Identity); err != nil && !(h.tolerant && gaveUp(err)) {
			h.t.Fatalf("AddParticipant: %v", err)
		}
	}
}

func (h *house) dismiss(who *identity.Principal) {
	h.t.Helper()
	if err := h.client.RemoveParticipant(h.t.Context(), zoe, "talk", who.Identity); err != nil && !(h.tolerant && gaveUp(err)) {
		h.t.Fatalf("RemoveParticipant: %v", err)
	}
}

// views is what the others see.
func (h *house) views() (views [][]string) {
	h.t.Helper()
	if !h.shared {
		return nil
	}
	for _, who := range []*identity.Principal{yan, xia, wim} {
		views = append(views, h.seenBy(who))
	}
	return views
}

// besideTalk names the streams of a conversation that are not its log: the inbox,
// and of a shared one who takes part and the executions of the turns.
func (h *house) besideTalk() []string {
	h.t.Helper()
	streams := []string{kernel.InboxStream("talk")}
	if !h.shared {
		return streams
	}
	streams = append(streams, conversation.ParticipantsPrefix+"talk")
	for _, who := range []*identity.Principal{zoe, yan, xia} { // each is told of their own
		page, err := h.client.History(h.t.Context(), who, "talk", conversation.HistoryOptions{Limit: conversation.MaxPage})
		if err != nil {
			h.t.Fatal(err)
		}
		for _, r := range page.Entries {
			if r.TurnExecutionID != "" {
				streams = append(streams, r.TurnExecutionID)
			}
		}
	}
	slices.Sort(streams)
	return streams
}
