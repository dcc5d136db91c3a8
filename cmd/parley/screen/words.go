package screen

import (
	"errors"
	"fmt"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
)

// reasons says in words why a message was not taken (C-13.3) or a turn failed
// (C-25.2).
var reasons = map[conversation.Reason]string{
	conversation.ReasonMalformed:       "it came damaged",
	conversation.ReasonUnauthenticated: "nobody knows who sent it",
	conversation.ReasonReplayed:        "it had come before",
	conversation.ReasonStale:           "it came too late",
	conversation.ReasonNotParticipant:  "you take no part in this conversation",
	conversation.ReasonEditInvalid:     "only a message of your own that the agent still has before it can be edited",
	conversation.ReasonPromptTooLarge:  "it does not fit into the model's context window; send it in pieces",
	conversation.ReasonModelError:      "the model failed",
	conversation.ReasonDenied:          "it was not allowed",
	conversation.ReasonTurnFailed:      "the turn failed",
	conversation.ReasonCancelled:       "it was cancelled",
}

// mark says what is to be known of an entry besides its text, "" if nothing is.
func mark(record *conversation.Record) string {
	why, known := reasons[record.Reason]
	if !known {
		why = string(record.Reason)
	}
	switch record.Status {
	case conversation.StatusInterrupted:
		return "[interrupted]"
	case conversation.StatusRestricted:
		return "[restricted: you are not cleared for what this has touched]"
	case conversation.StatusRejected:
		return "[not taken: " + why + "]"
	case conversation.StatusFailed:
		if record.ErrorID != "" {
			why += ", error id " + record.ErrorID
		}
		return "[no answer: " + why + "]"
	}
	return ""
}

// refusal says why the server did not take a request.
func refusal(err error) string {
	refused, ok := errors.AsType[*client.Error](err)
	person := refusedPerson(err)
	switch {
	case person != "":
		return person
	case ok && refused.Reason == string(conversation.TextTooLong), errors.Is(err, client.ErrTooLarge):
		return "it is too long; send it in pieces"
	case errors.Is(err, conversation.ErrClosed):
		return "the conversation is closed"
	case errors.Is(err, conversation.ErrQueueFull):
		return "too many messages wait; try again later"
	case errors.Is(err, conversation.ErrNotFound):
		return "there is no such conversation of yours"
	case errors.Is(err, client.ErrUnauthorized):
		return "the server does not know this token; make another with: parley token create"
	case ok:
		return err.Error()
	}
	return "the server cannot be reached"
}

// count is a number of things in words.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// help is what /help shows.
const help = `Enter          sends; while an answer is written it interrupts it
Alt+Enter      begins a new line, Ctrl+J too
Esc, Ctrl+X    end the answer that is being written
PgUp, PgDn     scroll; so do Up and Down while the field is empty
Ctrl+End       goes back to the end
Ctrl+R         picks a message of yours to edit
Ctrl+T         the threads; Enter opens one
Ctrl+N         a new thread
Ctrl+C         ends the answer, or leaves
Ctrl+D         leaves when all is sent
Ctrl+Z         suspends

/stop            ends the answer
/edit ORD TEXT   says TEXT in place of your message #ORD
/history [N]     scrolls back over N entries, 10 unless said
/share           starts a thread in which others can take part
/people          lists who takes part
/add NAME        lets somebody of your tenant take part; /remove NAME ends it
/help            shows this
//TEXT           says a text that begins with a slash`
