package server

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/parley-run/parley/internal/browsertest"
)

var update = flag.Bool("update", false, "renew the picture of the README")

// contrasts gives each text whose colour is too near to that of its ground.
const contrasts = `(() => {
	const parse = (text) => { const n = text.match(/[\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
	const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const ground = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; } return [255, 255, 255, 1]; };
	const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((m, n) => n - m); return (x + 0.05) / (y + 0.05); };
	const failing = [];
	for (const e of document.querySelectorAll("body *")) {
		if (!e.checkVisibility({ visibilityProperty: true }) || e.disabled) continue;
		const texts = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) ? [""] : [];
		if (e.placeholder) texts.push("::placeholder");
		if (!["none", "\"\"", "normal"].includes(getComputedStyle(e, "::before").content)) texts.push("::before");
		for (const part of texts) {
			const r = ratio(parse(getComputedStyle(e, part).color), ground(e));
			if (r < 4.5) failing.push(e.tagName + "#" + e.id + "." + e.className + part + " " + r.toFixed(2));
		}
	}
	return failing;
})()`

// scales gives each size of type, and each inner or outer distance, that is not on
// its scale.
const scales = `(() => {
	const type = [13, 16, 20], space = [0, 4, 8, 16, 24, 48], failing = new Set();
	for (const e of document.querySelectorAll("body, body *")) {
		if (!e.checkVisibility() || e.matches(".unseen, .unseen *")) continue;
		const style = getComputedStyle(e), name = e.tagName + "#" + e.id + "." + e.className;
		if (!type.includes(parseFloat(style.fontSize))) failing.add(name + " font " + style.fontSize);
		for (const side of ["paddingTop", "paddingRight", "paddingBottom", "paddingLeft", "marginTop", "marginBottom", "rowGap", "columnGap"]) {
			const pixels = parseFloat(style[side]);
			if (!Number.isNaN(pixels) && !space.includes(pixels)) failing.add(name + " " + side + " " + style[side]);
		}
	}
	return [...failing];
})()`

// everything brings each state of the page into view that can stand beside the
// others.
func everything(r *room) *browsertest.Page {
	id := r.talked("hello", "markdown", "trouble")
	p := r.enter()
	show(p, id, "=== 6")
	p.Evaluate[bool](`import("/entry.js").then(({ entryOf }) => {
		for (const record of [{ role: "user", status: "rejected", reason: "stale", text: "x" }, { role: "assistant", status: "restricted" }, { role: "user", status: "accepted", text: "old" }])
			document.querySelector("#entries").append(entryOf({ turn: 1, time: new Date().toISOString(), ...record }, null, () => {}).element);
		document.querySelector(".entry:last-child").classList.add("old");
		document.querySelector("#line").textContent = "The connection is lost.";
		document.querySelector("#older").textContent = "Reading older messages …";
		document.querySelector("#list-note").textContent = "Searching …";
		return true;
	})`)
	p.Evaluate[bool](`document.querySelectorAll(".tools button")[1].click(), true`)
	p.Evaluate[bool](`document.querySelector("#advice").textContent = "Write something first.", document.querySelector("#stop").hidden = document.querySelector("#jump").hidden = false, true`)
	return p
}

// Every text has a contrast of 4.5 to 1 at least, in light and in dark, and every
// size is on its scale.
func testLooks(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	p := everything(r)
	for _, scheme := range []string{"light", "dark"} {
		p.Prefer("prefers-color-scheme", scheme)
		if failing := p.Evaluate[[]string](contrasts); len(failing) > 0 {
			t.Errorf("in %s these texts are too faint:\n%s", scheme, strings.Join(failing, "\n"))
		}
		p.Shot(shots + "/states-" + scheme + ".png")
	}
	if failing := p.Evaluate[[]string](scales); len(failing) > 0 {
		t.Errorf("these sizes are on no scale:\n%s", strings.Join(failing, "\n"))
	}
	p.Prefer("prefers-reduced-motion", "reduce")
	if got := p.Evaluate[string](`(document.querySelector(".entry").classList.add("live"), getComputedStyle(document.querySelector(".entry .mark"), "::before").animationName)`); got != "none" {
		t.Errorf("something moves (%s) for who wants less motion", got)
	}
}

