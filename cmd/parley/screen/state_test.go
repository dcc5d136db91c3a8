package screen

import (
	"encoding/json/v2"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
)

var update = flag.Bool("update", false, "renew what the scripts in testdata expect")

// Each file of testdata is a session: what happens ("do"), and then what is wanted of
// the world and what stands on the screen ("see").
func TestSessions(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sessions: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := newPlay(t)
			var wishes []wish
			for i, part := range archive.Files {
				if part.Name == "do" {
					for line := range strings.Lines(string(part.Data)) {
						wishes = append(wishes, p.do(strings.TrimSpace(line))...)
					}
					continue
				}
				got := described(wishes) + screenOf(p.state)
				wishes = nil
				if *update {
					archive.Files[i].Data = []byte(got)
				} else if diff := cmp.Diff(string(part.Data), got); diff != "" {
					t.Errorf("part %d of %s (-want +got):\n%s", i+1, file, diff)
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// described is a line for each wish.
func described(wishes []wish) string {
	var lines strings.Builder
	for _, w := range wishes {
		switch w := w.(type) {
		case follow:
			fmt.Fprintf(&lines, "=> follow %s, visit %d\n", w.id, w.visit)
		case older:
			fmt.Fprintf(&lines, "=> older %s, visit %d\n", w.id, w.visit)
		case post:
			fmt.Fprintf(&lines, "=> post to %s: %s %q edits %d\n", w.id, w.message.ID, w.message.Text, w.message.EditOf)
		default:
			fmt.Fprintf(&lines, "=> %T %+v\n", w, w)
		}
	}
	return lines.String()
}

// screenOf is what stands on the screen, without colours, in a frame.
func screenOf(s *state) string {
	var lines strings.Builder
	rows := strings.Split(ansi.Strip(s.view().Content), "\n")
	for _, row := range rows {
		fmt.Fprintf(&lines, "|%s\n", strings.TrimRight(row, " "))
	}
	if len(rows) > s.height {
		fmt.Fprintf(&lines, "%d rows on a screen of %d\n", len(rows), s.height)
	}
	return lines.String()
}

// play is a state, and what the world would know.
type play struct {
	t     *testing.T
	state *state
	ord   int
}

func newPlay(t *testing.T) *play {
	p := &play{t: t, state: newState("first", time.UTC)}
	n := 0
	p.state.ids = func() string { n++; return "m" + strconv.Itoa(n) }
	p.state.begin()
	p.state.update(tea.WindowSizeMsg{Width: 60, Height: 12})
	return p
}

// do lets something happen, and returns what is wanted then.
func (p *play) do(line string) []wish {
	p.t.Helper()
	word, rest, _ := strings.Cut(line, " ")
	fields := strings.Fields(rest)
	s := p.state
	number := func(i int) int {
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			p.t.Fatalf("%s: %v", line, err)
		}
		return n
	}
	switch word {
	case "", "#":
		return nil
	case "size":
		return s.update(tea.WindowSizeMsg{Width: number(0), Height: number(1)})
	case "type":
		var wishes []wish
		for _, r := range rest {
			wishes = append(wishes, s.update(tea.KeyPressMsg{Code: r, Text: string(r)})...)
		}
		return wishes
	case "key":
		return s.update(keyNamed(rest))
	case "typed": // before the screen was there
		s.typed(p.text(rest))
		return append(s.taken(), s.begin()...)
	case "paste":
		return s.update(tea.PasteMsg{Content: p.text(rest)})
	case "opened": // N turns, more|all
		return s.update(opened{visit: s.visit, info: conversation.Info{State: conversation.StateOpen}, entries: p.turns(number(0)), done: fields[1] == "all"})
	case "shared": // N turns of a conversation of several people, of whom I am one, or manage it
		who := persons{shared: true, me: identity.Identity{Actor: "me", Tenant: identity.Some("acme")}, manages: len(fields) > 1}
		return s.update(opened{visit: s.visit, persons: who, info: conversation.Info{State: conversation.StateOpen, Shared: true}, entries: p.turns(number(0)), done: true})
	case "line": // who and what waits, as JSON
		return s.update(lined{visit: s.visit, heard: s.heard, waiting: decoded[[]conversation.Waiting](p, rest)})
	case "late": // the same, that was asked for before something happened
		return s.update(lined{visit: s.visit, heard: s.heard - 1, waiting: decoded[[]conversation.Waiting](p, rest)})
	case "met": // who takes part, as JSON
		return s.update(met{visit: s.visit, people: decoded[conversation.Participants](p, rest)})
	case "changed": // add|remove NAME
		news := changed{visit: s.visit, who: s.transcript.paper.persons.named(fields[1]), remove: fields[0] == "remove"}
		if len(fields) > 2 {
			news.err = conversation.ErrForbidden
		}
		return s.update(news)
	case "gone":
		return s.update(happened{visit: s.visit, err: conversation.ErrNotFound})
	case "history": // of one record as JSON
		return s.update(opened{visit: s.visit, info: conversation.Info{State: conversation.StateOpen}, entries: []conversation.Record{p.record(rest)}, done: true})
	case "read":
		return s.update(read{visit: s.visit, entries: p.turns(number(0)), done: fields[1] == "all"})
	case "record": // a record as JSON
		return s.update(happened{visit: s.visit, event: client.Event{Kind: client.Message, Record: p.record(rest)}})
	case "missed":
		return s.update(happened{visit: s.visit, event: client.Event{Kind: client.Message, Record: p.record(rest), Missed: true}})
	case "delta", "partial", "reset": // TURN TEXT
		turn, text, _ := strings.Cut(rest, " ")
		n, _ := strconv.Atoi(turn)
		words := conversation.Words{Kind: conversation.WordsKind(word), Turn: n, Text: p.text(text)}
		return s.update(happened{visit: s.visit, event: client.Event{Kind: client.Kind(word), Words: words}})
	case "status", "lost", "closed":
		return s.update(happened{visit: s.visit, event: client.Event{Kind: client.Kind(word)}})
	case "stale": // an event of a visit before this one
		return s.update(happened{visit: s.visit - 1, event: client.Event{Kind: client.Message, Record: p.record(rest)}})
	case "away":
		return s.update(away(rest == "yes"))
	case "posted":
		var err error
		switch rest {
		case "":
		case "unreachable":
			err = errors.New("connection refused")
		default:
			err = &client.Error{Status: 400, Code: "bad request", Reason: rest}
		}
		return s.update(posted{err: err})
	case "started":
		return s.update(started{id: rest})
	case "listed":
		var page conversation.Listing
		for _, id := range fields {
			page.Conversations = append(page.Conversations, conversation.Listed{Info: conversation.Info{ID: id, State: conversation.StateOpen}, Title: "about " + id})
		}
		page.Done = true
		return s.update(listed{page: page})
	}
	p.t.Fatalf("unknown: %s", line)
	return nil
}

// text is a text in quotes.
func (p *play) text(quoted string) string {
	p.t.Helper()
	if quoted == "" {
		return ""
	}
	text, err := strconv.Unquote(quoted)
	if err != nil {
		p.t.Fatalf("%s: %v", quoted, err)
	}
	return text
}

// decoded is what JSON says.
func decoded[T any](p *play, data string) (value T) {
	p.t.Helper()
	if err := json.Unmarshal([]byte(data), &value); err != nil {
		p.t.Fatalf("%s: %v", data, err)
	}
	return value
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// record is a record, at noon.
func (p *play) record(data string) conversation.Record {
	p.t.Helper()
	record := conversation.Record{Time: noon}
	if err := json.Unmarshal([]byte(data), &record); err != nil {
		p.t.Fatalf("%s: %v", data, err)
	}
	return record
}

// turns is that many turns before those of earlier calls, the newest first.
func (p *play) turns(n int) (records []conversation.Record) {
	p.ord -= 2 * n
	for i := n; i > 0; i-- {
		turn, ord := p.ord/2+i+100, p.ord+2*i+200
		records = append(records,
			conversation.Record{Turn: turn, Ord: ord, Role: conversation.RoleAssistant, Status: conversation.StatusComplete, Time: noon, Text: fmt.Sprintf("answer *%d*", turn)},
			conversation.Record{Turn: turn, Ord: ord - 1, Role: conversation.RoleUser, Status: conversation.StatusAccepted, Time: noon, Text: fmt.Sprintf("question %d", turn), Asker: &identity.Identity{Actor: "ann"}})
	}
	return records
}

// keyNamed is the press of a key.
func keyNamed(name string) tea.KeyPressMsg {
	codes := map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown,
		"pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "end": tea.KeyEnd,
	}
	var k tea.KeyPressMsg
	for {
		if rest, ok := strings.CutPrefix(name, "ctrl+"); ok {
			k.Mod, name = k.Mod|tea.ModCtrl, rest
		} else if rest, ok := strings.CutPrefix(name, "alt+"); ok {
			k.Mod, name = k.Mod|tea.ModAlt, rest
		} else {
			break
		}
	}
	if k.Code = codes[name]; k.Code == 0 {
		k.Code = rune(name[0])
	}
	return k
}
