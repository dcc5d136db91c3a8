package conversation

import "github.com/parley-run/parley/fault"

var (
	// ErrNotFound is every refusal, and a missing conversation: the two cannot
	// be told apart (C-23.7).
	ErrNotFound = fault.New("ConversationNotFoundError", "conversation not found")

	// ErrInvalidCursor says that a cursor is malformed (C-17.6).
	ErrInvalidCursor = fault.New("InvalidCursorError", "invalid cursor")

	// ErrClosed says that the conversation is over; only a caller who may send
	// is told so (C-22.8).
	ErrClosed = fault.New("ConversationClosed", "the conversation is closed")

	// ErrForbidden says that a participant of a shared conversation, who knows of
	// it anyway, may not do this (C-33.4).
	ErrForbidden = fault.New("Forbidden", "only the owner and who manages the conversation may do this")

	// ErrDelegationUnsupported says that the sender presented a credential, which
	// the host has no way to stand for in a turn of their own (C-35.7).
	ErrDelegationUnsupported = fault.New("DelegationUnsupported", "a credential cannot be used in a shared conversation")

	// ErrInvalidParticipant says that an identity cannot take part (C-34.2).
	ErrInvalidParticipant = fault.New("InvalidParticipant", "this identity cannot take part in a conversation")

	// ErrTooManyParticipants says that as many take part as may (C-33.3).
	ErrTooManyParticipants = fault.New("TooManyParticipants", "a conversation has at most 100 participants")

	// ErrOwnerStays says that the owner cannot be removed (C-33.2).
	ErrOwnerStays = fault.New("OwnerStays", "the owner of a conversation cannot be removed")

	// ErrQueueFull says that too many messages wait (C-39.4).
	ErrQueueFull = fault.New("QueueFull", "too many messages are waiting")

	// ErrTooManyReaders says that the live words of the conversation have as many
	// readers as they may have (C-28.9).
	ErrTooManyReaders = fault.New("TooManyReaders", "too many follow the conversation")

	// ErrInvalidID says that an id chosen for a conversation is not of the shape
	// of C-11.7.
	ErrInvalidID = fault.New("InvalidID", "a conversation id is 1 to 128 letters, digits, '.', '_' and '-', and begins with a letter or a digit")

	// ErrInvalidTurn says that a text or a message id is outside its bounds
	// (C-12.13). A [TurnError] says which.
	ErrInvalidTurn = fault.New("InvalidTurn", "invalid turn")
)
