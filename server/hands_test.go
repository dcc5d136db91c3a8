package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/internal/browsertest"
)

// handsScript drives the browser by what people say.
const handsScript = `when has "secret page"
  call browser_open {"url": "%[1]s/secret"}
then
  call browser_read {}
then
  results
when has "other page"
  call browser_open {"url": "%[1]s/other"}
then
  results
when has "look"
  call browser_read {}
then
  results
when has "inside"
  call browser_open {"url": "%[2]s"}
then
  results
when has "who"
  call lease_status {}
then
  results
when has "wait for"
  call lease_queue {"resource": "browser", "incarnation": "browser.0"}
then
  results
when has "give back"
  call lease_release {"resource": "browser"}
then
  results
when has "another part"
  call lease_release {"resource": "wings"}
then
  results
when has "close"
  call browser_close {}
then
  results
otherwise
  reply
`

// handsWorld is a server whose agent has a browser and a script, and the site that
// the browser may reach.
func handsWorld(t *testing.T, more string) *world {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "CANARYCOOKIE", Value: "1"})
		fmt.Fprintf(w, "<title>CANARYTITLE %s</title><p>This is %s with %d cookies</p>", r.URL.Path, r.URL.Path, len(r.Cookies()))
	}))
	t.Cleanup(site.Close)
	w := newWorld(t)
	script := filepath.Join(t.TempDir(), "hands.script")
	text := fmt.Sprintf(handsScript, site.URL, "http://127.0.0.1:1/")
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.config.Settings = configured(t, fmt.Sprintf("listen = \"127.0.0.1:0\"\nmodel = %q\n%s\n[browser]\nallow = [%q]\n",
		"script:"+script, more, strings.TrimPrefix(site.URL, "http://")))
	return w
}

func begin(t *testing.T, c *client.Client) string {
	t.Helper()
	id, err := c.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// until says a text until the answer has what is wanted: a browser that was closed
// is free when its end was seen.
func until(t *testing.T, c *client.Client, id, text, want string) string {
	t.Helper()
	got := ""
	for deadline := time.Now().Add(40 * time.Second); !strings.Contains(got, want); {
		if time.Now().After(deadline) {
			t.Fatalf("%q is answered %q, want %q in it", text, got, want)
		}
		got = say(t, c, id, text).Text
	}
	return got
}

// L-1.7, L-2.6, L-19, L-30: two conversations and one browser. The second is told
// that it is taken and by which conversation, and nothing of the page; it gets the
// browser when it was given back, without anything of the first one's in it; a
// restart blocks nothing for long. No token is anywhere.
func TestBrowserIsShared(t *testing.T) {
	browsertest.Need(t)
	w := handsWorld(t, "")
	s := w.start()
	me := s.me()
	first, second := begin(t, me), begin(t, me)
	told := say(t, me, first, "the secret page").Text
	if !strings.Contains(told, "CANARYTITLE /secret") || !strings.Contains(told, "This is /secret with 0 cookies") {
		t.Fatalf("the first is told %q", told)
	}
	for _, text := range []string{"the other page", "look", "close"} {
		told = say(t, me, second, text).Text
		if !strings.Contains(told, `"busy"`) || !strings.Contains(told, first) || strings.Contains(told, "CANARY") || strings.Contains(told, "/secret") {
			t.Errorf("while the browser is taken, %q is answered %q", text, told)
		}
	}
	if told = say(t, me, second, "give it, give back").Text; !strings.Contains(told, "stale_token") {
		t.Errorf("who holds nothing gives back: %q", told)
	}
	if told = say(t, me, second, "who has it").Text; !strings.Contains(told, `"held"`) || !strings.Contains(told, first) || strings.Contains(told, "CANARY") {
		t.Errorf("the status is %q", told)
	}
	if told = say(t, me, first, "look").Text; !strings.Contains(told, "This is /secret") { // in a later turn
		t.Errorf("the first looks again: %q", told)
	}
	if told = say(t, me, first, "give back").Text; !strings.Contains(told, `"released":true`) {
		t.Errorf("the first gives back: %q", told)
	}
	if told = until(t, me, second, "look", "about:blank"); strings.Contains(told, "CANARY") {
		t.Errorf("the second sees %q", told)
	}
	say(t, me, second, "the other page")
	if told = say(t, me, second, "look").Text; !strings.Contains(told, "This is /other with 0 cookies") {
		t.Errorf("the second has %q", told)
	}
	s.end()

	s = w.start() // the second held it
	me = s.me()
	told = until(t, me, first, "the secret page", "This is /secret with 0 cookies")
	if strings.Contains(told, "/other") {
		t.Errorf("after the restart the first sees %q", told)
	}
	say(t, me, first, "close")
	until(t, me, second, "the other page", "CANARYTITLE /other")
	s.end()
	replays(t, filepath.Join(w.config.Data, "parley.db"), first)
	for _, secret := range []string{"lease_", "CANARY", "/secret"} {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("the log has %q:\n%s", secret, w.log)
		}
	}
}

// L-20.3, C-45: who waits for the browser is told when it was given back, in a notice
// that reaches the model and the person, once; who waits for what is over is told so.
func TestBrowserIsQueued(t *testing.T) {
	browsertest.Need(t)
	t.Run("by a conversation of one owner", func(t *testing.T) { queues(t, (*client.Client).Start) })
	t.Run("by a shared one", func(t *testing.T) { queues(t, (*client.Client).StartShared) })
}

