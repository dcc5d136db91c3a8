package agent

import (
	"strings"

	"github.com/parley-run/parley/taint"
)

// Instructions returns a function that gives the texts which a request of the
// agent's has beside its messages, for those who count what is sent: the system
// prompt with the explanation of the fence, and, as one text, the names and
// descriptions of the tools that there are at the time, a line each (C-20.10).
// The tools' schemas are left out.
//
// Errors: [taint.ErrTaintedContent], and those of tools that do not fit.
func (d Definition) Instructions() (func() []string, error) {
	prompt, err := newPrompter(d)
	if err != nil {
		return nil, err
	}
	return func() []string {
		texts := []string{join(prompt.system, taint.Explanation)}
		var lines []string
		for _, tool := range prompt.shelf.now().tools {
			lines = append(lines, tool.Name, tool.Description)
		}
		if len(lines) > 0 {
			texts = append(texts, strings.Join(lines, "\n"))
		}
		return texts
	}, nil
}

// Crossing returns the text of the message as a model is sent it: a tainted one
// with its fence (C-20.16). A message that is refused at the prompt boundary has
// none.
func (m Message) Crossing() string {
	crossed, err := boundary(entry{Role: m.Role, Text: m.Text})
	if err != nil {
		return ""
	}
	return crossed.Text
}

// RecalledBytes is how much of a run's requests recalled facts may be at most
// (C-10.13), 0 where none are recalled.
func (l Limits) RecalledBytes() int {
	if l.MemoryScope == "" {
		return 0
	}
	return maxFactBytes + len(taint.Fence(taint.Tainted("", taint.OriginMemory)))
}
