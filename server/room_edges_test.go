package server

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/internal/browsertest"
)

// C-27: what an edit replaces is shown as such after a reload too, also where it
// comes with an older page than the edit; a rejected edit replaces nothing.
func testEditsReadBack(t *testing.T, browser context.Context) {
	queue := false
	r := newRoom(t, browser, func(s *Settings) { s.BargeIn = &queue })
	id := r.talked("my dog is ill", "what now")
	p := r.enter()
	show(p, id, "=== 4")
	p.Evaluate[bool](`[...document.querySelectorAll(".tools button")].find((b) => b.textContent === "Edit").click(), true`)
	write(p, "my cat is ill")
	p.Until(`document.querySelectorAll(".entry").length === 6 && ` + newest + `.dataset.status === "complete"`)
	p.Reload()
	p.Until(`document.querySelectorAll(".entry").length === 6`)
	if got := p.Evaluate[string](`[...document.querySelectorAll(".entry")].map((e) => e.classList.contains("old")).join()`); got != "true,false,false,false,false,false" {
		t.Errorf("after a reload the replaced entries are %s, want the first", got)
	}

	// With more in between than a page holds, and with an edit that is rejected.
	for i := range 30 {
		r.sendBeside(id, fmt.Sprintf("more %d", i))
	}
	answer(t, r.me(), id, 33)
	rejected := conversation.Message{Text: "no edit", EditOf: 4}
	if _, err := r.me().Send(t.Context(), id, rejected); err != nil {
		t.Fatal(err)
	}
	p.Reload()
	p.Until(`document.querySelectorAll(".entry").length >= 50`)
	p.Until(newest + `.querySelector(".why").textContent.includes("only your own messages")`)
	p.Evaluate[bool](`document.querySelector("#scroll").scrollTop = 0, true`)
	p.Until(`document.querySelectorAll(".entry").length === 67`)
	if got := p.Evaluate[string](`[...document.querySelectorAll(".entry.old .body")].map((e) => e.textContent).join()`); got != "my dog is ill" {
		t.Errorf("the replaced entries are %q, want the first", got)
	}
}

// What waits to be sent is not taken for the same words that were said before.
func testSameWords(t *testing.T, browser context.Context) {
	wire := newWire(t)
	r := newRoom(t, browser, func(s *Settings) { s.AllowedOrigins = []string{wire.url()} })
	wire.to(r.URL())
	one, other := r.talked("yes"), r.talked("other")
	p := browsertest.Open(t, browser, r.link(wire.url()))
	p.Expect("net::ERR_")
	p.Until(`!document.querySelector("#room").hidden`)
	show(p, other, "=== 2")
	show(p, one, "=== 2")
	// Only what is sent is held up: the page can read.
	p.Evaluate[bool](`window.fetched = fetch, window.fetch = (path, init) => init.method === "POST" ? Promise.reject(new TypeError()) : fetched(path, init), true`)
	write(p, "yes")
	p.Until(newest + `.querySelector(".mark").textContent === "waiting"`)
	show(p, other, "=== 2")
	show(p, one, ">= 2")
	p.Until(`document.querySelector("#older").textContent === ""`)
	p.Painted()
	if got := p.Evaluate[string](newest + `.querySelector(".mark").textContent`); got != "waiting" {
		t.Errorf("what waits is shown as %q", got)
	}
	p.Evaluate[bool](`window.fetch = fetched, dispatchEvent(new Event("online")), true`)
	answer(t, r.me(), one, 2)
}

// After each thing that is done the focus is where one goes on.
func testFocus(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	id := r.talked("hello")
	p := r.enter()
	show(p, id, "=== 2")
	write(p, "without end")
	p.Until(newest + `.querySelector(".body").textContent.includes("word word")`)
	p.Evaluate[bool](`document.querySelector("#stop").focus(), true`)
	p.Enter()
	p.Until(newest + `.dataset.status === "interrupted" && document.querySelector("#stop").hidden`)
	p.Painted()
	if got := p.Evaluate[string](`document.activeElement.id`); got != "text" {
		t.Errorf("after a stop the focus is on %q", got)
	}
	p.Resize(320, 640)
	p.Until(`document.querySelector("#threads").getBoundingClientRect().right <= 0`)
	p.Click("#menu")
	p.Until(`document.activeElement.id === "new"`)
	p.Evaluate[bool](`document.querySelector("#list a").focus(), true`)
	p.Enter()
	p.Until(`getComputedStyle(document.querySelector("#threads")).visibility === "hidden"`)
	p.Painted()
	if got := p.Evaluate[string](`document.activeElement.id`); got != "scroll" {
		t.Errorf("after a conversation was chosen in the menu the focus is on %q", got)
	}
	p.Expect("status of 401")
	p.Resize(1024, 768)
	p.Click("#leave")
	p.Until(`!document.querySelector("#door").hidden`)
	p.Painted()
	if got := p.Evaluate[string](`document.activeElement.id`); got != "door" {
		t.Errorf("after the log out the focus is on %q", got)
	}
}

