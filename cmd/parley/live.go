package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/parley-run/parley/cmd/parley/printable"
	"github.com/parley-run/parley/conversation"
)

// liveReply prints replies while they are made. What the stream tells is a
// foretaste: the record of the turn completes it, or takes its place. A nil one
// shows nothing, and leaves the whole text to the record: those who read a pipe
// rely on that.
type liveReply struct {
	out     io.Writer
	turn    int
	shown   strings.Builder // of the turn's text, as it came
	held    bool            // a carriage return is kept back: it may be half of a line break
	blind   bool            // words are missing, so that nothing more is shown before the record
	midline bool            // the cursor stands behind something that was printed here
}

// marks say what became of a reply. The first two stand on a line of their own,
// where what was shown is void.
const (
	markAgain       = "[the answer begins again]"
	markWhole       = "[the whole answer]"
	markInterrupted = "[interrupted]"
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
	l.write(printable.Lines(text))
}

// write puts a text on the screen and remembers where it ends.
func (l *liveReply) write(text string) {
	if text == "" {
		return
	}
	fmt.Fprint(l.out, text)
	l.midline = !strings.HasSuffix(text, "\n")
}

// entered says that the person has ended a line, so that the cursor stands at the
// beginning of the next one.
func (l *liveReply) entered() {
	if l != nil {
		l.midline = false
	}
}

// freshLine goes to the beginning of a line.
func (l *liveReply) freshLine() {
	if l != nil && l.midline {
		l.write("\n")
	}
}

// void ends what was shown with a mark. Where nothing was shown nothing is void.
func (l *liveReply) void(mark string) {
	if l.shown.Len() > 0 {
		l.freshLine()
		l.write(mark + "\n")
	}
	l.shown.Reset()
	l.held, l.blind = false, false
}

// leave ends the line of a reply that does not go on.
func (l *liveReply) leave() {
	if l == nil {
		return
	}
	l.freshLine()
	l.forget()
}

// forget makes room for the next reply.
func (l *liveReply) forget() {
	l.shown.Reset()
	l.turn, l.held, l.blind = 0, false, false
}

// finish prints what is left of a record, all of it where nothing of it was
// shown, and ends its last line. A reply that was cut says so (T40, T65): what
// comes next is never taken for the rest of it.
func (l *liveReply) finish(record conversation.Record) {
	if record.Turn != l.turn {
		l.leave()
	}
	rest, ok := strings.CutPrefix(record.Text, l.shown.String())
	if !ok {
		l.void(markWhole)
		rest = record.Text
	}
	l.write(printable.Lines(rest))
	if record.Status == conversation.StatusInterrupted {
		if l.midline {
			l.write(" ")
		}
		l.write(markInterrupted)
	}
	if l.midline || record.Text == "" {
		l.write("\n")
	}
	l.forget()
}
