package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-run/parley/conversation"
)

// chatHelp is what /help says.
const chatHelp = `/stop            ends the answer that is being written, as Ctrl-C does
/edit ORD TEXT   says TEXT in place of your message ORD
/history [N]     shows the last N entries, each with its ORD; 10 unless said
/people          lists who takes part
/add NAME        lets somebody of your tenant take part; /remove NAME ends it
/help            shows this
//TEXT           says a text that begins with a slash
A line that you type while an answer is written interrupts it. Ctrl-D ends the talk.
`

// entriesShown is how many entries /history shows unless it is told.
const entriesShown = 10

// command does what a line that begins with a slash asks for. An error repeats
// nothing of the line: it may have been meant for the agent alone.
func (t *talk) command(line string) {
	name, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch {
	case name == "/help" && rest == "":
		t.live.freshLine()
		fmt.Fprint(t.terminal.out, chatHelp)
	case name == "/stop" && rest == "":
		t.halt()
	case name == "/edit":
		t.edit(rest)
	case name == "/people" || name == "/add" || name == "/remove":
		t.people(name, rest)
	case name == "/history":
		t.history(rest)
	default:
		t.mistake("this is no command; /help lists them, and a text that begins with a slash is sent with two: //")
	}
}

// mistake says what is wrong with a line. A person tries again; a pipe cannot, and
// the line counts as one without an answer.
func (t *talk) mistake(text string) {
	if t.interactive {
		t.note("%s", text)
		return
	}
	t.asked++
	t.fail("%s", text)
}

// edit says something in place of an earlier message (C-27).
func (t *talk) edit(rest string) {
	number, text, _ := strings.Cut(rest, " ")
	ord, err := strconv.Atoi(number)
	if text = strings.TrimSpace(text); err != nil || ord <= 0 || text == "" {
		t.mistake("an edit is /edit ORD TEXT; /history shows the ORD of each message")
		return
	}
	t.say(conversation.Message{Text: text, EditOf: ord})
}

// halt ends the answer that is being written (C-46). Where nothing of ours awaits
// one it may still be that one is written, for another device of the person's.
func (t *talk) halt() {
	if len(t.asks) > 0 {
		if a := t.asks[0]; a.turn > 0 {
			t.stopTurn(a.turn)
		} else {
			a.stop = true
		}
		return
	}
	var running conversation.Record
	t.want(order{
		do: persistent(func(ctx context.Context) (err error) {
			_, running, err = survey(ctx, t.server, t.id)
			return err
		}),
		done: func(err error) error {
			switch {
			case err != nil:
				return err
			case running.Turn == 0:
				t.note("no answer is being written")
				return nil
			}
			if t.readers.mine(running) {
				t.await(&ask{turn: running.Turn, sent: true})
			}
			t.stopTurn(running.Turn)
			return nil
		},
	})
}

// stopTurn asks the server to end a turn.
func (t *talk) stopTurn(turn int) {
	t.want(order{
		do: persistent(func(ctx context.Context) error { return t.server.Stop(ctx, t.id, turn) }),
		done: func(err error) error {
			if errors.Is(err, conversation.ErrForbidden) {
				t.note("not stopped: it is somebody else's answer")
				return nil
			}
			return err
		},
	})
}

// history shows what was said last, the oldest first.
func (t *talk) history(rest string) {
	n, err := strconv.Atoi(rest)
	if rest == "" {
		n, err = entriesShown, nil
	}
	if err != nil || n <= 0 || n > conversation.MaxPage {
		t.mistake(fmt.Sprintf("a history is /history N, with N from 1 to %d", conversation.MaxPage))
		return
	}
	var entries []conversation.Record
	t.want(order{
		do: persistent(func(ctx context.Context) (err error) {
			entries, err = lastEntries(ctx, t.server, t.id, n)
			return err
		}),
		done: func(err error) error {
			t.live.freshLine()
			for i := len(entries) - 1; err == nil && i >= 0; i-- {
				writeEntry(t.terminal.out, entries[i], t.readers)
			}
			return err
		},
	})
}