// A word that is being composed is not sent by the Enter that ends it, in whatever
// way the browser tells of it.
func testComposing(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	p := r.enter()
	p.Evaluate[bool](`(window.box = document.querySelector("#text")).value = "にほ", true`)
	for _, init := range []string{`{ key: "Enter", isComposing: true }`, `{ key: "Enter", keyCode: 229 }`} {
		p.Evaluate[bool](`box.dispatchEvent(new KeyboardEvent("keydown", { bubbles: true, cancelable: true, ...` + init + ` }))`)
		if p.Evaluate[int](`document.querySelectorAll(".entry").length`) != 0 {
			t.Fatalf("Enter with %s sends", init)
		}
	}
	p.Evaluate[bool](`document.querySelector("#send").focus(), true`)
	p.Evaluate[bool](`(document.querySelector("#send").click(), document.querySelector("#send").click(), true)`)
	p.Until(`document.querySelectorAll(".entry").length === 2 && ` + newest + `.dataset.status === "complete"`)
	if got := p.Evaluate[string](`document.querySelector("#advice").textContent`); got != "" {
		t.Errorf("after a double click the page says %q", got)
	}
}

// What waits its turn is there still after a reload.
func testWaiting(t *testing.T, browser context.Context) {
	queue := false
	r := newRoom(t, browser, func(s *Settings) { s.BargeIn = &queue })
	p := r.enter()
	write(p, "without end")
	p.Until(newest + `.classList.contains("live") && ` + newest + `.querySelector(".body").textContent.includes("word word")`)
	write(p, "yes")
	p.Until(newest + `.querySelector(".mark").textContent === "sent"`)
	write(p, "yes")
	p.Until(`document.querySelectorAll(".entry").length === 4 && ` + newest + `.querySelector(".mark").textContent === "sent"`)
	p.Reload()
	p.Until(`document.querySelector(".entry.live") !== null`)
	p.Until(`document.querySelectorAll(".entry").length === 4`)
	p.Click("#stop")
	p.Until(`document.querySelectorAll(".entry").length === 6 && ` + newest + `.dataset.status === "complete"`)
	if got := p.Evaluate[string](`[...document.querySelectorAll(".user .body")].map((e) => e.textContent).join()`); got != "without end,yes,yes" {
		t.Errorf("the messages are %s", got)
	}
}

// Copy puts the text of a message, and not its markup, into the clipboard, and
// says so.
func testCopy(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	id := r.talked("markdown")
	p := r.enter()
	show(p, id, "=== 2")
	p.Click(".entry.agent .tools button")
	p.Until(newest + `.querySelector(".tools button").textContent === "Copied"`)
	p.Evaluate[bool](`document.querySelector("#text").focus(), true`)
	p.Paste()
	p.Until(`document.querySelector("#text").value.startsWith("# A heading\n\nSome **bold** words")`)
	p.Evaluate[bool](`Object.defineProperty(navigator, "clipboard", { value: undefined }), true`)
	p.Click(".entry.user .tools button")
	p.Until(`document.querySelector(".entry.user .tools button").textContent === "Not copied"`)
}

// A title is something that can be seen, and the search finds what looks the same
// as the words that are sought.
func testTitles(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	r.talked("cafe\u0301 \u061c")
	r.talked("\u200b\u2060")
	p := r.enter()
	p.Until(`[...document.querySelectorAll("#list .name")].map((n) => n.textContent).join() === "Conversation,cafe\u0301"`)
	p.Evaluate[bool](`(document.querySelector("#search").value = "CAF\u00c9", document.querySelector("#search").dispatchEvent(new Event("input")), true)`)
	p.Until(`document.querySelectorAll("#list li").length === 1`)
}

// Accents that are piled up cover nobody else's words.
func testPiles(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	id := r.talked("one", "Z"+strings.Repeat("\u0301\u0310\u0335", 300))
	p := r.enter()
	show(p, id, "=== 4")
	if got := p.Evaluate[string](`[...document.querySelectorAll(".entry .body")].map((e) => getComputedStyle(e).overflowY).join()`); got != "clip,clip,clip,clip" {
		t.Errorf("what does not fit into a message is %s", got)
	}
	p.Shot(shots + "/piles.png")
}

// A screen reader is told what became of a message that was not sent.
func testToldNotSent(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	p := r.enter()
	p.Expect("status of 4")
	p.Evaluate[string](`document.querySelector("#text").value = "0123456789".repeat(20000)`)
	p.Click("#send")
	p.Until(`document.querySelector("#spoken").textContent === "not sent. The message is too long. Send it in pieces."`)
}

// Who leaves is held back for what would be lost, and for nothing that is on
// record.
func testLeaving(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	id := r.talked("hello")
	p := r.enter()
	show(p, id, "=== 2")
	const held = `!dispatchEvent(new Event("beforeunload", { cancelable: true }))`
	p.Evaluate[bool](`window.fetched = fetch, window.fetch = (path, init) => init.method === "POST" ? new Promise((done) => { window.go = () => fetched(path, init); }) : fetched(path, init), true`)
	write(p, "on its way")
	p.Until(`window.go`)
	if !p.Evaluate[bool](held) {
		t.Error("nobody is held back for a message that is on its way")
	}
	p.Evaluate[bool](`go(), true`) // the server hears it; the page does not hear the server
	p.Until(`document.querySelectorAll(".entry").length === 4 && ` + newest + `.dataset.status === "complete"`)
	if p.Evaluate[bool](held) {
		t.Error("one is held back for a message that is on record")
	}
}
