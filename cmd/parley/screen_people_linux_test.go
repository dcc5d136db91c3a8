package main

import (
	"strings"
	"testing"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/server/datadir"
)

// C-33, C-37.9, C-39, T87: on a screen a person starts a shared thread and lets somebody
// in; while the other is answered the person sees no words of it and waits at a place,
// and who owns the conversation may end the other's answer.
func TestScreenPeople(t *testing.T) {
	t.Parallel()
	data, _ := served(t, tireless)
	dir, err := datadir.Existing(data)
	if err != nil {
		t.Fatal(err)
	}
	_, secret, err := dir.CreateToken(t.Context(), identity.Identity{Actor: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	address, err := awaitServer(data)
	if err != nil {
		t.Fatal(err)
	}
	ann, err := client.New(address, secret.Reveal(), nil)
	if err != nil {
		t.Fatal(err)
	}

	m := sitBefore(t, 70, 20, nil, "--data", data)
	m.sees("parley · ", "Enter sends")
	m.types("/people" + keyEnter)
	m.sees("/share starts a thread")
	m.types("\x15/share" + keyEnter)
	m.sees("parley · + new, ", "Enter sends")
	m.types("/add ann" + keyEnter)
	m.sees("ann takes part now")
	m.types("/people" + keyEnter)
	m.sees("2 people take part:", "me (you), whose conversation it is\nann\n")
	m.types(keyEsc)

	list, err := ann.List(t.Context(), "", 0)
	if err != nil || len(list.Conversations) != 1 {
		t.Fatalf("ann's conversations are %+v, %v", list, err)
	}
	if _, err := ann.Send(t.Context(), list.Conversations[0].ID, conversation.Message{Text: "a long one"}); err != nil {
		t.Fatal(err)
	}
	m.sees("ann  ", "#1\na long one\n", "ann is being answered · Esc stops it")
	m.types("my own" + keyEnter)
	if screen := m.sees("you  1st in line\nmy own\n"); strings.Contains(screen, "so so") {
		t.Errorf("words of ann's answer are on another's screen:\n%s", screen)
	}
	m.types(keyEsc)
	m.sees("[interrupted]", "you  ", "my own\n", "said: my own\n")
	m.types(keyCtrlC)
	m.ends(0)
}
