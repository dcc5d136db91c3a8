package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/parley-run/parley/conversation"
)

// liveReply prints replies while they are made. What the stream tells is a
// foretaste: the record of the turn completes it, or takes its place. A nil one
// shows nothing, and leaves the whole text to the record: those who read a pipe
// rely on that.
type liveReply struct {
	out   io.Writer
	turn  int
	shown strings.Builder // of the turn's text, as it came
	held  bool            // a carriage return is kept back: it may be half of a line break
	blind bool            // words are missing, so that nothing more is shown before the record
}

// marks that stand on a line of their own where what was shown is void.
const (
	markAgain = "[the answer begins again]"
	markWhole = "[the whole answer]"
)

// show prints words as they come.
func (l *liveReply) show(words conversation.Words) {
	if l == nil {
		return
	}
	if words.Turn != l.turn {
		l.leave()
		l.turn = words.Turn
	}
	text := words.Text
	switch words.Kind {
	case conversation.WordsReset:
		l.void(markAgain)
		return
	case conversation.WordsPartial:
		rest, ok := strings.CutPrefix(text, l.shown.String())
		if words.Truncated {
			l.blind = true
			return
		}
		l.held, l.blind = false, false
		if ok {
			text = rest
		} else {
			l.void(markAgain)
		}
	}
	l.print(text)
}

// print shows a text behind what was shown.
func (l *liveReply) print(text string) {
	if l.blind || text == "" {
		return
	}
	if l.held {
		text = "\r" + text
	}
	text, l.held = strings.CutSuffix(text, "\r")
	l.shown.WriteString(text)
	fmt.Fprint(l.out, printableLines(text))
}

// void ends what was shown with a mark. Where nothing was shown nothing is void.
func (l *liveReply) void(mark string) {
	if l.shown.Len() > 0 {
		fmt.Fprintf(l.out, "\n%s\n", mark)
	}
	l.shown.Reset()
	l.held, l.blind = false, false
}

// leave ends the line of a reply that does not go on.
func (l *liveReply) leave() {
	if l == nil {
		return
	}
	if l.shown.Len() > 0 {
		fmt.Fprintln(l.out)
	}
	l.shown.Reset()
	l.turn, l.held, l.blind = 0, false, false
}

// rest is what is left to print of a record: all of it, where nothing of it was
// shown.
func (l *liveReply) rest(record conversation.Record) string {
	if l == nil {
		return printableLines(record.Text)
	}
	if record.Turn != l.turn {
		l.leave()
	}
	rest, ok := strings.CutPrefix(record.Text, l.shown.String())
	if !ok {
		l.void(markWhole)
		rest = record.Text
	}
	l.shown.Reset()
	l.turn, l.held, l.blind = 0, false, false
	return printableLines(rest)
}
