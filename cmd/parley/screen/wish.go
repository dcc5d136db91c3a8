package screen

import (
	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
)

// wish is something that the state wants of the world: one of the types below.
type wish any

type (
	// open reads how a conversation stands and its newest entries; opened tells.
	// What was followed before is followed no longer.
	open struct {
		visit int // tells one showing of a conversation from the others
		id    string
	}
	// follow tells what happens in a conversation from a place on, as happened.
	follow struct {
		visit int
		id    string
		from  *conversation.Cursor
	}
	// older reads the entries before a place; read tells.
	older struct {
		visit  int
		id     string
		before conversation.Cursor
	}
	// list reads a page of the conversations; listed tells.
	list struct{ after string }
	// start starts a conversation, in which others may take part if it is shared;
	// started tells.
	start struct{ shared bool }
	// people reads who takes part; met tells.
	people struct {
		visit int
		id    string
	}
	// change adds somebody to who takes part, or removes them; changed tells.
	change struct {
		visit  int
		id     string
		who    identity.Identity
		remove bool
	}
	// line reads which messages wait; lined tells.
	line struct {
		visit int
		id    string
		heard int // tells this asking from the others
	}
	// post sends a message; posted tells. One is on its way at a time.
	post struct {
		id      string
		message conversation.Message
	}
	// halt ends a turn; halted tells if it could not be.
	halt struct {
		id   string
		turn int
	}
	// suspend lets the shell have the terminal for a while.
	suspend struct{}
	// leave ends the chat.
	leave struct{}
)

// The news of the world. An err that is not nil says why there is nothing else.
type (
	opened struct {
		visit   int
		info    conversation.Info
		persons persons
		entries []conversation.Record // the newest first
		before  conversation.Cursor   // where older ones are
		done    bool                  // there are none
		err     error
	}
	read struct {
		visit   int
		entries []conversation.Record // the newest first
		before  conversation.Cursor
		done    bool
		err     error
	}
	happened struct {
		visit int
		event client.Event
		err   error // the last one of a visit
	}
	listed struct {
		after string
		page  conversation.Listing
		err   error
	}
	started struct {
		id  string
		err error
	}
	met struct {
		visit  int
		people conversation.Participants
		err    error
	}
	changed struct {
		visit  int
		who    identity.Identity
		remove bool
		err    error
	}
	lined struct {
		visit   int
		heard   int
		waiting []conversation.Waiting // in the order in which they are taken up
		err     error
	}
	posted struct{ err error }
	halted struct{ err error }
	away   bool
)