func queues(t *testing.T, start func(*client.Client, context.Context) (string, error)) {
	w := handsWorld(t, "")
	s := w.start()
	defer s.end()
	me := s.me()
	first := begin(t, me)
	second, err := start(me, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	say(t, me, first, "the secret page")
	if told := say(t, me, second, "look").Text; !strings.Contains(told, `"actions":["queue"]`) || !strings.Contains(told, `"incarnation":"browser.0"`) {
		t.Errorf("the second is told %q", told)
	}
	if told := say(t, me, second, "wait for it").Text; !strings.Contains(told, `"state":"waiting"`) {
		t.Errorf("the second asks: %q", told)
	}
	if told := say(t, me, second, "wait for it").Text; !strings.Contains(told, `"limit"`) {
		t.Errorf("the second asks again: %q", told)
	}
	say(t, me, first, "give back")
	woken := answer(t, me, second, 4) // the script replies what it was told
	const word = "The browser was given back (browser.0 has ended). It is not reserved: another conversation may take it first."
	if woken.Text != word {
		t.Errorf("the notice is answered %q", woken.Text)
	}
	page, err := me.History(t.Context(), second, conversation.HistoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	notices := 0
	for _, entry := range page.Entries {
		if entry.Role == conversation.RoleNotice {
			notices++
			if entry.Text != word || entry.Topic != conversation.TopicLease || entry.Turn != 4 {
				t.Errorf("the notice is %+v", entry)
			}
		}
	}
	if notices != 1 {
		t.Errorf("%d notices in %+v", notices, page.Entries)
	}
	if told := say(t, me, first, "wait for it").Text; !strings.Contains(told, "stale_token") {
		t.Errorf("who waits for what is over is told %q", told)
	}
	if told := until(t, me, second, "the other page", "CANARYTITLE /other"); strings.Contains(told, "secret") {
		t.Errorf("the second gets %q", told)
	}
}

// The browser reaches neither the machine nor the server itself, and an allowed
// address does not open its neighbours.
func TestBrowserStaysOutside(t *testing.T) {
	browsertest.Need(t)
	w := handsWorld(t, "")
	s := w.start()
	defer s.end()
	me := s.me()
	id := begin(t, me)
	if told := say(t, me, id, "go inside").Text; !strings.Contains(told, "refused") && !strings.Contains(told, "failed") {
		t.Errorf("the browser says %q", told)
	}
	if own := s.ownAddresses(Settings{PublicURL: "https://chat.example.org/x"}); len(own) != 3 || own[2] != "chat.example.org" || !strings.HasPrefix(own[0], "0.0.0.0:") {
		t.Errorf("the server's own addresses are %q", own)
	}
}

// Without Chromium the tool says so in one line, and the rest works; nothing stays
// taken.
func TestNoChromium(t *testing.T) {
	w := handsWorld(t, "")
	w.config.Settings.Browser.Executable = "/nowhere/chromium"
	s := w.start()
	defer s.end()
	me := s.me()
	id := begin(t, me)
	told := say(t, me, id, "the other page").Text
	if !strings.Contains(told, "no Chromium found") || strings.Contains(told, "\n") {
		t.Errorf("without Chromium the model is told %q", told)
	}
	if told = say(t, me, id, "hello").Text; told != "hello" {
		t.Errorf("the rest answers %q", told)
	}
	if told = say(t, me, id, "another part").Text; !strings.Contains(told, "unknown_resource") {
		t.Errorf("a part that is not there: %q", told)
	}
	until(t, me, begin(t, me), "the other page", "no Chromium found")
}

// L-4.1, L-4.3: without a rule only me may use the browser; with one, those whom it
// names, and me no more. A tool's grant and a part's grant are both needed.
func TestWhoUsesTheBrowser(t *testing.T) {
	const none, denied = "no Chromium found", "denied"
	for name, test := range map[string]struct{ rules, me, ann string }{
		"no rule":         {"", none, denied},
		"a rule":          {"[[sharing.people]]\ntenant = \"acme\"\nactor = \"ann\"\nuses = [\"browser\"]", denied, none},
		"nothing for her": {"[[sharing.people]]\ntenant = \"acme\"\nactor = \"ann\"\nuses = []", denied, denied},
		"no tool":         {"[[sharing.people]]\ntenant = \"acme\"\nactor = \"ann\"\nuses = [\"browser\"]\ntools = [\"clock\"]", denied, denied},
	} {
		t.Run(name, func(t *testing.T) {
			w := handsWorld(t, test.rules)
			w.config.Settings.Browser.Executable = "/nowhere/chromium"
			s := w.start()
			defer s.end()
			check := func(who string, c *client.Client, want string) {
				told := say(t, c, begin(t, c), "the other page").Text
				if granted := strings.Contains(told, none); granted != (want == none) {
					t.Errorf("%s is told %q, want %q", who, told, want)
				}
			}
			check("me", s.me(), test.me)
			check("ann", s.as(s.token("ann")), test.ann)
		})
	}
}

// A configuration that cannot mean what it says is refused, with its place.
func TestBrowserSettings(t *testing.T) {
	for text, want := range map[string]string{
		"[browser]\nallow = [\"http://x\"]":                       "parley.toml:1:2: browser:",
		"[browser]\nprofile = true":                               `unknown key "browser.profile"; the keys of the browser are executable`,
		"[[sharing.people]]\nactor = \"ann\"\nuses = [\"wings\"]": "sharing.people[1].uses: one of these is no part",
	} {
		path := filepath.Join(t.TempDir(), "parley.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadSettings(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
