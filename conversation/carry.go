package conversation

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
)

// carryVersion is the version of the carry.
const carryVersion = 1

// Carry is all that a conversation takes from one generation into the next
// (C-19.6). Its three counters are different numbers: Seq counts accepted
// turns, Ord consumed envelopes, Rec transcript records.
type Carry struct {
	V     int                `json:"v"`
	Owner *identity.Identity `json:"owner,omitzero"` // of a shared conversation
	Seq   int                `json:"seq"`
	Ord   int                `json:"ord"`
	Rec   int                `json:"rec"`
	replaySet
	Invalid int `json:"invalid,omitzero"` // rejections that were recorded (C-13.13)
	Dropped int `json:"dropped,omitzero"` // rejections that were only counted (C-13.12)

	Summary Rolling `json:"summary,omitzero"` // of the turns that left the window
	Scale   int     `json:"scale,omitzero"`   // percent, as in FitRequest
	Turns   []Turn  `json:"turns"`            // oldest first

	// Pending is the message that was consumed and not yet looked at; it is the
	// next generation's first (C-19.4).
	Pending taint.Value[jsontext.Value] `json:"pending"`
}

// Turn is an earlier turn as later prompts need it (C-19.12). Its status is
// that of its reply.
type Turn struct {
	Turn    int                `json:"turn"`
	Ord     int                `json:"ord"` // of the user record
	Asker   *identity.Identity `json:"asker,omitzero"`
	User    taint.Text         `json:"user"`
	Edits   taint.Text         `json:"edits,omitzero"` // the beginning of the text that it edits (C-27.8)
	Reply   string             `json:"reply,omitzero"`
	Status  Status             `json:"status"`
	Called  []string           `json:"called,omitempty"`  // tools, of a turn without a whole answer
	Classes []string           `json:"classes,omitempty"` // of its answer; shared conversations only
	Tokens  int                `json:"tokens,omitzero"`   // what it costs in a prompt; 0 until it was counted (C-20.4)
}

const (
	// maxCarriedTurns is the window and the one turn whose eviction is pending
	// (C-27.5).
	maxCarriedTurns = maxWindowTurns + 1
	// maxCalledTools bounds the calls of a turn, see Settings, and with them the
	// names of tools that one can have called; none is longer than maxToolName.
	maxCalledTools = 1024
	maxToolName    = 64
	// fixedCarryBytes has room for all but turns, summary and pending: a full replay set
	// and the counters.
	fixedCarryBytes = maxSeen*112 + 1<<10
)

// errCarry refuses a start input (C-11.13).
var errCarry = errors.New("the start input is no carry of a conversation")

// CarryOf reads the input of a generation as the hostile JSON that it may be,
// since anybody who may start executions can start one of this flow. Its bounds
// are constants, wider than any setting (C-11.17). In generation 0 it takes the
// stamp and nothing else. The error repeats nothing of the input.
func CarryOf(input []byte, generation int) (Carry, error) {
	if generation == 0 {
		_, err := ParseStamp(input)
		return Carry{V: carryVersion}, err
	}
	var c Carry
	if len(input) > kernel.MaxCarryBytes || json.Unmarshal(input, &c, json.RejectUnknownMembers(true)) != nil || !c.valid() {
		return Carry{}, errCarry
	}
	return c, nil
}

// valid reports whether counts and texts are within their bounds and fit
// together.
func (c Carry) valid() bool {
	const most = 1 << 50
	for _, n := range []int{c.Seq, c.Ord, c.Rec, c.Invalid, c.Dropped} {
		if n < 0 || n > most {
			return false
		}
	}
	if c.V != carryVersion || c.Seq > c.Ord || c.Rec > 2*c.Ord || c.Invalid+c.Dropped > c.Ord ||
		len(c.Seen) > maxSeen || c.Floor < 0 || len(c.Turns) > maxCarriedTurns || len(c.Pending.Value) == 0 {
		return false
	}
	if c.Owner != nil && c.Owner.Validate() != nil {
		return false
	}
	if !c.Summary.valid() || c.Scale < 0 || c.Scale > maxScale {
		return false
	}
	for _, s := range c.Seen {
		if !isSenderKey(s.Key) || s.IssuedAt <= 0 {
			return false
		}
	}
	var last Turn
	for _, t := range c.Turns {
		if t.Turn <= last.Turn || t.Turn > c.Seq || t.Ord <= last.Ord || t.Ord > c.Rec || !t.valid() {
			return false
		}
		last = t
	}
	return true
}

func (t Turn) valid() bool {
	if t.Asker != nil && t.Asker.Validate() != nil || !t.User.IsTainted() ||
		!t.Edits.IsZero() && !t.Edits.IsTainted() || len(t.Called) > maxCalledTools || t.Tokens < 0 || t.Tokens > maxTokens || !validClasses(t.Classes) {
		return false
	}
	for _, tool := range t.Called {
		if len(tool) > maxToolName {
			return false
		}
	}
	return t.Status == StatusComplete || t.Status == StatusInterrupted || t.Status == StatusFailed
}

// trim drops the oldest turns until the carry, in JSON, has at most maxBytes,
// or no turn is left (C-19.7); if it is too large even then, the summary goes.
// Counters, ids, floor and pending are never trimmed; their own bounds keep the
// rest under the kernel's limit (C-19.8). It is pure: the carry that it was given
// stays as it was.
func (c Carry) trim(maxBytes int) Carry {
	whole := c.Turns
	c.Turns = []Turn{}
	size := jsonBytes(c)
	if size > maxBytes {
		c.Summary = Rolling{}
		size = jsonBytes(c)
	}
	keep := len(whole)
	for keep > 0 {
		size += jsonBytes(whole[keep-1]) + len(",")
		if size > maxBytes {
			break
		}
		keep--
	}
	c.Turns = whole[keep:]
	return c
}

// jsonBytes is the size of a value in JSON.
func jsonBytes(value any) int {
	data, err := json.Marshal(value)
	if err != nil {
		return kernel.MaxCarryBytes // what has no JSON form fits nowhere
	}
	return len(data)
}