// From 320 pixels on nothing is cut off or out of reach, and what is to be hit is
// large enough.
func testWidths(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	p := everything(r)
	for _, size := range [][2]int64{{320, 640}, {768, 1024}, {1440, 900}} {
		p.Resize(size[0], size[1])
		p.Until(`innerWidth > 736 || document.querySelector("#threads").getBoundingClientRect().right <= 0`)
		for _, scheme := range []string{"light", "dark"} {
			p.Prefer("prefers-color-scheme", scheme)
			p.Evaluate[bool](`document.querySelector("#scroll").scrollTop = 600, true`)
			p.Shot(fmt.Sprintf("%s/%d-%s.png", shots, size[0], scheme))
		}
		failing := p.Evaluate[[]string](`[...document.querySelectorAll("body, body *")].filter((e) => {
			if (!e.checkVisibility({ visibilityProperty: true }) || e.closest("pre, table, .unseen, #skip")) return false;
			const box = e.getBoundingClientRect();
			return box.right > innerWidth + 0.5 || box.left < -0.5 || e.tagName === "BUTTON" && (box.height < 24 || box.width < 24);
		}).map((e) => e.tagName + "#" + e.id + "." + e.className)`)
		if len(failing) > 0 {
			t.Errorf("at %d pixels these are cut off, or too small to hit: %v", size[0], failing)
		}
	}
	p.Resize(320, 640)
	p.Until(`document.querySelector("#threads").getBoundingClientRect().right <= 0`)
	p.Click("#menu")
	p.Until(`document.querySelector("#threads").getBoundingClientRect().left === 0 && document.activeElement.id === "new"`)
	p.Shot(shots + "/320-menu.png")
	p.Click("#list a")
	p.Until(`getComputedStyle(document.querySelector("#threads")).visibility === "hidden"`)
}

// Nothing moves while words arrive, nor when the whole answer takes their place.
func testNoShift(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	id := r.talked("hello")
	p := r.enter()
	for _, width := range []int64{320, 1440} {
		p.Resize(width, 700)
		show(p, id, ">= 2")
		p.Evaluate[bool](`window.shifts = [], window.watch?.disconnect(), window.watch = new PerformanceObserver((list) => note(list.getEntries())),
			window.note = (all) => { for (const e of all) shifts.push(e.value.toFixed(5) + e.sources.map((s) => " " + s.node?.nodeName + "." + s.node?.className + JSON.stringify([s.previousRect, s.currentRect])).join()); },
			watch.observe({ type: "layout-shift" }), true`)
		r.sendBeside(id, "briefly")
		p.Until(newest + `.classList.contains("live")`)
		p.Until(newest + `.dataset.status === "complete"`)
		r.sendBeside(id, "sentences")
		p.Until(newest + `.classList.contains("live")`)
		p.Until(newest + `.dataset.status === "complete"`)
		p.Painted()
		if got := p.Evaluate[[]string](`note(watch.takeRecords()), shifts`); len(got) > 0 {
			t.Errorf("at %d pixels the layout shifts while words arrive:\n%s", width, strings.Join(got, "\n"))
		}
	}
}

// Everything can be reached and done with the keyboard, and where one is can be
// seen.
func testKeyboard(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	id := r.talked("hello")
	p := r.enter()
	show(p, id, "=== 2")
	p.Evaluate[bool](`document.activeElement.blur(), true`)
	var reached []string
	for range 14 {
		p.Press("\t")
		reached = append(reached, p.Evaluate[string](`(() => {
			const e = document.activeElement, outline = getComputedStyle(e).outlineStyle;
			return (e.id || (e.closest("[id]")?.id ?? "") + " " + e.textContent.slice(0, 5)) + (e !== document.body && outline === "none" ? " unseen" : "");
		})()`))
	}
	for _, want := range []string{"skip", "new", "search", "list hello", "leave", "scroll", "entries Copy", "entries Edit", "text", "send"} {
		if !slices.Contains(reached, want) {
			t.Errorf("the keyboard reaches %q, want %q among them", reached, want)
		}
	}
	p.Evaluate[bool](`document.querySelector("#skip").focus(), true`)
	p.Enter()
	p.Until(`document.activeElement.id === "text"`)
	p.Press("one")
	p.Enter(chromedp.ModifierShift)
	p.Press("two")
	p.Until(`document.querySelector("#text").value === "one\ntwo"`)
	p.Enter()
	p.Until(`document.querySelectorAll(".entry").length === 4 && ` + newest + `.dataset.status === "complete"`)
}

// A screen reader is told an answer sentence by sentence, while it is written, and
// each sentence once.
func testSpeaker(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	p := r.enter()
	p.Evaluate[bool](`(window.told = [], new MutationObserver((all) => all.forEach((m) => m.addedNodes.forEach((n) => told.push((` + newest + `.classList.contains("live") ? "live: " : "") + n.textContent))))
		.observe(document.querySelector("#spoken"), { childList: true }), true)`)
	write(p, "sentences")
	p.Until(newest + `.dataset.status === "complete"`)
	got := p.Evaluate[string](`told.join("|")`)
	if want := "live: The first sentence is here.|live: Is the second one?|The third has no end"; got != want {
		t.Errorf("a screen reader is told %q, want %q", got, want)
	}
}

// The picture of the README, renewed with -update.
func testPicture(t *testing.T, browser context.Context) {
	w := newWorld(t)
	r := &room{running: w.start(), t: t, browser: browser}
	t.Cleanup(r.end)
	r.talked("My father never writes.")
	r.talked("I cannot sleep when it rains.")
	id := r.talked("I am tired of my server.", "My server needs me.", "It crashes at night.")
	p := r.enter()
	p.Resize(1100, 720)
	show(p, id, "=== 6")
	p.Until(`document.querySelectorAll("#list li").length === 3`)
	p.Shot(shots + "/readme.png")
	if *update {
		p.Shot("../docs/page.png")
	}
}
