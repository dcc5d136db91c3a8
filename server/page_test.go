package server

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// chromium is the command that runs Chromium until ctx is done.
func chromium(ctx context.Context, t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("chromium is not installed")
		}
		t.Skip("chromium is not installed")
	}
	cmd := exec.CommandContext(ctx, program, append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir=" + t.TempDir(),
	}, arguments...)...)
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// browse opens an address in Chromium and returns what the page holds when its
// requests are answered.
func browse(t *testing.T, address string) string {
	t.Helper()
	page, err := chromium(t.Context(), t, "--virtual-time-budget=10000", "--dump-dom", address).Output()
	if err != nil {
		t.Fatalf("chromium: %v", err)
	}
	return string(page)
}

// In a real browser, under the page's own policy: a link logs in, once, and says
// who is there; who comes without one is told what to do.
func TestPageInBrowser(t *testing.T) {
	w := newWorld(t)
	s := w.start()
	defer s.end()
	_, code, err := s.Directory().CreateLink(t.Context(), ann, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	link := s.URL() + "/#code=" + code.Reveal()
	for _, test := range []struct{ address, want string }{
		{s.URL() + "/", "You are not logged in."},
		{link, "You are ann of acme."},
		{link, "This link is used up or too old."},
	} {
		if page := browse(t, test.address); !strings.Contains(page, test.want) {
			t.Errorf("the page of %q shows:\n%s", test.want, page)
		}
	}
	if strings.Contains(w.log.String(), code.Reveal()) {
		t.Error("the code is in the log")
	}
}

// A plain EventSource works with the cookie of a session, which is all that a
// browser lets it send: here of a page that comes from the server itself.
func TestEventSourceWithCookie(t *testing.T) {
	w := newWorld(t)
	s, err := New(t.Context(), w.config)
	if err != nil {
		t.Fatal(err)
	}
	own := s.http.Handler
	s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/test" {
			own.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<p id="seen"></p><script>
fetch("/session", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({code: %q})}).then(() => {
  const source = new EventSource("/v1/conversations/%s/events");
  source.addEventListener("message", (e) => {
    seen.textContent += JSON.parse(e.data).role + "; ";
    if (seen.textContent === "user; assistant; ") source.close();
  });
});
</script>`, r.FormValue("code"), r.FormValue("id"))
	})
	ctx, stop := context.WithCancel(context.Background())
	r := &running{Server: s, t: t, stop: stop, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx) }()
	defer r.end()
	_, code, err := s.Directory().CreateLink(t.Context(), Owner, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	id, err := r.me().Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	say(t, r.me(), id, "hello")
	if page := browse(t, s.URL()+"/test?id="+id+"&code="+code.Reveal()); !strings.Contains(page, "user; assistant; </p>") {
		t.Errorf("the page shows:\n%s", page)
	}
}
