package browser

import (
	"bytes"
	"encoding/json/v2"
	"errors"
	"image/jpeg"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/body"
)

// form is a page with one of everything that is acted on.
const form = `<!doctype html><title>form</title>
<h1>A form</h1><p>Some <b>bold</b> text.</p>
<form action="/sent"><label>Name <input name="name" value="old"></label>
<label>Colour <select name="colour"><option>red</option><option>blue</option></select></label>
<textarea name="more" aria-label="More"></textarea>
<button>Send</button></form>
<button onclick="alert('watch out'); this.textContent = 'pressed'">Press</button>
<a href="/next" target="_blank">elsewhere</a> <a href="/sent?name=link">here</a>
<button onclick="setTimeout(() => document.body.append('it is late'), 200)">Later</button>
<p id=key></p><script>addEventListener("keydown", (e) => { key.textContent += e.key + "," })</script>`

// ref finds the number of an element in a text.
func ref(t *testing.T, text, element string) int {
	t.Helper()
	for line := range strings.Lines(text) {
		if number, rest, ok := strings.Cut(strings.TrimSpace(line), "] "); ok && strings.HasPrefix(rest, element) {
			n, err := strconv.Atoi(strings.TrimPrefix(number, "["))
			if err == nil {
				return n
			}
		}
	}
	t.Fatalf("no %q in:\n%s", element, text)
	return 0
}

// Each action, in one life.
func TestActions(t *testing.T) {
	needChromium(t)
	server := site(t, map[string]string{
		"/": form, "/next": "<title>next</title>",
		"/sent": `<title>sent</title><p>thanks</p><script>document.title += location.search</script>`,
	})
	b := open(t, server, nil)
	const of = body.Incarnation("x.1")

	page := do[Page](t, b, of, Open, OpenInput{server.URL})
	if diff := cmp.Diff(Page{URL: server.URL + "/", Title: "form", Status: 200}, page); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}
	text := do[Text](t, b, of, Read, nil)
	for _, part := range []string{`heading "A form" level 1`, "Some\n", "bold\n", `textbox "Name" = "old"`, `combobox "Colour" = "red"`, `link "elsewhere"`} {
		if !strings.Contains(text.Text, part) {
			t.Errorf("read has no %q:\n%s", part, text.Text)
		}
	}

	pressed := do[Page](t, b, of, Click, ClickInput{ref(t, text.Text, `button "Press"`)})
	if diff := cmp.Diff([]string{"alert: watch out"}, pressed.Dialogs); diff != "" {
		t.Errorf("dialogs of a click (-want +got):\n%s", diff)
	}
	window := do[Page](t, b, of, Click, ClickInput{ref(t, text.Text, `link "elsewhere"`)})
	if diff := cmp.Diff([]string{server.URL + "/next"}, window.Windows); diff != "" || window.Title != "form" {
		t.Errorf("windows of a click on %q (-want +got):\n%s", window.Title, diff)
	}

	do[Page](t, b, of, Click, ClickInput{ref(t, text.Text, `button "Later"`)})
	if late := do[Waited](t, b, of, Wait, WaitInput{Text: "it is late"}); !late.Found {
		t.Error("wait did not find the text")
	}
	if never := do[Waited](t, b, of, Wait, WaitInput{Text: "never", Seconds: 0.05}); never.Found {
		t.Error("wait found a text that is not there")
	}

	do[Page](t, b, of, Type, TypeInput{Ref: ref(t, text.Text, `combobox "Colour"`), Text: "blue"})
	do[Page](t, b, of, Type, TypeInput{Ref: ref(t, text.Text, `textbox "More"`), Text: "a <b> 漢"})
	do[Page](t, b, of, Press, PressInput{"x"})
	do[Page](t, b, of, Press, PressInput{"ArrowLeft"})
	values := do[Value](t, b, of, Evaluate, EvaluateInput{`[document.forms[0].colour.value, document.forms[0].more.value, key.textContent]`})
	if got, want := string(values.Value), `["blue","a <b> 漢x","x,ArrowLeft,"]`; got != want {
		t.Errorf("after type and press: %s, want %s", got, want)
	}
	if _, err := b.Perform(t.Context(), effect(of, Type, TypeInput{Ref: ref(t, text.Text, `combobox "Colour"`), Text: "green"})); !errors.Is(err, body.ErrRefused) {
		t.Errorf("an option that there is not = %v, want a refusal", err)
	}

	name := ref(t, text.Text, `textbox "Name"`)
	sent := do[Page](t, b, of, Type, TypeInput{Ref: name, Text: "Ada", Submit: true})
	if !strings.HasPrefix(sent.Title, "sent?name=Ada&colour=blue") {
		t.Errorf("a form that was sent shows %q", sent.Title)
	}
	if _, err := b.Perform(t.Context(), effect(of, Click, ClickInput{name})); !errors.Is(err, body.ErrRefused) || !strings.Contains(err.Error(), "read the page again") {
		t.Errorf("click on an element of a former page = %v, want a refusal", err)
	}

	failed := do[Page](t, b, of, Open, OpenInput{"http://127.0.0.1/"})
	if failed.Status != 403 || len(failed.Refused) != 1 {
		t.Errorf("open of a private address = %+v, want 403 and a reason", failed)
	}
}

