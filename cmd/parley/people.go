package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/cmd/parley/printable"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
)

// readers is who can write in a conversation, as far as it matters to who talks there.
type readers struct {
	shared bool
	me     identity.Identity // where it is shared
}

// readersOf asks the server.
func readersOf(ctx context.Context, server *client.Client, id string) (readers, error) {
	info, err := server.Status(ctx, id)
	if err != nil || !info.Shared {
		return readers{}, err
	}
	me, err := server.Who(ctx)
	return readers{shared: true, me: me}, err
}

// mine reports whether an entry is of what the person has asked.
func (r readers) mine(record conversation.Record) bool {
	return !r.shared || record.Asker != nil && *record.Asker == r.me
}

// name says who has asked.
func (r readers) name(record conversation.Record) string {
	switch {
	case r.mine(record):
		return "you"
	case record.Asker == nil:
		return "somebody"
	}
	return r.called(*record.Asker)
}

// called is what somebody is called; of the person's own tenant without that.
func (r readers) called(who identity.Identity) string {
	name := who.Actor
	if tenant, ok := who.Tenant.Value(); ok && who.Tenant != r.me.Tenant {
		name += " of " + tenant
	}
	if other, ok := who.OnBehalfOf.Value(); ok {
		name += ", on behalf of " + other
	}
	return printable.Line(name)
}

// begins reports whether an entry is a question that is answered next.
func begins(record conversation.Record) bool {
	return record.Status == conversation.StatusAccepted ||
		record.Status == conversation.StatusRestricted && record.Role == conversation.RoleUser
}

// overhear takes in an entry of somebody else's. A person is shown it; the output of a
// pipe has the answers to its own lines alone.
func (t *talk) overhear(record conversation.Record) {
	if t.interactive {
		t.live.freshLine()
		writeEntry(t.terminal.out, record, t.readers)
	}
	switch {
	case begins(record):
		t.answers(record)
	case record.Role == conversation.RoleAssistant:
		t.other = ""
	}
}

// answers takes in that somebody else is answered, of whose answer no words come.
func (t *talk) answers(question conversation.Record) {
	t.other = t.readers.name(question)
	if t.interactive {
		t.note("%s is being answered", t.other)
	}
}

// place says at which place in the line a message waits that was sent just now, if
// others stand before it.
func (t *talk) place(text string) {
	var waiting []conversation.Waiting
	t.want(order{
		do: persistent(func(ctx context.Context) (err error) {
			waiting, err = t.server.Waiting(ctx, t.id)
			return err
		}),
		done: func(err error) error {
			for i, w := range waiting {
				if w.Mine && w.Text == text && (i > 0 || t.other != "") {
					t.note("your message waits, with %d before it", i+1)
					break
				}
			}
			return err
		},
	})
}

// people does what /people, /add and /remove ask for.
func (t *talk) people(command, who string) {
	switch {
	case !t.readers.shared:
		t.mistake("nobody else can take part here; parley chat --shared starts a conversation in which others can")
	case command == "/people" && who == "":
		t.listPeople()
	case command == "/people" || who == "":
		t.mistake("it is /people, /add NAME, or /remove NAME")
	default:
		t.changePeople(who, command == "/remove")
	}
}

func (t *talk) listPeople() {
	var people conversation.Participants
	t.want(order{
		do: persistent(func(ctx context.Context) (err error) {
			people, err = t.server.Participants(ctx, t.id)
			return err
		}),
		done: func(err error) error {
			var list strings.Builder
			for _, p := range people.Participants {
				list.WriteString(t.readers.called(p.Identity))
				if p.Identity == t.readers.me {
					list.WriteString(" (you)")
				}
				if p.Owner {
					list.WriteString(", whose conversation it is")
				}
				list.WriteString("\n")
			}
			if err == nil {
				t.live.freshLine()
				fmt.Fprint(t.terminal.out, list.String())
			}
			return err
		},
	})
}

// changePeople adds somebody of the person's own tenant, or removes them.
func (t *talk) changePeople(actor string, remove bool) {
	who := identity.Identity{Tenant: t.readers.me.Tenant, Actor: actor}
	ask, done := t.server.AddParticipant, "takes part now"
	if remove {
		ask, done = t.server.RemoveParticipant, "takes no part any more"
	}
	t.want(order{
		do: persistent(func(ctx context.Context) error { return ask(ctx, t.id, who) }),
		done: func(err error) error {
			for _, why := range []error{conversation.ErrInvalidParticipant, conversation.ErrTooManyParticipants, conversation.ErrOwnerStays} {
				if errors.Is(err, why) {
					t.mistake(why.Error())
					return nil
				}
			}
			if errors.Is(err, conversation.ErrForbidden) {
				t.mistake("you are not allowed to change who takes part")
				return nil
			}
			if err == nil {
				t.note("%s %s", t.readers.called(who), done)
			}
			return err
		},
	})
}
