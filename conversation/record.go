package conversation

import (
	"encoding/json/v2"
	"slices"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// Role says whose record it is (C-15.4).
type Role string

const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleNotice    Role = "notice" // the house's own word (C-45.4)
)

// Status says what became of a message (C-15.5).
type Status string

const (
	StatusAccepted    Status = "accepted"    // of a user record
	StatusRejected    Status = "rejected"    // of a user record; Reason says why
	StatusComplete    Status = "complete"    // of a reply
	StatusInterrupted Status = "interrupted" // of a reply; the text is what there was
	StatusFailed      Status = "failed"      // of a reply; Reason and ErrorID say what is told

	// StatusRestricted is that of an entry whose reader is not cleared for what it
	// has touched (C-37.3). It is never recorded.
	StatusRestricted Status = "restricted"
)

// Reason is why a message was rejected (C-13.3) or a turn failed (C-25.2).
type Reason string

const (
	ReasonMalformed       Reason = "malformed"
	ReasonUnauthenticated Reason = "unauthenticated"
	ReasonReplayed        Reason = "replayed"
	ReasonStale           Reason = "stale"
	ReasonNotParticipant  Reason = "not-a-participant"
	ReasonEditInvalid     Reason = "edit-invalid"
	ReasonPromptTooLarge  Reason = "prompt-too-large"

	ReasonModelError Reason = "model-error"
	ReasonDenied     Reason = "denied"
	ReasonTurnFailed Reason = "turn-failed"
	ReasonCancelled  Reason = "cancelled"
)

var (
	rejections = []Reason{
		ReasonMalformed, ReasonUnauthenticated, ReasonReplayed, ReasonStale,
		ReasonNotParticipant, ReasonEditInvalid, ReasonPromptTooLarge,
	}
	failures = []Reason{ReasonModelError, ReasonDenied, ReasonTurnFailed, ReasonCancelled}
)

// Record is one entry of the transcript: a message, a reply or a rejection.
// Fields that do not apply are absent (C-15.3). It is the value of a decision
// in the conversation's log; a reader adds Cursor.
type Record struct {
	Turn    int                `json:"turn"`         // from 1, shared by a message and its reply; 0 on a rejected one
	Ord     int                `json:"ord,omitzero"` // from 1, unique in the conversation, rising; 0 in logs that are older than it
	Role    Role               `json:"role"`
	Status  Status             `json:"status"`
	Text    string             `json:"text,omitzero"`
	Reason  Reason             `json:"reason,omitzero"`
	ErrorID string             `json:"errorId,omitzero"`
	Asker   *identity.Identity `json:"asker,omitzero"`
	Time    time.Time          `json:"time"`
	Cursor  Cursor             `json:"cursor,omitzero"` // set by a reader, never recorded

	// Topic says what a notice is about.
	Topic NoticeTopic `json:"topic,omitzero"`

	// Of an edit: the ord of the user record that it edits, and for display the
	// number of that turn (C-27.7).
	EditOf     int `json:"editOf,omitzero"`
	EditOfTurn int `json:"editOfTurn,omitzero"`

	// Of a shared conversation: what the entry has touched, as a sorted set, and the
	// execution in which its asker's turn ran.
	Classes         []string `json:"classes,omitempty"`
	TurnExecutionID string   `json:"turnExecutionId,omitzero"`
}

// keptRecord is a record as it stands in the log: with what later prompts need to
// know and readers are not told.
type keptRecord struct {
	Record
	Called []string `json:"called,omitempty"` // tools that a turn without a whole answer had called
}

// RecordOf returns the record that an event of a conversation's log holds, and
// false for every other event: one of another kind, id or source, one that a
// loop or a tool made, or one whose value is no record (C-15.13, C-15.14).
// Cursor is left to the reader.
func RecordOf(event journal.Event) (Record, bool) {
	role, ok := recordRole(event.ID)
	if !ok {
		return Record{}, false
	}
	var record Record
	if !recorded(event, &record) || record.Role != role && (role != RoleUser || record.Role != RoleNotice) || !record.valid() {
		return Record{}, false
	}
	record.Cursor = Cursor{}
	return record, true
}

// Closed is the value of the decision that closes a conversation. It is no
// record of the transcript and has no ord (C-15.8).
type Closed struct {
	Asker *identity.Identity `json:"asker,omitzero"`
	Time  time.Time          `json:"time"`
}

// ClosedOf returns the close that an event of a conversation's log holds, and
// false for every other event.
func ClosedOf(event journal.Event) (Closed, bool) {
	var closed Closed
	ok := event.ID == idClosed && recorded(event, &closed) && !closed.Time.IsZero()
	return closed, ok
}

// recorded decodes the value of a decision that the body itself made under the
// source of records; what stands inside another decision was made by a loop.
func recorded(event journal.Event, into any) bool {
	if event.Kind != kernel.KindDecided {
		return false
	}
	decided, err := kernel.DecodeEvent[kernel.Decided](event)
	return err == nil && decided.Source == SourceRecord && decided.In == "" && decided.Fault == "" &&
		json.Unmarshal(decided.Value, into) == nil
}

// valid reports whether the fields of a record fit together. Older logs have no
// ord, and turn numbers on rejected records (C-43.1, C-43.2).
func (r Record) valid() bool {
	if r.Turn < 0 || r.Ord < 0 || r.EditOf < 0 || r.EditOfTurn < 0 || r.Time.IsZero() || r.Asker != nil && r.Asker.Validate() != nil || !validClasses(r.Classes) {
		return false
	}
	if (r.Role == RoleNotice) != r.Topic.known() {
		return false
	}
	asks := r.Role == RoleUser || r.Role == RoleNotice
	switch {
	case asks && r.Status == StatusRejected:
		return slices.Contains(rejections, r.Reason)
	case asks && r.Status == StatusAccepted,
		r.Role == RoleAssistant && (r.Status == StatusComplete || r.Status == StatusInterrupted):
		return r.Turn > 0 && r.Reason == "" && r.ErrorID == ""
	case r.Role == RoleAssistant && r.Status == StatusFailed:
		return r.Turn > 0 && slices.Contains(failures, r.Reason)
	}
	return false
}
