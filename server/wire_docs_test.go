package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/internal/browsertest"
	"github.com/parley-run/parley/server/datadir"
)

// block is a piece of a document in a fence.
type block struct{ language, text string }

// blocks are the pieces of a document.
func blocks(t *testing.T, path string) (all []block) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		all = append(all, block{m[1], m[2]})
	}
	return all
}

// changing is what is another one each time.
var changing = regexp.MustCompile(`[a-z2-7]{26}|[0-9a-f]{24}|\d{4}-\d\d-\d\dT[0-9:.]+Z|"\d+\.\d+"`)

// The commands of docs/http.md do what stands behind them there.
func TestCommandsOfDocument(t *testing.T) {
	s := newWorld(t).start()
	defer s.end()
	token, err := datadir.ReadToken(s.Directory().OwnTokenFile())
	if err != nil {
		t.Fatal(err)
	}
	out := repeatCommands(t, "../docs/http.md", "URL="+s.URL(), "TOKEN="+token.Reveal())
	if !strings.Contains(out, "event: status") || !strings.Contains(out, `"status":"complete"`) {
		t.Errorf("the stream is %s", out)
	}
}

// repeatCommands runs the shell's lines of a document, wants of each piece of them
// the JSON that stands behind it, and returns all that came out.
func repeatCommands(t *testing.T, path string, env ...string) string {
	t.Helper()
	curl, err := exec.LookPath("curl")
	if err != nil {
		if os.Getenv("CI") == "true" { // in CI what is missing fails
			t.Fatal(err)
		}
		t.Skipf("%v: %s is not tried", err, path)
	}
	const mark = "\n--8<--\n"
	var script, want strings.Builder
	for _, b := range blocks(t, path) {
		switch b.language {
		case "sh":
			script.WriteString("printf '" + strings.ReplaceAll(mark, "\n", `\n`) + "'\n" + b.text)
			want.WriteString(mark)
		case "json":
			want.WriteString(b.text)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", script.String())
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%s: %v\n%s", curl, err, stderr.Bytes())
	}
	got, wanted := strings.Split(string(out), mark), strings.Split(want.String(), mark)
	if len(got) != len(wanted) {
		t.Fatalf("%d pieces, want %d:\n%s", len(got), len(wanted), out)
	}
	for i := range got {
		if wanted[i] == "" { // such as a stream, which a document shows in part
			continue
		}
		plain := func(text string) string { return changing.ReplaceAllString(strings.TrimSpace(text), "…") }
		if diff := cmp.Diff(plain(wanted[i]), plain(got[i])); diff != "" {
			t.Errorf("%s (-document +server):\n%s", path, diff)
		}
	}
	return string(out)
}

// docsPage logs in and uses the functions of docs/http.md, each on a conversation
// that is over.
const docsPage = `<script>
%s
let seen = "";
const [id, token, code] = %q.split(" ");
const show = {
  entry: (e) => { seen += e.role + "; "; },
  words: () => {}, lost: () => { seen += "lost; "; },
  over: async () => {
    seen += "over; ";
    for await (const e of events("/v1/conversations/" + id + "/events", token, "0.0")) seen += e.event + "; ";
    fetch("/seen", {method: "POST", body: seen});
  },
};
fetch("/session", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({code})}).then(() => share(id, show));
</script>`

// The functions of docs/http.md work in a real browser (SSE-51: share).
func TestScriptsOfDocument(t *testing.T) {
	s, err := New(t.Context(), newWorld(t).config)
	if err != nil {
		t.Fatal(err)
	}
	var scripts strings.Builder
	for _, b := range blocks(t, "../docs/http.md") {
		if b.language == "js" {
			scripts.WriteString(b.text)
		}
	}
	own, seen := s.http.Handler, make(chan string, 1)
	var arguments atomic.Value
	s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/test":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, docsPage, scripts.String(), arguments.Load())
		case "/seen":
			text, _ := io.ReadAll(r.Body)
			seen <- string(text)
		default:
			own.ServeHTTP(w, r)
		}
	})
	ctx, stop := context.WithCancel(context.Background())
	r := &running{Server: s, t: t, stop: stop, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx) }()
	defer r.end()
	token, err := datadir.ReadToken(s.Directory().OwnTokenFile())
	if err != nil {
		t.Fatal(err)
	}
	_, code, err := s.Directory().CreateLink(t.Context(), Owner, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	id, err := r.me().Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	say(t, r.me(), id, "hello")
	if err := r.me().Close(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	arguments.Store(id + " " + token.Reveal() + " " + code.Reveal())
	page := browsertest.Open(t, browsertest.Start(t), r.URL()+"/test")
	page.Expect("status of 404") // there is no icon
	got := "nothing"
	select {
	case got = <-seen:
	case <-time.After(time.Minute):
	}
	if want := "user; assistant; over; status; message; message; closed; "; got != want {
		t.Errorf("the page has seen %s; want %s", got, want)
	}
}
