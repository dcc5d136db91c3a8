package conversation_test

import (
	"fmt"

	"github.com/parley-run/parley/conversation"
)

// plans are the dialogues of the matrix, each also with a rotation at every
// envelope.
func plans() map[string]plan {
	all := dialogues()
	for name, p := range dialogues() {
		if p.settings.RotateEveryTurns == 0 {
			p.settings.RotateEveryTurns = 1
			all[name+" rotating"] = p
		}
	}
	return all
}

func dialogues() map[string]plan {
	return map[string]plan{
		"a budget with summaries": budgeted(),
		"several people":          among(),
		"interruptions": {
			script: `when has "long"
  words "I was going to say" 1s
  forever "." 30s
otherwise
  reply`,
			bargeIn: true,
			say: func(h *house) {
				h.send("1", "a long story")
				h.cutIn("2", "another long story")
				h.cutIn("3", "short")
				h.settle()
				h.send("4", "a long story again")
				h.cutIn("4", "a long story again") // a retry
				h.cutIn("5", "enough")
			},
		},
		"interruptions of tools": {
			script: `when has "tools"
  say "Wait."
  call look {}
  call act {"n": 1}
then
  say " So:"
  forever "." 30s
otherwise
  reply`,
			once: true, bargeIn: true,
			say: func(h *house) {
				h.send("1", "use your tools")
				h.cutIn("2", "no")
				h.settle()
				h.send("3", "tools again")
				h.settle()
				h.cutIn("4", "thanks")
			},
		},
		"stops and edits": {
			script: `when has "long"
  say "Once upon"
  forever "." 30s
when has "typo"
  call act {}
then
  say "What?"
otherwise
  reply`,
			once: true, bargeIn: true,
			say: func(h *house) {
				h.send("1", "a long story")
				h.stop(1)
				h.ask("2", "a typo")
				h.edit("3", 3, "no tpyo")
				h.settle()
				h.edit("4", 99, "an edit of nothing")
				h.edit("5", 5, "a long edit of an edit")
				h.stop(4)
				h.stop(1)
			},
		},
		"plain": {
			script: `otherwise
  words "I hear you well." 50ms`,
			say: func(h *house) { h.ask("1", "hello"); h.ask("2", "how are you"); h.ask("3", "bye") },
		},
		"tools side by side": {
			script: `when has "tools"
  say "Wait. "
  call look {}
  call act {"n": 1}
  call look {"n": 2}
then
  say "So: "
  results
otherwise
  reply`,
			once: true,
			say:  func(h *house) { h.ask("1", "use your tools"); h.ask("2", "thanks") },
		},
		"a failing model": {
			script: `when has "early"
  fail refused "no"
when has "late"
  say "I was going to say"
  fail cut
when has "again"
  fail unavailable after 1s
otherwise
  reply`,
			say: func(h *house) {
				h.ask("1", "early")
				h.ask("2", "fine")
				h.ask("3", "late")
				h.ask("4", "again")
				h.ask("5", "fine too")
			},
		},
		"rotation at every turn": {
			script: `when has "tools"
  call act {}
then
  results
otherwise
  reply`,
			settings: conversation.Settings{RotateEveryTurns: 1},
			once:     true,
			say:      func(h *house) { h.ask("1", "one"); h.ask("2", "use tools"); h.ask("3", "three"); h.ask("4", "four") },
		},
		"a close with a message behind it": {
			script: `otherwise
  wait 1s
  reply`,
			say: func(h *house) { h.send("1", "one"); h.close(); h.send("2", "never run") },
		},
		"memory and compaction": {
			script: `when has "tools"
  call look {}
then
  results
otherwise
  reply`,
			beside: true,
			say: func(h *house) {
				for i, text := range []string{"one", "use tools", "three", "four", "five"} {
					h.ask(fmt.Sprint(i+1), text)
				}
			},
		},
		"ten quick sends": {
			script: `otherwise
  reply 10ms`,
			say: func(h *house) {
				for i := range 10 {
					h.send(fmt.Sprint(i), fmt.Sprint("message ", i))
				}
			},
		},
	}
}
