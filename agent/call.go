package agent

import (
	"bytes"
	"cmp"
	"encoding/json/jsontext"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/tool"
)

// Call is a tool call that a model asked for, as it is recorded.
type Call struct {
	ID      string         `json:"id"` // unique within its reply
	Name    string         `json:"name"`
	Args    jsontext.Value `json:"args"` // one JSON object
	Problem problem        `json:"problem,omitzero"`
	Misfit  string         `json:"misfit,omitzero"` // what does not fit the schema; words of others may stand in it
	Set     string         `json:"set,omitzero"`    // whose tool it is, "" for the definition's own
	Tool    string         `json:"tool,omitzero"`   // what it is called in its set
}

// step says which effect a call goes to, and with which input.
func (c Call) step() (effect kernel.EffectID, input any) {
	if c.Set == "" {
		return toolEffect(c.Name), c.Args
	}
	return toolEffect(c.Set), setCall{Tool: c.Tool, Args: c.Args}
}

// problem says why a call is not run. It is found where the tools are known,
// in the effect, and recorded with the call: the loop itself knows no tools.
type problem string

const (
	problemUnknown problem = "unknown-tool"
	problemArgs    problem = "bad-arguments"
)

// Bounds of the calls of one reply, so that an event can hold it.
const (
	maxCalls     = 256
	maxArgsBytes = 256 << 10 // of all calls together
	maxArgsDepth = 64
	maxWord      = 64       // of a name and of an id
	maxMisfits   = 16 << 10 // bytes, of all calls together
)

var errTooManyCalls = errors.New("a reply with more than 256 tool calls")

// callSheet takes in the calls of one reply.
type callSheet struct {
	offered catalogue
	calls   []Call
	args    int // bytes
	misfits int // bytes
}

// add takes in one call. What a model may get wrong is replaced by what can be
// sent back to it: its id, the name of a tool that does not exist, and arguments
// that are no JSON object. Those that only do not fit their schema stay.
func (s *callSheet) add(asked model.Call) error {
	if len(s.calls) == maxCalls {
		return errTooManyCalls
	}
	call := Call{ID: s.id(asked.ID), Name: asked.Name, Args: asked.Args}
	known, ok := s.offered.listed[call.Name]
	if !ok {
		call.Name, call.Problem = wordOr(call.Name, unnamedTool), problemUnknown
	}
	call.Set, call.Tool = known.set, known.name
	switch {
	case s.args+len(call.Args) > maxArgsBytes || !isObject(call.Args):
		call.Args = jsontext.Value("{}")
		call.Problem = cmp.Or(call.Problem, problemArgs)
	case known.schema != nil:
		s.fit(&call, known.schema)
	}
	s.args += len(call.Args)
	s.calls = append(s.calls, call)
	return nil
}

// fit holds the arguments of a call against the schema of its tool. The verdict
// is recorded with the call, so that a schema that changes later changes nothing.
func (s *callSheet) fit(call *Call, schema *tool.Schema) {
	misfit := schema.Misfit(call.Args)
	if misfit == "" {
		return
	}
	call.Problem = problemArgs
	if s.misfits += len(misfit); s.misfits <= maxMisfits {
		call.Misfit = misfit
	}
}

// id keeps an id that is a word of its own in this reply, and else makes one.
func (s *callSheet) id(asked string) string {
	taken := func(id string) bool {
		for _, call := range s.calls {
			if call.ID == id {
				return true
			}
		}
		return false
	}
	if asked != "" && word(asked) == asked && !taken(asked) {
		return asked
	}
	id := "call-" + strconv.Itoa(len(s.calls)+1)
	for taken(id) {
		id += "x"
	}
	return id
}

// word makes a short word of letters, digits, '_' and '-' of anything.
func word(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, text)
	return text[:min(len(text), maxWord)]
}

// isObject reports whether data are one JSON object, no deeper than a call's
// arguments may be: what stands inside an event adds to its depth.
func isObject(data jsontext.Value) bool {
	if data.Kind() != '{' || !data.IsValid() {
		return false
	}
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	for {
		if _, err := dec.ReadToken(); err == io.EOF {
			return true
		} else if err != nil || dec.StackDepth() > maxArgsDepth {
			return false
		}
	}
}
