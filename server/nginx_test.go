package server

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/server/datadir"
)

// nginx is a proxy in front of a server, with the configuration that Debian gives
// it. It listens on a socket of its own directory.
type nginx struct {
	t   *testing.T
	dir string
	cmd *exec.Cmd
}

// newNginx starts a proxy of a server, with directives for its location.
func newNginx(t *testing.T, target, directives string) *nginx {
	t.Helper()
	n := &nginx{t: t, dir: t.TempDir()}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;\n" // the directory is closed to others
	}
	config := fmt.Sprintf(`%[1]sdaemon off;
pid %[2]s/pid;
error_log %[2]s/error.log;
events {
	worker_connections 768;
}
http {
	access_log off;
	sendfile on;
	tcp_nopush on;
	gzip on;
	client_body_temp_path %[2]s/body;
	proxy_temp_path %[2]s/proxy;
	fastcgi_temp_path %[2]s/fastcgi;
	uwsgi_temp_path %[2]s/uwsgi;
	scgi_temp_path %[2]s/scgi;
	server {
		listen unix:%[2]s/socket;
		location / {
			proxy_pass %[3]s;
			%[4]s
		}
	}
}
`, user, n.dir, target, directives)
	if err := os.WriteFile(filepath.Join(n.dir, "nginx.conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	n.start()
	t.Cleanup(n.kill)
	return n
}

// start starts nginx, and waits until it listens.
func (n *nginx) start() {
	n.t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil && os.Getenv("CI") != "true" { // in CI what is missing fails
		n.t.Skip("no nginx on the PATH")
	}
	if err != nil {
		n.t.Fatal(err)
	}
	var output strings.Builder
	n.cmd = exec.Command(program, "-p", n.dir, "-c", filepath.Join(n.dir, "nginx.conf"), "-e", filepath.Join(n.dir, "error.log"))
	n.cmd.Stdout, n.cmd.Stderr = &output, &output
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its workers die with it
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		conn, err := n.dial(n.t.Context(), "", "")
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(deadline) {
			n.kill()
			said, _ := os.ReadFile(filepath.Join(n.dir, "error.log"))
			n.t.Fatalf("nginx does not listen: %v\n%s%s", err, output.String(), said)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// kill ends nginx with all its processes at once.
func (n *nginx) kill() {
	if n.cmd == nil {
		return
	}
	syscall.Kill(-n.cmd.Process.Pid, syscall.SIGKILL)
	n.cmd.Wait()
	n.cmd = nil
	os.Remove(filepath.Join(n.dir, "socket"))
}

func (n *nginx) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(n.dir, "socket"))
}

// client is a client of a server behind the proxy, which it knows by some URL.
func (n *nginx) client(r *running, base string) *client.Client {
	n.t.Helper()
	secret, err := datadir.ReadToken(r.Directory().OwnTokenFile())
	if err != nil {
		n.t.Fatal(err)
	}
	transport := &http.Transport{DialContext: n.dial}
	n.t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(base, secret.Reveal(), &http.Client{Transport: transport})
	if err != nil {
		n.t.Fatal(err)
	}
	return c
}

// vendor is a model that says what a test tells it to, when it is told.
type vendor struct{ says chan string } // "" ends an answer

func newVendor(t *testing.T, w *world) *vendor {
	v := &vendor{says: make(chan string)}
	service := httptest.NewServer(v)
	t.Cleanup(service.Close)
	w.config.Settings.Model = "openai/some-model"
	w.config.Getenv = func(name string) string {
		return map[string]string{"OPENAI_API_KEY": "sekrit", "OPENAI_BASE_URL": service.URL + "/v1"}[name]
	}
	return v
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(choice string) {
		fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,%s}]}\n\n", choice)
		http.NewResponseController(w).Flush()
	}
	for {
		select {
		case text := <-v.says:
			if text == "" {
				chunk(`"delta":{},"finish_reason":"stop"`)
				io.WriteString(w, "data: [DONE]\n\n")
				return
			}
			quoted, _ := json.Marshal(text)
			chunk(`"delta":{"content":` + string(quoted) + `}`)
		case <-r.Context().Done():
			return
		}
	}
}

// ear hears what Follow tells, one event at a time.
type ear struct {
	t      *testing.T
	events chan client.Event
}

