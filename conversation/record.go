package conversation

import (
	"strconv"
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
)

// Status says what became of a message (C-15.5).
type Status string

const (
	StatusAccepted    Status = "accepted"    // of a user record
	StatusRejected    Status = "rejected"    // of a user record; Reason says why
	StatusComplete    Status = "complete"    // of a reply
	StatusInterrupted Status = "interrupted" // of a reply; the text is what there was
	StatusFailed      Status = "failed"      // of a reply; Reason and ErrorID say what is told
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

// Record is one entry of the transcript: a message, a reply or a rejection.
// Fields that do not apply are absent (C-15.3). It is the value of a decision
// in the conversation's log; a reader adds Cursor.
type Record struct {
	Turn    int                `json:"turn"` // from 1, shared by a message and its reply; 0 on a rejected one
	Ord     int                `json:"ord"`  // from 1, unique in the conversation, rising
	Role    Role               `json:"role"`
	Status  Status             `json:"status"`
	Text    string             `json:"text,omitzero"`
	Reason  Reason             `json:"reason,omitzero"`
	ErrorID string             `json:"errorId,omitzero"`
	Asker   *identity.Identity `json:"asker,omitzero"`
	Time    time.Time          `json:"time"`
	Cursor  Cursor             `json:"cursor,omitzero"` // set by a reader, never recorded
}

// The sources of the conversation's decisions (C-6.4).
const (
	SourceRecord kernel.Source = "conversation-record"
	SourceBudget kernel.Source = "conversation-budget"
	SourceAdmit  kernel.Source = "conversation-admission"
	SourceConfig kernel.Source = "conversation-settings"
)

// Decision ids (C-16); n is the message ordinal. They are frozen: logs hold
// them.
const (
	idSettings = "conv#settings"
	idClosed   = "conv#closed"
)

func loopID(n int) string    { return "conv#o" + strconv.Itoa(n) }
func idAdmit(n int) string   { return loopID(n) + ":admit" }
func idUser(n int) string    { return loopID(n) + ":user" }
func idReply(n int) string   { return loopID(n) + ":reply" }
func idDropped(n int) string { return loopID(n) + ":dropped" }

// Cursor names a place in the chain of one conversation, "<generation>.<sequence>" on the wire (C-17.5).
type Cursor struct {
	Generation int
	Seq        journal.Seq
}
