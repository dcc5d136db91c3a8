package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-run/parley/internal/browsertest"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/journal/sqlite"
)

// peopleScript is what the agent says to several people; the clock stands for a tool
// whose results not everybody may see.
const peopleScript = `when has "alerts"
  call clock {}
then
  say "CANARY-said"
when has "CANARY-asked"
  say "CANARY-again"
when has "without end"
  forever "word " 20ms
otherwise
  reply
`

// peopleRules clear ann for what the clock says, and bob not.
const peopleRules = `
listen = "127.0.0.1:0"
model = "script:%s"
posts_per_minute = 10000
allowed_origins = ["%s"]

[sharing.tools]
clock = ["incident"]

[[sharing.people]]
tenant = "acme"
actor = "ann"
clears = ["incident"]
tools = ["clock"]
starts = true
`

// newParty starts a server for several people, whom bob meets over a wire.
func newParty(t *testing.T, browser context.Context) (*room, *wire) {
	t.Helper()
	wire := newWire(t)
	script := filepath.Join(t.TempDir(), "room.script")
	if err := os.WriteFile(script, []byte(peopleScript), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.config.Settings = configured(t, fmt.Sprintf(peopleRules, script, wire.url()))
	w.config.open = func(context.Context, string, sqlite.Config) (journal.Store, error) { return memory.New(), nil }
	r := &room{running: w.start(), t: t, browser: browser, log: w.log}
	t.Cleanup(r.end)
	wire.to(r.URL())
	return r, wire
}

// enterAs opens the page as somebody of acme's.
func (r *room) enterAs(actor, base string) *browsertest.Page {
	r.t.Helper()
	_, code, err := r.Directory().CreateLink(r.t.Context(), person("acme", actor, ""), time.Hour)
	if err != nil {
		r.t.Fatal(err)
	}
	p := browsertest.Open(r.t, r.browser, base+"/#code="+code.Reveal())
	p.Until(`!document.querySelector("#room").hidden`)
	return p
}

// shared starts a conversation of ann's in which bob takes part.
func (r *room) shared() (id string) {
	r.t.Helper()
	ann := r.as(r.token("ann"))
	id, err := ann.StartShared(r.t.Context())
	if err == nil {
		err = ann.AddParticipant(r.t.Context(), id, person("acme", "bob", ""))
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// add adds somebody in the panel of the page.
func add(p *browsertest.Page, actor string) {
	p.Evaluate[bool](`document.querySelector("#actor").focus(), document.querySelector("#actor").value = ` + browsertest.Quote(actor) + `, true`)
	p.Enter()
}

// C-33, T87: who begins a shared conversation says in it who takes part, and is told
// why somebody cannot; the others see it in their list, and who was removed is told.
func testPeople(t *testing.T, browser context.Context) {
	r, _ := newParty(t, browser)
	ann, bob := r.enterAs("ann", r.URL()), r.enterAs("bob", r.URL())
	bob.Expect("status of 403")
	bob.Click("#new-shared")
	bob.Until(`document.querySelector("#list-note").textContent === "You may not start shared conversations."`)

	ann.Click("#new-shared")
	ann.Until(`document.querySelector("#panel").open && !document.querySelector("#add").hidden && document.activeElement.id === "actor"`)
	ann.Expect("status of 400")
	add(ann, strings.Repeat("ä", 200))
	ann.Until(`document.querySelector("#panel-note").textContent === "Nobody of this name can take part."`)
	add(ann, "bob")
	ann.Until(`document.querySelector("#panel-note").textContent === "bob takes part now." && document.querySelectorAll("#people-list li").length === 2`)
	for _, scheme := range []string{"light", "dark"} {
		ann.Prefer("prefers-color-scheme", scheme)
		if failing := ann.Evaluate[[]string](contrasts); len(failing) > 0 {
			t.Errorf("in %s these texts are too faint:\n%s", scheme, strings.Join(failing, "\n"))
		}
		ann.Shot(shots + "/people-" + scheme + ".png")
	}
	if failing := ann.Evaluate[[]string](scales); len(failing) > 0 {
		t.Errorf("these sizes are on no scale:\n%s", strings.Join(failing, "\n"))
	}
	ann.Resize(320, 640)
	if got := ann.Evaluate[bool](`(({ left, right, bottom }) => left >= 0 && right <= innerWidth && bottom <= innerHeight)(document.querySelector("#panel").getBoundingClientRect())`); !got {
		t.Error("at 320 pixels the panel is cut off")
	}
	ann.Shot(shots + "/320-people.png")
	ann.Resize(1024, 768)
	ann.Press("\x1b") // Escape
	ann.Until(`!document.querySelector("#panel").open && document.querySelector("#people").textContent === "2 people"`)
	write(ann, "hello")
	ann.Until(newest + `.dataset.status === "complete"`)

	bob.Reload()
	bob.Until(`document.querySelector("#list a .note").textContent.endsWith(", shared")`)
	bob.Click("#list a")
	bob.Until(`[...document.querySelectorAll(".author")].map((e) => e.textContent).join() === "ann,Agent" && document.querySelector("#people").textContent === "2 people"`)
	bob.Click("#people")
	bob.Until(`document.querySelector("#panel").open && document.querySelector("#add").hidden && document.querySelectorAll("#people-list button").length === 0`)
	bob.Click("#panel-close")
	write(bob, "hello too")
	ann.Until(`[...document.querySelectorAll(".author")].map((e) => e.textContent).join() === "You,Agent,bob,Agent" && ` + newest + `.dataset.status === "complete"`)

	bob.Expect("status of 404")
	ann.Click("#people")
	ann.Click("#people-list button")
	ann.Until(`document.querySelector("#panel-note").textContent === "bob takes no part any more." && document.querySelector("#people").textContent === "Only you"`)
	ann.Click("#panel-close")
	write(ann, "without bob")
	bob.Until(`document.querySelector("#advice").textContent === "You take no part in this conversation any more." && document.querySelector("#text").disabled`)
	bob.Until(`document.querySelectorAll("#list li").length === 0 && document.querySelector("#people").hidden`)
	bob.Shot(shots + "/removed.png")
}

// C-37, T89, T92: what somebody may not see is drawn as that, question and answer,
// and nothing of it comes to their browser.
func testRestricted(t *testing.T, browser context.Context) {
	r, wire := newParty(t, browser)
	id := r.shared()
	ann, bob := r.enterAs("ann", r.URL()), r.enterAs("bob", wire.url())
	show(bob, id, "=== 0")
	bob.Until(`document.querySelector("#people").textContent === "2 people"`)
	show(ann, id, "=== 0")
	write(ann, "the alerts")
	ann.Until(newest + `.textContent.includes("CANARY-said") && ` + newest + `.dataset.status === "complete"`)
	write(ann, "CANARY-asked?")
	ann.Until(newest + `.textContent.includes("CANARY-again") && ` + newest + `.dataset.status === "complete"`)
	const drawn = `[...document.querySelectorAll(".entry")].map((e) => e.querySelector(".author").textContent + " " + e.dataset.status).join() === "ann accepted,Agent restricted,ann restricted,Agent restricted"`
	bob.Until(drawn)
	bob.Shot(shots + "/restricted.png")
	bob.Reload()
	bob.Until(drawn)
	if got := bob.Evaluate[string](newest + `.querySelector(".body").textContent`); got != "Restricted: you are not cleared for what this has touched." {
		t.Errorf("a restricted answer is drawn as %q", got)
	}
	if strings.Contains(bob.Evaluate[string](`document.documentElement.outerHTML`), "CANARY") {
		t.Error("something restricted is in bob's page")
	}
	switch heard := wire.said(); {
	case !strings.Contains(heard, "the alerts"):
		t.Error("the wire was not listened to")
	case strings.Contains(heard, "CANARY") || strings.Contains(heard, "incident"):
		t.Error("something restricted came to bob's browser")
	}
}

// C-37.9, C-39: words come to who asked alone; while another is answered messages
// wait, each at its place, also after a reload and in another tab; one interrupts
// one's own answer and nobody else's.
func testQueue(t *testing.T, browser context.Context) {
	r, _ := newParty(t, browser)
	id := r.shared()
	ann, bob := r.enterAs("ann", r.URL()), r.enterAs("bob", r.URL())
	show(bob, id, "=== 0")
	bob.Until(`document.querySelector("#people").textContent === "2 people"`)
	bob.Evaluate[bool](`(window.words = 0, new MutationObserver(() => { if (document.querySelector("#entries").textContent.includes("word word")) words++; }).observe(document.body, { childList: true, subtree: true, characterData: true }), true)`)
	show(ann, id, "=== 0")
	write(ann, "without end")
	ann.Until(newest + `.classList.contains("live") && ` + newest + `.querySelector(".body").textContent.includes("word word")`)
	bob.Until(newest + `.querySelector(".mark").textContent === "ann is being answered" && document.querySelector("#stop").hidden`)
	write(bob, "bob's first")
	write(bob, "bob's second")
	const places = `[...document.querySelectorAll(".entry")].map((e) => e.querySelector(".mark").textContent).join() === ",ann is being answered,1st in line,2nd in line"`
	bob.Until(places + ` && document.querySelector("#advice").dataset.hint === "What you send waits for its turn."`)
	bob.Shot(shots + "/queue.png")
	if got := bob.Evaluate[int](`words`); got != 0 {
		t.Errorf("words of ann's answer were %d times in bob's page", got)
	}
	bob.Resize(320, 640)
	bob.Shot(shots + "/320-queue.png")
	bob.Reload()
	bob.Until(places)
	beside := bob.Beside(bob.Evaluate[string]("location.href"))
	beside.Until(places)
	if !ann.Evaluate[bool](newest + `.classList.contains("live") && document.querySelector("#advice").dataset.hint === "What you send interrupts the answer."`) {
		t.Error("bob's messages have interrupted ann's answer")
	}
	write(ann, "never mind")
	const all = `[...document.querySelectorAll(".entry")].map((e) => e.dataset.status).join() === "accepted,interrupted,accepted,interrupted,accepted,complete,accepted,complete"` // bob has cut his own first one short
	for _, p := range []*browsertest.Page{ann, bob, beside} {
		p.Until(all)
	}
	if got := bob.Evaluate[string](`[...document.querySelectorAll(".entry.user .author")].map((e) => e.textContent).join()`); got != "ann,You,You,ann" {
		t.Errorf("the questions are of %s", got)
	}

	write(bob, "without end")
	ann.Until(newest + `.querySelector(".mark").textContent === "bob is being answered" && !document.querySelector("#stop").hidden`)
	ann.Click("#stop") // the owner may
	bob.Until(newest + `.dataset.status === "interrupted" && document.querySelector("#stop").hidden`)
}

// C-39, C-14.21: in a conversation of one owner what waits is seen in another tab,
// where nothing interrupts.
func testPlaces(t *testing.T, browser context.Context) {
	queue := false
	r := newRoom(t, browser, func(s *Settings) { s.BargeIn = &queue })
	p := r.enter()
	write(p, "without end")
	p.Until(newest + `.querySelector(".body").textContent.includes("word word")`)
	write(p, "waits")
	p.Until(newest + `.querySelector(".mark").textContent === "1st in line"`)
	beside := p.Beside(p.Evaluate[string]("location.href"))
	beside.Until(`document.querySelectorAll(".entry").length === 3 && ` + newest + `.querySelector(".mark").textContent === "1st in line"`)
	p.Click("#stop")
	for _, p := range []*browsertest.Page{p, beside} {
		p.Until(`document.querySelectorAll(".entry").length === 4 && ` + newest + `.dataset.status === "complete"`)
	}
}
