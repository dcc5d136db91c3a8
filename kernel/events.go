package kernel

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/parley-run/parley/fault"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
)

// The kinds of events in an execution's log, and of messages in an inbox.
const (
	KindStarted   = "STARTED"          // event 0 of each generation; data is a Started
	KindConsumed  = "MESSAGE_CONSUMED" // a Receive was served; data is a Consumed
	KindDecided   = "DECIDED"          // the outcome of a Decide; data is a Decided
	KindRequested = "REQUESTED"        // a step was asked for; data is a Requested
	KindSettled   = "SETTLED"          // the result of a step; data is a Settled
	KindContinued = "CONTINUED"        // the generation is over, the next one goes on; no data
	KindEnded     = "ENDED"            // the execution is over; data is an Ended
	KindMessage   = "MESSAGE"          // in an inbox stream; data is a Message
)

// Started is the data of event 0. Cursors and Window are there in generations
// after the first: where each topic's reading stands in the inbox, and the
// keys of the messages delivered last (C-5.12).
type Started struct {
	Flow      string                 `json:"flow"`
	Version   string                 `json:"version"`
	Principal *identity.Identity     `json:"principal,omitzero"` // nil: started by nobody
	Input     jsontext.Value         `json:"input,omitzero"`
	Parent    string                 `json:"parent,omitzero"` // chain id of the execution whose child this is
	Cursors   map[string]journal.Seq `json:"cursors,omitempty"`
	Window    map[string][]string    `json:"window,omitempty"`
}

// Message is the data of an event in an inbox; the event's id is the message
// id that the sender chose. Without From and Host nobody in particular sent it.
type Message struct {
	Topic   string             `json:"topic"`
	From    *identity.Identity `json:"from,omitzero"` // as the runtime saw it (C-5.2)
	Host    bool               `json:"host,omitzero"` // sent under the system grant
	Payload jsontext.Value     `json:"payload"`
}

// Consumed is the data of a consumption. Cursor is the position in the inbox
// from which the topic's next message is sought.
type Consumed struct {
	Topic     string      `json:"topic"`
	Cursor    journal.Seq `json:"cursor"`
	MessageID string      `json:"messageId,omitzero"`
	Message   Message     `json:"message"`
}

// Source says what kind of choice a decision is (C-6.3).
type Source string

// Decided is the data of a decision; the event's id is the decision's. A nil
// Value with an empty Fault is the value null.
type Decided struct {
	Source Source         `json:"source"`
	Value  jsontext.Value `json:"value,omitzero"`
	Fault  string         `json:"fault,omitzero"` // a code, see package fault
	In     string         `json:"in,omitzero"`    // the decision around it (C-6.14)
}

// Requested is the data of a step's request. It names the hash of the input
// and not the input, which a re-run rebuilds.
type Requested struct {
	Effect EffectID `json:"effect"`
	Hash   string   `json:"hash"`
	In     string   `json:"in,omitzero"`
}

// Settled is the data of a step's result; the event's id is the step's. Of
// several for one step the last holds.
type Settled struct {
	Value jsontext.Value `json:"value,omitzero"`
	Fault string         `json:"fault,omitzero"`
	In    string         `json:"in,omitzero"`
}

// Ended is the data of an execution's last event.
type Ended struct {
	State  State          `json:"state"`
	Output jsontext.Value `json:"output,omitzero"`
	Fault  string         `json:"fault,omitzero"`
}

// errDamaged says that what stands in a log was not written by this package.
var errDamaged = errors.New("a log is damaged")

// DecodeEvent reads an event's data as one of the types above. The error names
// the event and repeats none of its data.
func DecodeEvent[T any](event journal.Event) (T, error) {
	var data T
	if err := json.Unmarshal(event.Data, &data); err != nil {
		return data, fmt.Errorf("%w: event %d (%s): data is no %T", errDamaged, event.Seq, event.Kind, data)
	}
	return data, nil
}

// isDeep reports whether a JSON value is nested deeper than MaxDepth.
func isDeep(value jsontext.Value) bool {
	if bytes.Count(value, []byte{'{'})+bytes.Count(value, []byte{'['}) <= MaxDepth {
		return false
	}
	dec := jsontext.NewDecoder(bytes.NewReader(value))
	for {
		if _, err := dec.ReadToken(); err != nil {
			return err != io.EOF
		}
		if dec.StackDepth() > MaxDepth {
			return true
		}
	}
}

// encode gives the JSON of a value as it stands in a log: deterministic, and
// never over the limits of an event.
func encode(value any) (jsontext.Value, error) {
	data, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("%w: no JSON form: %w", ErrPanic, err)
	}
	if len(data) > MaxPayloadBytes || isDeep(data) {
		return nil, ErrTooLarge
	}
	return data, nil
}

// mustEncode encodes one of the types above, whose fields were encoded or
// validated before.
func mustEncode(value any) jsontext.Value {
	data, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("kernel: encode %T: %v", value, err))
	}
	return data
}

// outcome is what a decision or a step came to: a value, or a fault's code.
type outcome struct {
	value jsontext.Value
	fault string
}

// outcomeOf encodes a result. A value without a JSON form is a PANIC.
func outcomeOf(value any, err error) outcome {
	if err == nil {
		var data jsontext.Value
		if data, err = encode(value); err == nil {
			return outcome{value: data}
		}
	}
	return outcome{fault: fault.CodeOf(err)}
}

// decode gives the outcome to a flow, always from the recorded bytes.
func (o outcome) decode(into any) error {
	if o.fault != "" {
		return fault.FromCode(o.fault)
	}
	if len(o.value) == 0 {
		return nil
	}
	if err := json.Unmarshal(o.value, into); err != nil {
		return fmt.Errorf("%w: recorded value is no %T", ErrPanic, into)
	}
	return nil
}

// now is the time of a fact: UTC, whole milliseconds.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
