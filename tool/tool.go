// Package tool says what tools that come and go are.
//
// A tool that is always there is an agent.Tool. Tools of which nobody knows
// beforehand what they are, such as those of a server that somebody else runs,
// are a [Set]: it says at any time what it offers, and takes calls. Make the
// [Schema] of an offer with [NewSchema].
//
// The package promises: arguments are held against a schema in bounded time and
// memory, whoever wrote the schema.
package tool

import (
	"context"
	"encoding/json/jsontext"

	"github.com/parley-run/parley/fault"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
)

// Set is a set of tools that come and go. It is used by several goroutines.
type Set interface {
	// Name names the set among those of an agent: 1 to 24 letters, digits and
	// '-'. A grant names it, "tool." and the name, and with it all that it offers.
	Name() string

	// Mode says what a crash in the middle of a call means; see [kernel.Mode].
	Mode() kernel.Mode

	// Offers lists what is there now, in an order that stays. It does not block,
	// and nobody changes what it returned.
	Offers() []Offer

	// Call calls a tool by the name in its offer. args is one JSON object that
	// fits the schema of that offer. It returns when ctx ends, at the latest.
	//
	// Errors, of which the model is told the meaning and no text: [ErrAbsent];
	// [context.DeadlineExceeded] if the set's own patience ended;
	// [kernel.ErrOutcomeUnknown] if the call was begun and cut off. What a tool
	// says went wrong is a [Result] and no error.
	Call(ctx context.Context, name string, args jsontext.Value) (Result, error)
}

// Offer is a tool of a set as a model is to be told of it.
type Offer struct {
	Name        string     // its own name, any text; the model meets it in another form
	Description taint.Text // an instruction: never tainted (C-8.3)
	Schema      *Schema    // of the arguments; nil takes any object
}

// Result is what a tool tells the model. A Failed one is the tool's own way to
// say what went wrong.
type Result struct {
	Text   string // cut at 256 KiB
	Failed bool
	Origin taint.Origin // of the text, which is tainted (C-8.9); that of a tool of this name if empty
}

// ErrAbsent says that a call was not made because its tool is not there.
var ErrAbsent = fault.New("TOOL_ABSENT", "the tool is not there now")
