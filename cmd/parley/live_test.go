package main

import (
	"strings"
	"testing"

	"github.com/parley-run/parley/conversation"
)

// entered is a line that the person ends.
type entered struct{}

// On a terminal words come as they are said, a reply that begins again is
// marked, and the record completes what was not shown; nothing that a terminal
// would act on gets there (C-30.13), T37, T40. An answer that was cut is marked, so
// that nothing is taken for the rest of it (T65).
func TestLiveReply(t *testing.T) {
	delta := func(text string) any { return conversation.Words{Kind: conversation.WordsDelta, Turn: 1, Text: text} }
	partial := func(text string) any { return conversation.Words{Kind: conversation.WordsPartial, Turn: 1, Text: text} }
	cut := func(text string) any {
		return conversation.Words{Kind: conversation.WordsPartial, Turn: 1, Text: text, Truncated: true}
	}
	reset := conversation.Words{Kind: conversation.WordsReset, Turn: 1}
	reply := func(text string) any {
		return conversation.Record{Turn: 1, Role: conversation.RoleAssistant, Status: conversation.StatusComplete, Text: text}
	}
	cutOff := func(text string) any {
		return conversation.Record{Turn: 1, Role: conversation.RoleAssistant, Status: conversation.StatusInterrupted, Text: text}
	}
	failed := conversation.Record{
		Turn: 1, Role: conversation.RoleAssistant, Status: conversation.StatusFailed,
		Text: "one", Reason: conversation.ReasonModelError, ErrorID: "x1",
	}
	tests := map[string]struct {
		events []any
		want   string
	}{
		"all of it came":                  {[]any{delta("one "), delta("two"), reply("one two")}, "one |two|\n"},
		"the end did not":                 {[]any{delta("one "), reply("one two")}, "one |two\n"},
		"nothing did":                     {[]any{reply("one two")}, "one two\n"},
		"from the middle":                 {[]any{partial("one "), delta("two"), reply("one two")}, "one |two|\n"},
		"a lost connection":               {[]any{delta("one "), partial("one two"), delta(" three"), reply("one two three")}, "one |two| three|\n"},
		"a lost connection, reset":        {[]any{delta("one "), partial("eins "), reply("eins zwei")}, "one |\n[the answer begins again]\neins |zwei\n"},
		"again":                           {[]any{delta("one "), reset, delta("eins"), reply("eins zwei")}, "one |\n[the answer begins again]\n|eins| zwei\n"},
		"again, before the first":         {[]any{reset, delta("eins"), reply("eins")}, "|eins|\n"},
		"again, nothing more":             {[]any{delta("one "), reset, reply("eins")}, "one |\n[the answer begins again]\n|eins\n"},
		"a record of its own":             {[]any{delta("one "), reply("eins")}, "one |\n[the whole answer]\neins\n"},
		"too long for a partial":          {[]any{cut("two "), delta("three"), reply("one two three")}, "||one two three\n"},
		"too long after words":            {[]any{delta("one "), cut("ree "), delta("four"), reply("one two three four")}, "one |||two three four\n"},
		"too long, and again":             {[]any{cut("two "), reset, delta("eins"), reply("eins")}, "||eins|\n"},
		"failed":                          {[]any{delta("one"), failed}, "one|\n"},
		"control characters":              {[]any{delta("\x1b[2J"), delta("\x07"), reply("\x1b[2J\x07")}, "\uFFFD[2J|\uFFFD|\n"},
		"a line break in two":             {[]any{delta("a\r"), delta("\nb"), reply("a\r\nb")}, "a|\nb|\n"},
		"a line break in the record":      {[]any{delta("a\r"), reply("a\r\nb")}, "a|\nb\n"},
		"a line break in a partial":       {[]any{delta("a\r"), partial("a\r\nb"), reply("a\r\nb")}, "a|\nb|\n"},
		"a carriage return":               {[]any{delta("a\r"), delta("b"), reply("a\rb")}, "a| b|\n"},
		"interrupted":                     {[]any{delta("one "), delta("tw"), cutOff("one tw")}, "one |tw| [interrupted]\n"},
		"interrupted, not all came":       {[]any{delta("one "), cutOff("one tw")}, "one |tw [interrupted]\n"},
		"interrupted before a word":       {[]any{cutOff("")}, "[interrupted]\n"},
		"interrupted, none of it came":    {[]any{cutOff("one")}, "one [interrupted]\n"},
		"interrupted by a line":           {[]any{delta("one "), entered{}, cutOff("one ")}, "one ||[interrupted]\n"},
		"a line, and more before the cut": {[]any{delta("one "), entered{}, delta("two"), cutOff("one two")}, "one ||two| [interrupted]\n"},
		"a line that interrupts nothing":  {[]any{delta("one "), entered{}, delta("two"), reply("one two")}, "one ||two|\n"},
		"a line behind the last word":     {[]any{delta("one"), entered{}, reply("one")}, "one||"},
		"no words":                        {[]any{reply("")}, "\n"},
		"a line break at the end":         {[]any{delta("one\n"), reply("one\n")}, "one\n|"},
		"of an earlier turn": {[]any{
			conversation.Words{Kind: conversation.WordsDelta, Turn: 0, Text: "old"}, delta("new"), reply("new"),
		}, "old|\nnew|\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errs strings.Builder
			mine := &ask{turn: 1}
			talk := &talk{terminal: console{out: &out, err: &errs}, live: &liveReply{out: &out}, asks: []*ask{mine}}
			for i, event := range tt.events {
				if i > 0 {
					out.WriteString("|")
				}
				switch event := event.(type) {
				case conversation.Words:
					talk.live.show(event)
				case conversation.Record:
					if talk.hear(event); len(talk.asks) > 0 {
						t.Error("the record does not answer")
					}
				case entered:
					talk.live.entered()
				}
			}
			if out.String() != tt.want {
				t.Errorf("shown %q, want %q", out.String(), tt.want)
			}
			if talk.live.shown.Len() > 0 || talk.live.turn != 0 {
				t.Error("something is left for the next turn")
			}
		})
	}
}