func listen(t *testing.T, c *client.Client, id string) ear {
	e := ear{t, make(chan client.Event)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event, err := range c.Follow(ctx, id, nil) {
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			select {
			case e.events <- event:
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return e
}

// hears wants the next event to be of a kind, soon.
func (e ear) hears(kind client.Kind) client.Event {
	e.t.Helper()
	select {
	case event := <-e.events:
		if event.Kind != kind {
			e.t.Fatalf("the next event is %+v; want %s", event, kind)
		}
		return event
	case <-time.After(10 * time.Second): // less than a keep-alive comment takes
		e.t.Fatalf("no event for 10 s; want %s", kind)
		return client.Event{}
	}
}

// Behind nginx as Debian configures it, and nothing else said (T95): the first
// frame comes though nothing follows (SSE-44), each delta before the next one is
// made, and nothing is cut: not by a proxy that is killed in mid-answer, and not in
// 10,000 deltas.
func TestBehindNginx(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	model := newVendor(t, w)
	r := w.start()
	defer r.end()
	proxy := newNginx(t, r.URL(), "")
	c := proxy.client(r, "http://127.0.0.1")
	id, err := c.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e := listen(t, c, id)
	e.hears(client.Status)
	say := func(text string) {
		t.Helper()
		if _, err := c.Send(t.Context(), id, conversation.Message{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	say("one by one")
	e.hears(client.Message)
	told := ""
	speak := func() {
		t.Helper()
		for range 20 {
			text := "word " + strconv.Itoa(len(told)) + " "
			model.says <- text
			if got := e.hears(client.Delta).Words.Text; got != text {
				t.Fatalf("a delta is %q; want %q", got, text)
			}
			told += text
		}
	}
	speak()

	proxy.kill()
	model.says <- "unheard "
	told += "unheard "
	e.hears(client.Lost)
	proxy.start()
	e.resumes()
	if got := e.hears(client.Partial).Words.Text; got != told {
		t.Errorf("after the restart the answer is %q; want %q", got, told)
	}
	speak()
	model.says <- ""
	if got := e.hears(client.Message).Record.Text; got != told {
		t.Errorf("the answer is %q; want %q", got, told)
	}

	proxy.kill()
	e.hears(client.Lost)
	sent := make(chan error, 1)
	go func() { // into the void: T26, T27
		_, err := c.Send(t.Context(), id, conversation.Message{Text: "into the void"})
		sent <- err
	}()
	proxy.start()
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	e.resumes()
	if got := e.hears(client.Message).Record.Text; got != "into the void" {
		t.Errorf("after the second restart comes %q; want what was sent meanwhile", got)
	}
	model.says <- ""
	e.hears(client.Message)
	e.flood(model, say)
}

// resumes wants the stream to come back, however often that fails.
func (e ear) resumes() {
	e.t.Helper()
	for {
		switch event := <-e.events; {
		case event.Kind == client.Status && event.Resumed:
			return
		case event.Kind != client.Lost:
			e.t.Fatalf("the stream comes back with %+v", event)
		}
	}
}

// flood says 10,000 words as fast as it can, and wants them all.
func (e ear) flood(model *vendor, say func(string)) {
	e.t.Helper()
	say("all at once")
	go func() {
		for i := range 10_000 {
			model.says <- strconv.Itoa(i) + " "
		}
		model.says <- ""
	}()
	e.hears(client.Message)
	words := ""
	for {
		switch event := <-e.events; event.Kind {
		case client.Delta:
			words += event.Words.Text
		case client.Partial:
			words = event.Words.Text
		case client.Message:
			if words != event.Record.Text || strings.Count(words, " ") != 10_000 || !strings.HasSuffix(words, " 9999 ") {
				e.t.Errorf("the deltas add up to %d bytes, the answer has %d", len(words), len(event.Record.Text))
			}
			return
		default:
			e.t.Fatalf("among the deltas is %+v", event)
		}
	}
}

// C-32.5: a proxy that passes the name on by which it is met needs public_url, and
// what it says of the name besides counts where it is trusted alone.
func TestNginxIsTrusted(t *testing.T) {
	t.Parallel()
	const (
		passOn = "proxy_http_version 1.1; proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme;"
		tell   = "proxy_set_header X-Forwarded-Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme;"
	)
	for name, test := range map[string]struct {
		directives string
		settings   Settings
		refused    bool
	}{
		"the name is passed on and unknown":   {passOn, Settings{}, true},
		"the name is passed on and known":     {passOn, Settings{PublicURL: "http://chat.example.org"}, false},
		"it is told by one whom nobody knows": {tell, Settings{}, false}, // met as 127.0.0.1
		"it is told by one who is trusted":    {tell, Settings{TrustedProxies: []string{"127.0.0.1"}}, true},
		"it is told, trusted and known":       {tell, Settings{TrustedProxies: []string{"127.0.0.1"}, PublicURL: "http://chat.example.org"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.settings.Listen = w.config.Settings.Listen
			w.config.Settings = test.settings
			r := w.start()
			defer r.end()
			c := newNginx(t, r.URL(), test.directives).client(r, "http://chat.example.org")
			id, err := c.Start(t.Context())
			if refused, _ := errors.AsType[*client.Error](err); test.refused {
				if !errors.Is(err, client.ErrForbidden) || refused.Reason != "host-not-allowed" {
					t.Errorf("Start = %v; want it forbidden for its host", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			listen(t, c, id).hears(client.Status)
		})
	}
}
