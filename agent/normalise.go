package agent

import (
	"encoding/json/jsontext"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/parley-run/parley/model"
)

// What stands where a request must have something and nobody said anything.
const (
	noMessage = "(no message)"
	noResult  = "(no output)"
)

// normalise makes a request that every vendor takes of the messages of a
// transcript, whatever they are (C-9.6). Texts, and results whose call is among
// the messages, are all kept.
//
//   - Roles alternate, beginning and ending with the user: neighbours of one role
//     are one message (T69).
//   - No message and no result is empty or blank, which some vendors refuse as
//     well.
//   - Each call is answered in the next message, once, in the order of the calls.
//     What is missing has a stated placeholder: whether the call took effect is
//     unknown (T59, T71).
//   - A result whose call is not among the messages, as where history was cut
//     between them, is dropped (T70, T71). One that comes late, or a second time,
//     is told as a text of the user.
//   - In a message of the assistant the text stands before the calls. A model
//     that says something behind a call has said it in the same reply, whose text
//     is all of its words in their order (T60); what another message says behind
//     a call stands behind the call's result.
//   - Ids of calls are short and unique in the whole request.
//
// The form of a message depends on those before it alone, so that a transcript
// that grows keeps its beginning, for which vendors have caches.
func normalise(messages []model.Message) []model.Message {
	n := normaliser{ids: map[string]bool{}, names: map[string]string{}}
	for _, message := range messages {
		if message.Role == model.Assistant {
			n.assistant(message)
		} else {
			n.user(message)
		}
	}
	if len(n.out) > 0 {
		n.reply()
		n.answer()
	}
	return n.out
}

// normaliser is a request on its way.
type normaliser struct {
	out   []model.Message
	open  []openCall        // the calls of the last message of the assistant
	ids   map[string]bool   // that are taken
	names map[string]string // of the tools, by the id of the call as it was given
}

// openCall is a call and its answer, as soon as there is one.
type openCall struct {
	given  string // the id that its result will name
	call   model.Call
	result *model.Result
}

func (n *normaliser) last() *model.Message {
	if len(n.out) == 0 {
		return nil
	}
	return &n.out[len(n.out)-1]
}

// assistant takes in a message of the assistant.
func (n *normaliser) assistant(message model.Message) {
	if blank(message.Text) && len(message.Calls) == 0 {
		return
	}
	switch last := n.last(); {
	case last == nil:
		n.out = append(n.out, model.Message{Role: model.User, Text: noMessage})
	case last.Role == model.Assistant && len(n.open) > 0:
		n.reply() // to the calls, which come before what is said now
		n.answer()
	case last.Role == model.User:
		n.answer()
	}
	if n.last().Role == model.User {
		n.out = append(n.out, model.Message{Role: model.Assistant})
	}
	last := n.last()
	last.Text = join(last.Text, visible(message.Text))
	for _, call := range message.Calls {
		n.names[call.ID] = call.Name
		n.open = append(n.open, openCall{given: call.ID, call: n.call(call)})
		last.Calls = append(last.Calls, n.open[len(n.open)-1].call)
	}
}

// user takes in a message of the user.
func (n *normaliser) user(message model.Message) {
	for _, result := range message.Results {
		if blank(result.Text) {
			result.Text = noResult
		}
		if n.fits(result) {
			continue
		}
		if name, ok := n.names[result.CallID]; ok {
			n.say("Result of an earlier call of the tool " + wordOr(name, unnamedTool) + ":\n" + result.Text)
		}
	}
	n.say(message.Text)
}

// fits puts a result to its call, if that is open.
func (n *normaliser) fits(result model.Result) bool {
	i := slices.IndexFunc(n.open, func(c openCall) bool { return c.given == result.CallID && c.result == nil })
	if i >= 0 {
		n.open[i].result = &result
		n.reply()
	}
	return i >= 0
}

// say adds a text of the user.
func (n *normaliser) say(text string) {
	if !blank(text) {
		n.reply()
		n.last().Text = join(n.last().Text, text)
	}
}

// reply sees to it that the last message is the user's.
func (n *normaliser) reply() {
	if last := n.last(); last == nil || last.Role == model.Assistant {
		n.out = append(n.out, model.Message{Role: model.User})
	}
}

// answer ends a message of the user: every call that is open has its result in
// it, and it is not empty.
func (n *normaliser) answer() {
	last := n.last()
	for _, c := range n.open {
		result := model.Result{Text: tellUnknown, Failed: true}
		if c.result != nil {
			result = *c.result
		}
		result.CallID, result.Name = c.call.ID, c.call.Name
		last.Results = append(last.Results, result)
	}
	n.open = nil
	if last.Text == "" && len(last.Results) == 0 {
		last.Text = noMessage
	}
}

// call makes a call that can be sent: its id is kept where it can be.
func (n *normaliser) call(call model.Call) model.Call {
	if call.ID == "" || len(call.ID) > maxCallID || word(call.ID) != call.ID || n.ids[call.ID] {
		number := len(n.ids) + 1
		for call.ID = callName(number); n.ids[call.ID]; call.ID = callName(number) {
			number++
		}
	}
	n.ids[call.ID] = true
	call.Name = wordOr(call.Name, unnamedTool)
	if !isObject(call.Args) {
		call.Args = jsontext.Value("{}")
	}
	return call
}

// maxCallID is how long an id of a call may be for every vendor.
const maxCallID = 40

// unnamedTool stands for the name of a tool that has none.
const unnamedTool = "unnamed"

func callName(number int) string { return "call-" + strconv.Itoa(number) }

// wordOr is the text as a word, or another where nothing is left of it.
func wordOr(text, other string) string {
	if text = word(text); text == "" {
		return other
	}
	return text
}

// visible is the text, or nothing where it is blank.
func visible(text string) string {
	if blank(text) {
		return ""
	}
	return text
}

// blank reports whether there is nothing to read in a text: vendors refuse such
// texts as they refuse empty ones.
func blank(text string) bool {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) == ""
}
