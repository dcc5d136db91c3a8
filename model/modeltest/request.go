package modeltest

import (
	"encoding/json/jsontext"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-run/parley/model"
)

// Violations lists what some vendor would refuse in a request, one line each;
// none where every vendor takes it. It is a judge of whoever makes requests,
// stricter than [model.Request.Validate] and written apart from both: it repeats
// no text of the request.
func Violations(req model.Request) []string {
	var found []string
	for _, r := range rules {
		for _, what := range r.broken(req) {
			found = append(found, r.name+": "+what)
		}
	}
	return found
}

// rule is one thing that vendors want. It returns where a request breaks it.
type rule struct {
	name   string // and the case of a user whose request was refused
	broken func(model.Request) []string
}

var rules = []rule{
	{"there is a message", someMessage},
	{"the first message is the user's", userFirst},
	{"the last message is the user's", userLast},
	{"roles alternate (T69)", rolesAlternate},
	{"roles are known", rolesKnown},
	{"no message is empty (C-9.6)", nothingEmpty},
	{"no text is blank (C-9.6)", nothingBlank},
	{"results say something (C-9.6)", resultsSpeak},
	{"only the assistant calls", assistantCalls},
	{"only the user has results", userAnswers},
	{"no result comes first (T70)", noResultFirst},
	{"each call has its result in the next message (T62, T63, T64)", callsAnswered},
	{"each result has its call in the message before (T71)", resultsCalledFor},
	{"a call is answered once (T71)", answeredOnce},
	{"ids of calls are unique in the request", idsUnique},
	{"ids of calls are short words", idsShort},
	{"tools have names that are short words", namesShort},
	{"a result names the tool of its call", namesAgree},
	{"arguments are one JSON object", argumentsObject},
	{"texts are valid UTF-8", validText},
	{"tools are offered once", toolsOnce},
	{"schemas are JSON objects", schemasObject},
}

// at names the place of a message.
func at(i int) string { return fmt.Sprintf("message %d", i) }

// where lists the messages that a function finds fault with.
func where(req model.Request, wrong func(i int, m model.Message) bool) []string {
	var found []string
	for i, m := range req.Messages {
		if wrong(i, m) {
			found = append(found, at(i))
		}
	}
	return found
}

func someMessage(req model.Request) []string {
	if len(req.Messages) == 0 {
		return []string{"there is none"}
	}
	return nil
}

func userFirst(req model.Request) []string {
	return where(req, func(i int, m model.Message) bool { return i == 0 && m.Role == model.Assistant })
}

func userLast(req model.Request) []string {
	return where(req, func(i int, m model.Message) bool { return i == len(req.Messages)-1 && m.Role == model.Assistant })
}

func rolesAlternate(req model.Request) []string {
	return where(req, func(i int, m model.Message) bool { return i > 0 && m.Role == req.Messages[i-1].Role })
}

func rolesKnown(req model.Request) []string {
	return where(req, func(_ int, m model.Message) bool { return m.Role != "user" && m.Role != "assistant" })
}

func nothingEmpty(req model.Request) []string {
	return where(req, func(_ int, m model.Message) bool {
		return len(m.Text)+len(m.Calls)+len(m.Results) == 0
	})
}

// nothingBlank: a text block of nothing but white space is refused as an empty
// one is.
func nothingBlank(req model.Request) []string {
	return where(req, func(_ int, m model.Message) bool { return m.Text != "" && len(strings.Fields(m.Text)) == 0 })
}

func resultsSpeak(req model.Request) []string {
	return where(req, func(_ int, m model.Message) bool {
		return slices.ContainsFunc(m.Results, func(r model.Result) bool { return len(strings.Fields(r.Text)) == 0 })
	})
}

func assistantCalls(req model.Request) []string {
	return where(req, func(_ int, m model.Message) bool { return m.Role == model.User && m.Calls != nil })
}

func userAnswers(req model.Request) []string {
	return where(req, func(_ int, m model.Message) bool { return m.Role == model.Assistant && m.Results != nil })
}

