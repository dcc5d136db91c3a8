package server

import (
	"context"
	"strings"
	"testing"
)

// hostile are texts that would be more than texts to a careless page.
var hostile = []string{
	`<script>window.harmed = true</script>`,
	`<img src=x onerror="window.harmed = true">`,
	"[click me](javascript:window.harmed=true) and [me](data:text/html,<script>window.harmed=true</script>)",
	"![tracked](https://tracker.example/pixel.png)",
	`<a href="javascript:window.harmed=true" onclick="window.harmed=true">x</a><style>body{display:none}</style>`,
	"\u202eevil\u2066 of all that follows",
	`"><svg onload=window.harmed=true>`,
	"<form action=/session><input name=code><button>go</button></form><iframe srcdoc='<script>parent.harmed=true</script>'>",
}

// C-30.13: what people and models say stays text, or becomes harmless markup; here
// the agent repeats what the person says, and a title is made of it.
func testHostile(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	p := r.enter()
	id := r.talked(hostile...)
	for _, text := range hostile {
		r.talked(text)
	}
	show(p, id, "=== 16")
	p.Until(`document.querySelectorAll("#list li").length === 9`)
	for _, test := range []struct{ what, script string }{
		{"a script has run", `"harmed" in window`},
		{"an element is shown that nobody made", `document.querySelector("#entries :is(script, img, svg, style, form, input, iframe, object)") !== null`},
		{"what a person says has elements", `[...document.querySelectorAll(".user .body")].some((b) => b.childElementCount > 0)`},
		{"a link leads to a script", `[...document.querySelectorAll("#entries a")].some((a) => !["https:", "http:", "mailto:"].includes(a.protocol))`},
		{"an element has a handler or a style", `[...document.querySelectorAll("#entries *")].some((e) => [...e.attributes].some((a) => a.name.startsWith("on") || a.name === "style"))`},
		{"a title turns the direction", `[...document.querySelectorAll("#list .name, #title, title")].some((e) => /[\u202a-\u202e\u2066-\u2069]/.test(e.textContent))`},
		{"something is asked for elsewhere", `performance.getEntriesByType("resource").some((e) => !e.name.startsWith(location.origin))`},
	} {
		if p.Evaluate[bool](test.script) {
			t.Errorf("%s; the page shows:\n%s", test.what, p.Text())
		}
	}
	got := p.Evaluate[[]string](`[...document.querySelectorAll(".user .body")].map((b) => b.textContent)`)
	if strings.Join(got, "\n") != strings.Join(hostile, "\n") {
		t.Errorf("the person's words are shown as %q, want %q", got, hostile)
	}
	p.Shot(shots + "/hostile.png")
}

// C-30.13: an answer of 200,000 characters is shown whole, and the page stays at
// hand; a message that is too long comes back to who wrote it.
func testLong(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	p := r.enter()
	write(p, "at length")
	p.Until(newest + `.dataset.status === "complete" && ` + newest + `.querySelector(".body").textContent.length >= 200000`)
	p.Shot(shots + "/long.png")
	p.Expect("status of 4")
	long := strings.Repeat("0123456789", 20_000)
	p.Evaluate[string](`document.querySelector("#text").value = "0123456789".repeat(20000)`)
	p.Click("#send")
	p.Until(newest + `.querySelector(".mark").textContent === "not sent" && ` + newest + `.querySelector(".why").textContent.includes("too long")`)
	p.Click(".entry:last-child .tools button")
	if got := p.Evaluate[string](`document.querySelector("#text").value`); got != long {
		t.Errorf("%d characters come back, want all %d", len(got), len(long))
	}
}

// What failed, was rejected or may not be seen is shown as such, with its reason in
// words.
func testFailures(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	p := r.enter()
	write(p, "trouble")
	p.Until(newest + `.dataset.status === "failed" && ` + newest + `.querySelector(".why").textContent.startsWith("The model failed. Error id: ")`)
	for _, test := range []struct{ record, want string }{
		{`{role: "user", status: "rejected", reason: "prompt-too-large", text: "x"}`, "not taken: Not taken: it does not fit into what the model can read at once. Send it in pieces."},
		{`{role: "user", status: "rejected", reason: "edit-invalid", editOf: 3, text: "x"}`, "not taken: Not taken: only your own messages can be edited that the agent still has before it."},
		{`{role: "assistant", status: "failed", reason: "what-is-to-come"}`, "failed: It failed, and the server does not say why."},
		{`{role: "assistant", status: "restricted"}`, "restricted: "},
	} {
		got := p.Evaluate[string](`import("/entry.js").then(({ entryOf }) => {
			const { element } = entryOf({ turn: 1, time: new Date().toISOString(), ...` + test.record + ` }, { actor: "me" }, () => {});
			document.querySelector("#entries").append(element);
			return element.querySelector(".mark").textContent + ": " + element.querySelector(".why").textContent;
		})`)
		if got != test.want {
			t.Errorf("%s is shown with %q, want %q", test.record, got, test.want)
		}
	}
	if got := p.Evaluate[string](newest + `.querySelector(".body").textContent`); got != "Restricted: you are not cleared for what this has touched." {
		t.Errorf("a restricted entry is shown as %q", got)
	}
	p.Evaluate[bool](`document.querySelector("#scroll").scrollTop = 1e6, true`)
	p.Shot(shots + "/failures.png")
}
