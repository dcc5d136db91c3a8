package screen

import (
	"errors"
	"fmt"
	"strings"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/cmd/parley/printable"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
)

// persons is what is known of who can write in a conversation. In one that is not
// shared that is the person alone.
type persons struct {
	shared  bool
	me      identity.Identity
	manages bool // the person may add and remove others, and end their answers
}

// mine reports whether a record is of what the person has asked.
func (p *persons) mine(record *conversation.Record) bool {
	return !p.shared || record.Asker != nil && *record.Asker == p.me
}

// name is what somebody is called; of the person's own tenant without that.
func (p *persons) name(who *identity.Identity) string {
	if who == nil {
		return "somebody"
	}
	name := who.Actor
	if tenant, ok := who.Tenant.Value(); ok && who.Tenant != p.me.Tenant {
		name += " of " + tenant
	}
	if other, ok := who.OnBehalfOf.Value(); ok {
		name += ", on behalf of " + other
	}
	return printable.Line(name)
}

// named is somebody of the person's own tenant.
func (p *persons) named(actor string) identity.Identity {
	return identity.Identity{Tenant: p.me.Tenant, Actor: actor}
}

// begins reports whether a record is a question that is answered next; of a restricted
// one more is not known.
func begins(record conversation.Record) bool {
	return record.Status == conversation.StatusAccepted ||
		record.Status == conversation.StatusRestricted && record.Role == conversation.RoleUser
}

// runs takes in that a question is being answered.
func (s *state) runs(record conversation.Record) {
	s.running, s.other = record.Turn, ""
	if p := &s.transcript.paper.persons; !p.mine(&record) {
		s.other = p.name(record.Asker)
	}
}

// haltable reports whether an answer is written that the person may end.
func (s *state) haltable() bool {
	return s.running > 0 && (s.other == "" || s.transcript.paper.persons.manages)
}

// peopleCommand does what /people, /add and /remove ask for.
func (s *state) peopleCommand(name, who string) (mistake string) {
	switch {
	case !s.transcript.paper.persons.shared:
		return "nobody else can take part here; /share starts a thread in which others can"
	case name == "/people" && who == "":
		s.want(people{visit: s.visit, id: s.id})
	case name == "/people":
		return "/people stands alone; /add NAME and /remove NAME change who takes part"
	case who == "":
		return name + " takes the NAME of a person"
	default:
		s.want(change{visit: s.visit, id: s.id, who: s.transcript.paper.persons.named(who), remove: name == "/remove"})
	}
	return ""
}

// met shows who takes part.
func (s *state) met(news met) {
	if news.visit != s.visit {
		return
	}
	if news.err != nil {
		s.tell("who takes part cannot be read: %s", refusal(news.err))
		return
	}
	p := &s.transcript.paper.persons
	p.manages = news.people.Manages
	lines := []string{count(len(news.people.Participants), "person takes", "people take") + " part:", ""}
	for _, one := range news.people.Participants {
		line := p.name(&one.Identity)
		if one.Identity == p.me {
			line += " (you)"
		}
		if one.Owner {
			line += ", whose conversation it is"
		}
		lines = append(lines, line)
	}
	if p.manages {
		lines = append(lines, "", "/add NAME and /remove NAME change that.")
	}
	s.sheet = strings.Join(lines, "\n")
	s.place, s.helpFrom = inHelp, 0
}

// changed tells what became of adding or removing somebody.
func (s *state) changed(news changed) {
	name := s.transcript.paper.persons.name(&news.who)
	switch {
	case news.visit != s.visit:
	case news.err != nil && news.remove:
		s.tell("%s was not removed: %s", name, refusal(news.err))
	case news.err != nil:
		s.tell("%s was not added: %s", name, refusal(news.err))
	case news.remove:
		s.tell("%s takes no part any more", name)
	default:
		s.tell("%s takes part now", name)
	}
}

// askLine asks at which places the person's messages wait.
func (s *state) askLine() {
	if s.running > 0 || len(s.transcript.waiting) > 0 {
		s.heard++
		s.want(line{visit: s.visit, id: s.id, heard: s.heard})
	}
}

// lined takes in which messages wait. Those of the person's that nobody knows here were
// sent from elsewhere, and go when they wait no more.
func (s *state) lined(news lined) {
	if news.visit != s.visit || news.heard != s.heard || news.err != nil {
		return // more has happened, or the stream tells what is wrong
	}
	t := &s.transcript
	t.hold(func() {
		found := map[*entry]int{}
		for i, w := range news.waiting {
			if !w.Mine {
				continue
			}
			e := t.waits(w.Text, found)
			if e == nil {
				e = &entry{id: s.ids(), text: w.Text, sent: true, elsewhere: true}
				t.waiting = append(t.waiting, e)
			}
			found[e] = i + 1
		}
		kept := t.waiting[:0]
		for _, e := range t.waiting {
			if e.place != found[e] {
				e.place, e.rows = found[e], nil
			}
			if !e.elsewhere || e.place > 0 {
				kept = append(kept, e)
			}
		}
		t.waiting = kept
	})
}

// waits returns the message of a text that waits and is none of those that were found.
func (t *transcript) waits(text string, found map[*entry]int) *entry {
	for _, e := range t.waiting {
		if _, is := found[e]; !is && e.unsent == "" && strings.TrimSpace(e.text) == strings.TrimSpace(text) {
			return e
		}
	}
	return nil
}

// nth is a place in a line.
func nth(n int) string {
	ends := map[int]string{1: "st", 2: "nd", 3: "rd"}
	if n%100 >= 11 && n%100 <= 13 {
		ends = nil
	}
	end, ok := ends[n%10]
	if !ok {
		end = "th"
	}
	return fmt.Sprintf("%d%s in line", n, end)
}

// ended says why a conversation cannot be followed. Who could read it and cannot any
// more takes no part.
func (s *state) ended(err error) {
	if !s.transcript.paper.persons.shared || !errors.Is(err, conversation.ErrNotFound) {
		s.tell("the conversation cannot be followed: %s", refusal(err))
		return
	}
	s.closed, s.running, s.other = true, 0, ""
	s.tell("you take no part in this conversation any more")
	s.want(list{})
}

// refusedPerson says why somebody cannot be added or removed, "" if it is for another
// reason.
func refusedPerson(err error) string {
	for _, why := range []error{conversation.ErrInvalidParticipant, conversation.ErrTooManyParticipants, conversation.ErrOwnerStays} {
		if errors.Is(err, why) {
			return why.Error()
		}
	}
	if errors.Is(err, conversation.ErrForbidden) || errors.Is(err, client.ErrForbidden) {
		return "you are not allowed to"
	}
	return ""
}
