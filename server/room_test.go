package server

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/internal/browsertest"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/journal/sqlite"
)

// shots is where the tests leave their photographs, for people to look at.
const shots = "../.shots"

// roomScript is what the agent of the tests says.
const roomScript = `when has "sentences"
  words "The first sentence is here. Is the second one? The third has no end" 20ms
when has "briefly"
  repeat 40 "word " 20ms
when has "without end"
  forever "word " 20ms
when has "trouble"
  say "One moment, I shall look."
  fail unavailable "the line is down"
when has "at length"
  repeat 2000 "This sentence has a hundred characters, so that two thousand of it are two hundred thousand of them. "
when has "markdown"
  say "# A heading\n\nSome **bold** words, ` + "`code`" + `, and [a link](https://example.org).\n\n- one\n- two\n\n1. first\n2. second\n\n> a quotation\n\n` + "```go\\nfunc main() { fmt.Println(\\\"a line that is too long for a window of any telephone that there is\\\") }\\n```" + `\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
otherwise
  reply
`

// room is a server whose page a test looks at, and who is there.
type room struct {
	*running
	t       *testing.T
	browser context.Context
	log     *logged
}

// newRoom starts a server on a journal in memory, with changes to its settings.
func newRoom(t *testing.T, browser context.Context, change ...func(*Settings)) *room {
	t.Helper()
	w := newWorld(t)
	script := filepath.Join(t.TempDir(), "room.script")
	if err := os.WriteFile(script, []byte(roomScript), 0o600); err != nil {
		t.Fatal(err)
	}
	w.config.Settings.Model, w.config.Settings.PostsPerMinute = "script:"+script, 1e6
	w.config.open = func(context.Context, string, sqlite.Config) (journal.Store, error) { return memory.New(), nil }
	for _, change := range change {
		change(&w.config.Settings)
	}
	r := &room{running: w.start(), t: t, browser: browser, log: w.log}
	t.Cleanup(r.end)
	return r
}

// link is an address that logs me in, at a server that is met at base.
func (r *room) link(base string) string {
	r.t.Helper()
	_, code, err := r.Directory().CreateLink(r.t.Context(), Owner, time.Hour)
	if err != nil {
		r.t.Fatal(err)
	}
	return base + "/#code=" + code.Reveal()
}

// enter opens the page by a link.
func (r *room) enter() *browsertest.Page {
	r.t.Helper()
	p := browsertest.Open(r.t, r.browser, r.link(r.URL()))
	p.Until(`!document.querySelector("#room").hidden`)
	return p
}

// talked starts a conversation in which something was said and answered.
func (r *room) talked(texts ...string) string {
	r.t.Helper()
	id, err := r.me().Start(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, text := range texts {
		say(r.t, r.me(), id, text)
	}
	return id
}

// sendBeside says something past the page.
func (r *room) sendBeside(id, text string) {
	r.t.Helper()
	if _, err := r.me().Send(r.t.Context(), id, conversation.Message{Text: text}); err != nil {
		r.t.Fatal(err)
	}
}

// show opens a conversation in the page, once it has so many entries.
func show(p *browsertest.Page, id string, entries string) {
	p.Evaluate[string](`location.hash = "#/c/` + id + `"`)
	p.Until(`document.querySelectorAll(".entry").length ` + entries)
}

// write says something in the page.
func write(p *browsertest.Page, text string) {
	p.Evaluate[bool](`document.querySelector("#text").focus(), document.querySelector("#text").value = ` + browsertest.Quote(text) + `, true`)
	p.Enter()
}

// newest is the last entry of the page.
const newest = `[...document.querySelectorAll(".entry")].at(-1)`

// TestRoom (C-30.13, C-32.12) is the page, in a real browser and under its own policy; one browser
// serves all of it.
func TestRoom(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes its time")
	}
	browser := browsertest.Start(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, context.Context)
	}{ // the longest first, so that none is left alone at the end
		{"two thousand", testTwoThousand},
		{"lost line", testLostLine},
		{"widths", testWidths},
		{"tabs", testTabs},
		{"shift", testNoShift},
		{"long", testLong},
		{"picture", testPicture},
		{"link", testLink},
		{"answer", testAnswer},
		{"interrupt and stop", testInterrupt},
		{"edit", testEdit},
		{"reload", testReload},
		{"failures", testFailures},
		{"switching", testSwitching},
		{"search", testSearch},
		{"hostile", testHostile},
		{"session's end", testSessionEnds},
		{"closed", testClosed},
		{"contrast and scales", testLooks},
		{"keyboard", testKeyboard},
		{"speaker", testSpeaker},
		{"edits read back", testEditsReadBack},
		{"same words", testSameWords},
		{"focus", testFocus},
		{"composing", testComposing},
		{"waiting", testWaiting},
		{"copy", testCopy},
		{"titles", testTitles},
		{"piles", testPiles},
		{"told", testToldNotSent},
		{"people", testPeople},
		{"restricted", testRestricted},
		{"queue", testQueue},
		{"places", testPlaces},
		{"leaving", testLeaving},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, browser)
		})
	}
}
