package conversation

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
)

// Whatever the order of a turn is, it is refused or within its bounds, and what is
// read of it is all that is in it.
func FuzzTurnOrder(f *testing.F) {
	order := turnOrder{
		V: 1, Conversation: "room", N: 1, Turn: 1, Message: senderKey(&ann.Identity, "m"), Asker: ann.Identity, Owner: bob.Identity,
		Text: asSaid("hello"), Shown: []int{1, 3}, Summary: true,
	}
	whole := string(encoded(f, order))
	f.Add(whole)
	for _, change := range [][2]string{
		{`"n":1`, `"n":-1`},
		{`"turn":1`, `"turn":0`},
		{`"v":1`, `"v":2`},
		{`"room"`, `"turn:room"`},
		{`"actor":"ann"`, `"actor":""`},
		{`"conversation:user"`, `"tool:x"`},
		{`[1,3]`, `[` + strings.Repeat("1,", maxCarriedTurns) + `1]`},
		{`"shown"`, `"hidden"`},
	} {
		f.Add(strings.Replace(whole, change[0], change[1], 1))
	}
	f.Fuzz(func(t *testing.T, input string) {
		read, err := parseTurnOrder([]byte(input))
		if err != nil {
			if err != error(errTurnOrder) || read.Conversation != "" {
				t.Errorf("parseTurnOrder(%q) = %+v, %v", input, read, err)
			}
			return
		}
		if !idPattern.MatchString(read.Conversation) || read.N <= 0 || len(read.Shown) > maxCarriedTurns || read.Asker.Validate() != nil {
			t.Errorf("parseTurnOrder(%q) = %+v", input, read)
		}
		if again, err := parseTurnOrder(encoded(t, read)); err != nil || string(encoded(t, again)) != string(encoded(t, read)) {
			t.Errorf("what was read is read again as %+v, %v", again, err)
		}
	})
}

// Whatever an event of a side stream holds, nobody takes part whom it does not name
// as the whole identity that they are, and nothing but a change counts (C-33.8).
func FuzzParticipantsEvent(f *testing.F) {
	change := participantChanged{Who: bob.Identity, Added: true, By: ann.Identity, Roster: []Participant{{Identity: bob.Identity, Since: testTime}}}
	whole := string(encoded(f, change))
	f.Add(KindParticipantChanged, whole)
	f.Add("SOMETHING", whole)
	f.Add(KindParticipantChanged, strings.Replace(whole, "roster", "Roster", 1))
	f.Add(KindParticipantChanged, `{"roster":null}`)
	f.Add(KindParticipantChanged, `[`)
	f.Fuzz(func(t *testing.T, kind, data string) {
		store := memory.New()
		err := store.Append(t.Context(), journal.Append{Stream: ParticipantsPrefix + "room", Events: []journal.Event{{Kind: kind, Time: testTime, Data: []byte(data)}}})
		if err != nil {
			return // no store would hold it
		}
		roster, err := LogParticipants(store).Roster(t.Context(), "room")
		if kind != KindParticipantChanged && (len(roster) > 0 || err != nil) {
			t.Errorf("a %q makes %v participants, %v", kind, roster, err)
		}
		if err != nil && (roster != nil || strings.Contains(err.Error(), data) && len(data) > 20) {
			t.Errorf("%q: %v, %v", data, roster, err)
		}
		var fields struct {
			Roster []jsontext.Value `json:"roster"`
		}
		if err == nil && kind == KindParticipantChanged && (json.Unmarshal([]byte(data), &fields) != nil || len(fields.Roster) != len(roster)) {
			t.Errorf("%q makes %v participants", data, roster)
		}
	})
}

// Sets of classes that no build has made are in no record and in no carry (C-36.7).
func TestHostileClasses(t *testing.T) {
	many := make([]string, maxClasses+1)
	for i := range many {
		many[i] = fmt.Sprintf("c%04d", i)
	}
	for name, c := range map[string]struct {
		classes []string
		ok      bool
	}{
		"none": {nil, true}, "two": {[]string{"a", "b"}, true}, "as many as may be": {many[1:], true},
		"a memory's of the longest": {[]string{memoryClass + strings.Repeat("s", maxScopeBytes)}, true},
		"too many":                  {many, false}, "unsorted": {[]string{"b", "a"}, false}, "twice": {[]string{"a", "a"}, false},
		"empty": {[]string{""}, false}, "too long": {[]string{memoryClass + strings.Repeat("s", maxScopeBytes+1)}, false},
	} {
		r := Record{Turn: 1, Ord: 1, Role: RoleUser, Status: StatusAccepted, Text: "hi", Asker: &ann.Identity, Time: testTime, Classes: c.classes}
		event := journal.Event{Kind: kernel.KindDecided, ID: idUser(1), Data: encoded(t, kernel.Decided{Source: SourceRecord, Value: encoded(t, r)})}
		if _, ok := RecordOf(event); ok != c.ok {
			t.Errorf("%s: RecordOf takes the classes: %v, want %v", name, ok, c.ok)
		}
		carry := fullCarry(1, 10, 100)
		carry.Turns[0].Classes = c.classes
		if _, err := CarryOf(encoded(t, carry), 1); (err == nil) != c.ok {
			t.Errorf("%s: CarryOf takes the classes: %v, want %v", name, err == nil, c.ok)
		}
	}
	for _, classes := range []string{`"secret"`, `{"0":"secret"}`, `[1]`, `[null]`, `[["secret"]]`} {
		value := `{"turn":1,"ord":1,"role":"user","status":"accepted","text":"hi","time":"2030-01-02T03:04:05Z","classes":` + classes + `}`
		event := journal.Event{Kind: kernel.KindDecided, ID: idUser(1), Data: encoded(t, kernel.Decided{Source: SourceRecord, Value: jsontext.Value(value)})}
		if r, ok := RecordOf(event); ok {
			t.Errorf("classes that are %s are read as %q", classes, r.Classes)
		}
	}
}
