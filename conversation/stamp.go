package conversation

import (
	"encoding/json/v2"
	"errors"

	"github.com/parley-run/parley/identity"
)

// stampVersion is the version of the start input.
const stampVersion = 1

// maxStampBytes bounds a start input before it is parsed (C-11.12).
const maxStampBytes = 8 << 10

// errStart refuses a start input (C-11.13).
var errStart = errors.New("the start input is no stamp of a conversation")

// StartInput is what a conversation is started with: who owns it (C-22.2).
// Anybody whom the runtime's policy lets start can write one, so it proves
// nothing until it agrees with the principal that the kernel recorded (C-23.4).
type StartInput struct {
	V     int                `json:"v"`
	Owner *identity.Identity `json:"owner,omitzero"` // nil: ownerless (C-23.6)
}

// Stamp makes the start input of a conversation of the owner's, or of nobody's.
func Stamp(owner *identity.Identity) StartInput {
	return StartInput{V: stampVersion, Owner: owner}
}

// ParseStamp reads a start input as the hostile JSON that it is: it is bounded,
// of exactly the two members, and its owner is valid. The error repeats nothing
// of it.
func ParseStamp(input []byte) (StartInput, error) {
	var stamp StartInput
	if len(input) > maxStampBytes ||
		json.Unmarshal(input, &stamp, json.RejectUnknownMembers(true)) != nil ||
		stamp.V != stampVersion ||
		stamp.Owner != nil && stamp.Owner.Validate() != nil {
		return StartInput{}, errStart
	}
	return stamp, nil
}

// Agrees reports whether the stamp names the principal that started the
// conversation, nil for nobody. If it does not, the owner is in conflict and
// nobody matches (C-23.4).
func (s StartInput) Agrees(started *identity.Identity) bool {
	if s.Owner == nil || started == nil {
		return s.Owner == nil && started == nil
	}
	return *s.Owner == *started
}
