package conversation

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// MaxMessageIDBytes is the longest message id (C-12.13).
const MaxMessageIDBytes = 256

// TurnFault says which bound a turn is outside of.
type TurnFault string

const (
	TextEmpty    TurnFault = "text-empty"
	TextTooLong  TurnFault = "text-too-long"
	TextNotUTF8  TurnFault = "text-not-utf8"
	MessageIDBad TurnFault = "message-id-invalid" // too long, no UTF-8, or a NUL in it
	EditOfBad    TurnFault = "edit-of-invalid"    // negative, or larger than any
	TurnBad      TurnFault = "turn-invalid"       // not the number of any turn
)

// TurnError is an [ErrInvalidTurn] that says why. It repeats nothing of the
// turn.
type TurnError struct{ Fault TurnFault }

// Error names the fault.
func (e *TurnError) Error() string { return ErrInvalidTurn.Text + ": " + string(e.Fault) }

// Is makes errors.Is(err, ErrInvalidTurn) hold.
func (e *TurnError) Is(target error) bool { return target == error(ErrInvalidTurn) }

// FaultCode returns the code of [ErrInvalidTurn].
func (e *TurnError) FaultCode() string { return ErrInvalidTurn.Code }

// checkTurn holds a turn against its bounds before anything is sent (C-12.13).
func (c *Client) checkTurn(m Message) error {
	switch {
	case m.Text == "":
		return &TurnError{TextEmpty}
	case !utf8.ValidString(m.Text):
		return &TurnError{TextNotUTF8}
	case len(m.Text) > c.maxTurnChars && utf8.RuneCountInString(m.Text) > c.maxTurnChars:
		return &TurnError{TextTooLong}
	case len(m.ID) > MaxMessageIDBytes || !utf8.ValidString(m.ID) || strings.ContainsRune(m.ID, 0):
		return &TurnError{MessageIDBad}
	case m.EditOf < 0 || m.EditOf > maxInteger:
		return &TurnError{EditOfBad}
	}
	return nil
}

const (
	// maxWaiting bounds the messages that wait in one conversation.
	maxWaiting = 256
	// stopReserve is the room beyond it that a stop may use, and closeReserve that
	// which a close may use.
	stopReserve  = 8
	closeReserve = 16
)

// checkQueue refuses a send while limit messages wait. What the client
// remembers of how far the inbox is done with is seldom fresh, but it never
// claims too much: as long as the inbox is not longer than that by the limit
// there is room, at the cost of one point read. Else the log is asked (several
// processes may pass the limit by a little, as in C-39.7).
//
// Errors: [ErrQueueFull], [ErrClosed].
func (c *Client) checkQueue(ctx context.Context, a access, id string, limit int) error {
	k, store := a.known, c.runtime.Store()
	next, _, err := store.HeadOf(ctx, kernel.InboxStream(id))
	if err != nil || next-journal.Seq(k.passed.Load()) < journal.Seq(limit) {
		return err
	}
	waiting, passed, err := kernel.Waiting(ctx, store, id, Topic, journal.Seq(k.passed.Load()), limit)
	if err != nil {
		return uniform(err)
	}
	k.pass(passed)
	if waiting < limit {
		return nil
	}
	info, err := c.runtime.Query(ctx, a.by(), id)
	switch {
	case err != nil:
		return uniform(err)
	case info.State.Over():
		return ErrClosed // what waits there waits for ever
	}
	return ErrQueueFull
}
