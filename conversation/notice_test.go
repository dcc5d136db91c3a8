package conversation

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/identity"
)

// A notice waits for its turn, is on record with its topic, and reaches the model
// fenced, as text of the house's, in a user's place (C-45.4 to C-45.6). A repeat is
// delivered once.
func TestNotice(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.boot()
		if _, err := p.client.Start(t.Context(), ann, "room"); err != nil {
			t.Fatal(err)
		}
		notifier := NewNotifier(p.client)
		p.say(ann, "one [slowly]")
		<-time.After(time.Second)
		for range 2 {
			if err := notifier.Notify(t.Context(), "room", Notice{ID: "n", Topic: TopicLease, Text: "The browser is free."}); err != nil {
				t.Fatal(err)
			}
		}
		p.settle()
		p.ask(ann, "two")
		p.expect(ann,
			"1 user accepted ann one [slowly]", "1 assistant complete ann re: one [slowly]",
			"2 notice accepted The browser is free.", "2 assistant complete re: The browser is free.",
			"3 user accepted ann two", "3 assistant complete ann re: two")
		requests := p.model.all()
		for _, i := range []int{1, 2} {
			if text := requests[i].Messages[2].Text; !strings.Contains(text, "parley:notice") || requests[i].Messages[2].Role != "user" {
				t.Errorf("request %d has %q where the notice stands, want it fenced as parley:notice", i+1, text)
			}
		}
		if _, err := p.client.SendTurn(t.Context(), ann, "room", Message{Text: "edited", EditOf: 3}); err != nil {
			t.Fatal(err)
		}
		p.settle()
		if seen := p.sees(ann); seen[len(seen)-1] != "0 user rejected ann edit-invalid edited" {
			t.Errorf("an edit of a notice is %q, want it rejected", seen[len(seen)-1])
		}
	})
}

// In a shared conversation a notice is for one participant, runs as them, bears the
// classes that its maker states, and is rejected when they are gone (C-45.7,
// C-45.8).
func TestSharedNotice(t *testing.T) {
	parties(t, func(t *testing.T, p *party) {
		p.open()
		p.clear(bob, "secret")
		notifier := NewNotifier(p.client)
		tell := func(text string, classes []string) {
			t.Helper()
			if err := notifier.Notify(t.Context(), "room", Notice{Topic: TopicLease, Text: text, For: &cal.Identity, Classes: classes}); err != nil {
				t.Fatal(err)
			}
			p.settle()
		}
		tell("for all", []string{})
		tell("of secrets", []string{"secret"})
		tell("of what", nil)
		p.say(ann, "[slowly]")
		<-time.After(time.Second)
		if err := notifier.Notify(t.Context(), "room", Notice{Topic: TopicLease, Text: "late", For: &cal.Identity}); err != nil {
			t.Fatal(err)
		}
		if err := p.client.RemoveParticipant(t.Context(), ann, "room", cal.Identity); err != nil {
			t.Fatal(err)
		}
		p.settle()
		p.expect(bob,
			"1 notice accepted cal for all", "1 assistant complete cal re: for all",
			"2 notice accepted cal of secrets [secret]", "2 assistant complete cal re: of secrets [secret]",
			"3 notice restricted cal", "3 assistant restricted cal",
			"4 user accepted ann [slowly]", "4 assistant complete ann re: [slowly]",
			"0 notice rejected not-a-participant")
		p.rehearse(4)
	})
}

// A notice that the host has not signed, or not for this conversation, is none
// (C-45.1, C-45.2); and whoever may not be told one gets none made.
func TestForgedNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.open()
		make := func(keys Keys, change func(*body)) {
			t.Helper()
			b := newBody(KindNotice, "room", nil, "n", now())
			b.ID = service.SenderKey("n" + time.Now().String())
			b.Text, b.Topic, b.For = "forged", TopicLease, &bob.Identity
			change(&b)
			if err := p.rt.Send(t.Context(), p.rt.System(), "room", Topic, keys.seal(b), b.ID); err != nil {
				t.Fatal(err)
			}
			p.settle()
		}
		other := p.config.Keys
		other.signing = identity.NewSecret("another key, of the forger's own..")
		make(other, func(*body) {})
		make(p.config.Keys, func(b *body) { b.ConversationID = "elsewhere" })
		make(p.config.Keys, func(b *body) { b.For = nil })
		make(p.config.Keys, func(b *body) { b.Asker = &bob.Identity })
		make(p.config.Keys, func(b *body) { b.Topic = "anything" })
		make(p.config.Keys, func(b *body) { b.Text = strings.Repeat("x", MaxNoticeChars+1) })
		make(p.config.Keys, func(b *body) { b.Classes = []string{"b", "a"} })
		make(p.config.Keys, func(b *body) { b.IssuedAt -= 8 * 24 * time.Hour.Milliseconds() })
		make(p.config.Keys, func(b *body) { b.Kind, b.For, b.Asker = KindUser, nil, &bob.Identity })
		p.expect(bob,
			"0 user rejected unauthenticated", "0 user rejected unauthenticated", "0 notice rejected unauthenticated",
			"0 user rejected bob malformed", "0 user rejected malformed", "0 user rejected malformed", "0 user rejected malformed",
			"0 notice rejected stale", "0 user rejected bob malformed")
		if n := len(p.model.all()); n != 0 {
			t.Errorf("the model was called %d times", n)
		}
	})
}

// The notifier refuses what no notice can be, before it sends anything.
func TestInvalidNotice(t *testing.T) {
	p := newParty(t)
	p.open()
	if _, err := p.client.Start(t.Context(), ann, "own"); err != nil {
		t.Fatal(err)
	}
	good := Notice{Topic: TopicLease, Text: "hello", For: &bob.Identity}
	notifier := NewNotifier(p.client)
	var got []string
	for _, c := range []struct {
		id     string
		change func(*Notice)
	}{
		{"room", func(*Notice) {}},
		{"nowhere", func(*Notice) {}},
		{"own", func(*Notice) {}},
		{"own", func(n *Notice) { n.For = nil }},
		{"room", func(n *Notice) { n.For = nil }},
		{"room", func(n *Notice) { n.Text = "" }},
		{"room", func(n *Notice) { n.Text = "\xff" }},
		{"room", func(n *Notice) { n.Text = strings.Repeat("é", MaxNoticeChars+1) }},
		{"room", func(n *Notice) { n.Topic = "" }},
		{"room", func(n *Notice) { n.Classes = []string{""} }},
		{"room", func(n *Notice) { n.Classes = []string{"b", "a", "b"} }},
		{"room", func(n *Notice) { n.ID = strings.Repeat("x", 257) }},
	} {
		notice := good
		c.change(&notice)
		code := "sent"
		if err := notifier.Notify(t.Context(), c.id, notice); err != nil {
			code = err.Error()
		}
		got = append(got, c.id+": "+code)
	}
	want := []string{
		"room: sent", "nowhere: conversation not found", "own: invalid notice", "own: sent", "room: invalid notice", "room: invalid notice",
		"room: invalid notice", "room: invalid notice", "room: invalid notice", "room: invalid notice", "room: sent", "room: invalid notice",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Notify:\n%s", diff)
	}
}
