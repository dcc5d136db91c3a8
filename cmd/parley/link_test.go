package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
)

// A connection that is lost is told once, whoever notices first, and so is that it
// is back; a person is then shown what they said elsewhere meanwhile, and its
// answer. In a pipe no more than ever goes to standard output.
func TestConnection(t *testing.T) {
	lost := client.Event{Kind: client.Lost, Err: errors.New("connection refused")}
	entry := func(turn int, role conversation.Role, text string, missed bool) client.Event {
		status := conversation.StatusAccepted
		if role == conversation.RoleAssistant {
			status = conversation.StatusComplete
		}
		record := conversation.Record{Turn: turn, Ord: 2*turn - 1, Role: role, Status: status, Text: text}
		return client.Event{Kind: client.Message, Record: record, Missed: missed}
	}
	words := client.Event{Kind: client.Delta, Words: conversation.Words{Kind: conversation.WordsDelta, Turn: 1, Text: "one "}}
	events := []client.Event{
		{Kind: client.Status},
		words, lost, lost,
		{Kind: client.Status, Resumed: true},
		entry(1, conversation.RoleAssistant, "one two", true),
		entry(2, conversation.RoleUser, "elsewhere", true), entry(2, conversation.RoleAssistant, "there", true),
		entry(3, conversation.RoleUser, "mine", true), entry(3, conversation.RoleAssistant, "here", false),
		entry(4, conversation.RoleUser, "another device", false),
	}
	play := func(interactive bool) (out, errs string) {
		var screen, said strings.Builder
		talk := &talk{terminal: console{out: &screen, err: &said}, interactive: interactive, asks: []*ask{{text: "mine", sent: true}, {text: "more", sent: true}}}
		talk.link = &link{server: "x", say: talk.note}
		if interactive {
			talk.live = &liveReply{out: &screen}
		}
		for i, event := range events {
			if err := talk.follow(heard{event: event}, true); err != nil {
				t.Fatal(err)
			}
			if i == 2 {
				talk.connection(true) // an order has noticed too
			}
		}
		return screen.String(), said.String()
	}
	notes := "parley: the connection to the server on x is lost; trying again\nparley: connected again\n"
	if out, errs := play(true); out != "one \ntwo\n   3  you: elsewhere\nthere\nhere\n" || errs != notes {
		t.Errorf("a terminal shows %q and %q", out, errs)
	}
	if out, errs := play(false); out != "one two\nthere\nhere\n" || errs != notes {
		t.Errorf("a pipe brings %q and %q", out, errs)
	}
}

// Whoever asks late hears how things are.
func TestNews(t *testing.T) {
	n := newNews()
	n.set(true)
	n.set(false)
	if <-n || len(n) > 0 {
		t.Error("the news are old")
	}
}

// C-30.13: a line of JSON means what it meant, and moves no cursor.
func TestEscaped(t *testing.T) {
	if got, want := escaped("{\"text\":\"a\\n\u009b2J \u202e é \U0001f600 \U000e0041\"}"), `{"text":"a\n\u009b2J \u202e é 😀 \udb40\udc41"}`; got != want {
		t.Errorf("escaped = %s, want %s", got, want)
	}
}