// The REPL: variables stay, exceptions and what is no JSON are said, results are
// bounded.
func TestEvaluate(t *testing.T) {
	needChromium(t)
	b := open(t, nil, nil)
	for _, test := range []struct {
		expression, want string
	}{
		{"let a = 1", `{}`},
		{"let a = 2; a", `{"value":2}`},
		{"await new Promise((done) => setTimeout(done, 1, 'later'))", `{"value":"later"}`},
		{"throw new Error('no')", "exception: Error: no"},
		{"throw 'text'", `exception: Uncaught "text"`},
		{"NaN", `{"value":"NaN"}`},
		{"({a: [1, null]})", `{"value":{"a":[1,null]}}`},
		{"prompt('who?')", `{"value":null,"dialogs":["prompt: who?"]}`},
	} {
		v := do[Value](t, b, "x.1", Evaluate, EvaluateInput{test.expression})
		got, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		said, isException := strings.CutPrefix(test.want, "exception: ")
		if isException && !strings.HasPrefix(v.Exception, said) || !isException && string(got) != test.want {
			t.Errorf("evaluate(%s) = %s, want %s", test.expression, got, test.want)
		}
	}
	if v := do[Value](t, b, "x.1", Evaluate, EvaluateInput{"'x'.repeat(1e6)"}); !v.Truncated || len(v.Value) < MaxTextBytes || len(v.Value) > MaxTextBytes+10 {
		t.Errorf("a long value has %d bytes, truncated: %t", len(v.Value), v.Truncated)
	}
}

// Pictures and recordings are of one life, and end with it.
func TestPictures(t *testing.T) {
	needChromium(t)
	server := site(t, map[string]string{"/": `<body><script>
		const paint = () => { document.body.style.background = "rgb(" + Math.floor(performance.now() % 256) + ",9,9)"; requestAnimationFrame(paint) }; paint()</script>`})
	b := open(t, server, nil)
	do[Page](t, b, "x.1", Open, OpenInput{server.URL})
	if _, _, ok := b.Screenshot("x.1"); !ok {
		t.Error("no picture after open")
	}
	picture := do[Picture](t, b, "x.1", Screenshot, nil)
	if _, err := jpeg.Decode(bytes.NewReader(picture.Data)); err != nil || picture.MediaType != "image/jpeg" {
		t.Errorf("screenshot is no JPEG: %v", err)
	}
	if newest, _, ok := b.Screenshot("x.1"); !ok || !bytes.Equal(newest, picture.Data) {
		t.Error("the newest picture is not the one of the action")
	}
	if _, _, ok := b.Screenshot("x.2"); ok {
		t.Error("another life has the picture")
	}

	do[Recording](t, b, "x.1", RecordStart, nil)
	do[Waited](t, b, "x.1", Wait, WaitInput{Seconds: 0.5})
	recorded := do[Recording](t, b, "x.1", RecordStop, nil)
	files, _ := filepath.Glob(filepath.Join(b.config.Directory, recorded.Folder, "*.jpg"))
	if recorded.Frames == 0 || len(files) != recorded.Frames {
		t.Errorf("record_stop = %+v, and %d files", recorded, len(files))
	}
	if _, err := b.Perform(t.Context(), effect("x.1", RecordStop, nil)); !errors.Is(err, body.ErrRefused) {
		t.Errorf("a second record_stop = %v, want a refusal", err)
	}

	do[Recording](t, b, "x.1", RecordStart, nil)
	do[Closed](t, b, "x.1", Close, nil)
	if _, _, ok := b.Screenshot("x.1"); ok {
		t.Error("a picture outlived its life")
	}
	if _, err := b.Check(t.Context(), body.Life{Incarnation: "x.1", Begun: 1}); err != nil {
		t.Errorf("Check after close = %v", err)
	}
	if _, err := os.Stat(b.profile("x.1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the profile is there after close: %v", err)
	}
}
