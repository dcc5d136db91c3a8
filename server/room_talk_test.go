package server

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-run/parley/internal/browsertest"
)

// C-32.12: a link logs in, once, and leaves no code in the address; who comes
// without one is told what to do.
func testLink(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	stranger := browsertest.Open(t, browser, r.URL())
	stranger.Expect("status of 401") // the browser tells of each answer that is an error
	stranger.Until(`document.querySelector("#door-text").textContent.includes("You are not logged in.")`)

	link := r.link(r.URL())
	p := browsertest.Open(t, browser, link)
	p.Until(`document.querySelector("#who").textContent === "me"`)
	if got := p.Evaluate[string]("location.href"); got != r.URL()+"/" {
		t.Errorf("the address is %q after the login, want no code in it", got)
	}
	p.Until(`document.querySelector("#list-note").textContent === "No conversations yet."`)
	p.Shot(shots + "/empty.png")

	late := browsertest.Open(t, browser, link)
	late.Expect("status of 401")
	late.Until(`document.querySelector("#door-text").textContent.includes("This link is used up or too old.")`)
	late.Shot(shots + "/door.png")
	if _, code, _ := strings.Cut(link, "="); strings.Contains(r.log.String(), code) {
		t.Error("the code is in the log")
	}
}

// Design §10, C-32.12: with a cookie and a plain EventSource. The first message
// begins a conversation; its answer is text while it
// is written and markup when it is whole.
func testAnswer(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	p := r.enter()
	write(p, "briefly")
	p.Until(newest + `.classList.contains("live") && ` + newest + `.querySelector(".body").textContent.includes("word word")`)
	p.Until(newest + `.dataset.status === "complete"`)
	if got, want := p.Evaluate[string](newest+`.querySelector(".rich").textContent.trim()`), strings.TrimSpace(strings.Repeat("word ", 40)); got != want {
		t.Errorf("the whole answer is %q, want %q", got, want)
	}
	write(p, "markdown")
	p.Until(newest + `.dataset.status === "complete" && ` + newest + `.querySelector(".rich h1") && ` + newest + `.querySelector(".rich td")`)
	if got := p.Evaluate[string](`[...document.querySelectorAll(".entry")].map((e) => e.querySelector(".author").textContent + " " + e.querySelectorAll("time").length).join()`); got != "You 1,Agent 1,You 1,Agent 1" {
		t.Errorf("authors and times are %s", got)
	}
	p.Until(`document.querySelector("#list a[aria-current] .name").textContent === "briefly"`)
	p.Until(`location.hash.startsWith("#/c/") && document.title === "briefly · Parley"`)
	p.Evaluate[bool](`document.querySelector("#new").click(), true`)
	p.Until(`location.hash === "" && document.querySelectorAll(".entry").length === 0 && document.activeElement.id === "text"`)
}

// C-14.21, C-46: a message that is sent while an answer is written ends it, and so
// does the button; what was said of it stays, marked.
func testInterrupt(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	p := r.enter()
	write(p, "without end")
	p.Until(newest + `.querySelector(".body").textContent.includes("word word")`)
	write(p, "something else")
	p.Until(`document.querySelectorAll(".entry").length === 4 && ` + newest + `.dataset.status === "complete"`)
	if got := p.Evaluate[string](`[...document.querySelectorAll(".entry")].map((e) => e.querySelector(".mark").textContent).join()`); got != ",interrupted,," {
		t.Errorf("the marks are %q, want the first answer interrupted", got)
	}
	write(p, "without end, again")
	p.Until(newest + `.querySelector(".body").textContent.includes("word word")`)
	p.Click("#stop")
	p.Until(newest + `.dataset.status === "interrupted" && document.querySelector("#stop").hidden`)
	p.Shot(shots + "/interrupted.png")
}

// C-27: one's own message can be edited; both say what they are to each other.
func testEdit(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	id := r.talked("my dog is ill", "what now")
	p := r.enter()
	show(p, id, "=== 4")
	p.Evaluate[string](`document.querySelector("#text").value = "a draft"`)
	p.Evaluate[bool](`[...document.querySelectorAll(".tools button")].find((b) => b.textContent === "Edit").click(), true`)
	p.Until(`document.querySelector("#text").value === "my dog is ill" && !document.querySelector("#editing").hidden`)
	p.Shot(shots + "/editing.png")
	p.Press("\x1b") // Escape
	p.Until(`document.querySelector("#text").value === "a draft" && document.querySelector("#editing").hidden`)
	p.Evaluate[bool](`[...document.querySelectorAll(".tools button")].find((b) => b.textContent === "Edit").click(), true`)
	write(p, "my cat is ill")
	p.Until(`document.querySelectorAll(".entry").length === 6 && ` + newest + `.dataset.status === "complete"`)
	p.Until(`document.querySelectorAll(".entry")[4].querySelector(".mark").textContent === "edits the message of turn 1"`)
	p.Until(`document.querySelector(".entry").classList.contains("old") && document.querySelector("#text").value === "a draft"`)
}

// C-28.7: who loads the page anew in mid-answer sees what was said, and what comes.
func testReload(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	p := r.enter()
	write(p, "without end")
	p.Until(newest + `.querySelector(".body").textContent.includes("word word")`)
	before := p.Evaluate[int](newest + `.querySelector(".body").textContent.length`)
	p.Reload()
	p.Until(newest + `.classList.contains("live") && ` + newest + `.querySelector(".body").textContent.length > ` + fmt.Sprint(before))
	p.Click("#stop") // T98: reopened, it can still be stopped
	p.Until(newest + `.dataset.status === "interrupted"`)
}

// Two tabs of a person agree: on what is said, on the list, and on who is there.
func testTabs(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	one := r.enter()
	write(one, "briefly")
	one.Until(newest + `.classList.contains("live")`)
	two := one.Beside(one.Evaluate[string]("location.href"))
	two.Until(newest + `.dataset.status === "complete"`)
	one.Until(newest + `.dataset.status === "complete"`)
	two.Evaluate[bool](`document.querySelector("#new").click(), true`)
	write(two, "another thread")
	one.Until(`[...document.querySelectorAll("#list .name")].map((n) => n.textContent).join() === "another thread,briefly"`)
	two.Expect("status of 401")
	one.Expect("status of 401")
	two.Click("#leave")
	two.Until(`document.querySelector("#door-text").textContent.includes("You are logged out.")`)
	one.Until(`document.querySelector("#room").hidden`)
	two.Go(r.link(r.URL()))
	one.Until(`!document.querySelector("#room").hidden`)
}