func noResultFirst(req model.Request) []string {
	return where(req, func(i int, m model.Message) bool { return i == 0 && m.Role == model.User && m.Results != nil })
}

// results counts the results of a message by the id of their call.
func results(m model.Message) map[string]int {
	count := map[string]int{}
	for _, r := range m.Results {
		count[r.CallID]++
	}
	return count
}

func callsAnswered(req model.Request) []string {
	return where(req, func(i int, m model.Message) bool {
		var next map[string]int
		if i+1 < len(req.Messages) {
			next = results(req.Messages[i+1])
		}
		return m.Role == model.Assistant && i+1 < len(req.Messages) &&
			slices.ContainsFunc(m.Calls, func(c model.Call) bool { return next[c.ID] == 0 })
	})
}

func resultsCalledFor(req model.Request) []string {
	return where(req, func(i int, m model.Message) bool {
		return i > 0 && m.Role == model.User && slices.ContainsFunc(m.Results, func(r model.Result) bool {
			return !slices.ContainsFunc(req.Messages[i-1].Calls, func(c model.Call) bool { return c.ID == r.CallID })
		})
	})
}

func answeredOnce(req model.Request) []string {
	return where(req, func(_ int, m model.Message) bool {
		for _, n := range results(m) {
			if n > 1 {
				return true
			}
		}
		return false
	})
}

func idsUnique(req model.Request) []string {
	seen := map[string]bool{}
	return where(req, func(_ int, m model.Message) bool {
		again := false
		for _, c := range m.Calls {
			again = again || seen[c.ID]
			seen[c.ID] = true
		}
		return again
	})
}

const wordLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// shortWord reports whether a text is 1 to most letters, digits, '_' and '-'.
func shortWord(text string, most int) bool {
	return text != "" && len(text) <= most && !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune(wordLetters, r)
	})
}

func idsShort(req model.Request) []string {
	return where(req, func(_ int, m model.Message) bool {
		return slices.ContainsFunc(m.Calls, func(c model.Call) bool { return !shortWord(c.ID, 40) })
	})
}

func namesShort(req model.Request) []string {
	found := where(req, func(_ int, m model.Message) bool {
		return slices.ContainsFunc(m.Calls, func(c model.Call) bool { return !shortWord(c.Name, 64) })
	})
	for i, tool := range req.Tools {
		if !shortWord(tool.Name, 64) {
			found = append(found, fmt.Sprintf("tool %d", i))
		}
	}
	return found
}

func namesAgree(req model.Request) []string {
	names := map[string]string{}
	return where(req, func(_ int, m model.Message) bool {
		for _, c := range m.Calls {
			names[c.ID] = c.Name
		}
		return slices.ContainsFunc(m.Results, func(r model.Result) bool {
			name, called := names[r.CallID]
			return called && name != r.Name
		})
	})
}

// object reports whether data are one JSON object.
func object(data jsontext.Value) bool { return data.IsValid() && data.Kind() == '{' }

func argumentsObject(req model.Request) []string {
	return where(req, func(_ int, m model.Message) bool {
		return slices.ContainsFunc(m.Calls, func(c model.Call) bool { return !object(c.Args) })
	})
}

func validText(req model.Request) []string {
	found := where(req, func(_ int, m model.Message) bool {
		return !utf8.ValidString(m.Text) ||
			slices.ContainsFunc(m.Results, func(r model.Result) bool { return !utf8.ValidString(r.Text) })
	})
	if !utf8.ValidString(req.System) {
		found = append(found, "the system prompt")
	}
	return found
}

func toolsOnce(req model.Request) []string {
	var found []string
	for i, tool := range req.Tools {
		if slices.ContainsFunc(req.Tools[:i], func(other model.Tool) bool { return other.Name == tool.Name }) {
			found = append(found, fmt.Sprintf("tool %d", i))
		}
	}
	return found
}

func schemasObject(req model.Request) []string {
	var found []string
	for i, tool := range req.Tools {
		if !object(tool.Schema) {
			found = append(found, fmt.Sprintf("tool %d", i))
		}
	}
	return found
}
