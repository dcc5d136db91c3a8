package main

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal/sqlite"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/server/datadir"
)

// slowScript takes some two seconds for an answer.
const slowScript = `otherwise
  repeat 40 "word " 50ms
  say "end"
`

// deafScript never answers, and does not notice that it is asked to stop.
const deafScript = "otherwise\n  deaf\n  forever \"word \" 50ms\n"

// reader is a client with the token of a data directory's own user.
func reader(t *testing.T, data string) *client.Client {
	t.Helper()
	address, err := awaitServer(data)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := datadir.ReadToken(filepath.Join(data, "me.token"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(address, secret.Reveal(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// onlyConversation is the id of the one conversation that there is.
func onlyConversation(t *testing.T, c *client.Client) string {
	t.Helper()
	for {
		page, err := c.List(t.Context(), "", 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Conversations) == 1 {
			return page.Conversations[0].ID
		}
		select {
		case <-t.Context().Done():
			t.Fatal("no conversation has begun")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// awaitRecord follows a conversation up to a record, and wants no error but of
// the connection before it.
func awaitRecord(t *testing.T, c *client.Client, id string, role conversation.Role, turn int) conversation.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for event, err := range c.Follow(ctx, id, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind == client.Message && event.Record.Role == role && event.Record.Turn == turn {
			return event.Record
		}
	}
	t.Fatalf("conversation %s ended without a record of %s in turn %d", id, role, turn)
	return conversation.Record{}
}

// wholeLog wants the log of a conversation whole and without divergence, and
// returns how often each record is in it.
func wholeLog(t *testing.T, data, id string) map[string]int {
	t.Helper()
	for _, command := range []string{"verify", "replay"} {
		p := start(t, nil, "log", command, "--data", data, id)
		if status := p.end(); status != 0 {
			t.Errorf("log %s exits with %d: %s", command, status, p.stderr.String())
		}
	}
	store, err := sqlite.Open(t.Context(), filepath.Join(data, "parley.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	records := map[string]int{}
	for event, err := range eventsOf(t.Context(), store, id) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind == kernel.KindDecided {
			records[event.ID]++
		}
	}
	return records
}

// C-1.11, C-1.12, C-13.20: the server is killed in mid-answer and started again, on
// another port; the person, who only waited, gets the one whole answer, and the talk
// goes on to its close. Who follows the conversation gets each entry once.
func TestKillInMidAnswer(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	model := "script:" + writeFile(t, "slow.txt", slowScript)
	first := start(t, nil, "serve", "--data", data, "--listen", "127.0.0.1:0", "--model", model)
	me := reader(t, data)

	lines, input := io.Pipe()
	chat := start(t, func(cmd *exec.Cmd) { cmd.Stdin = lines }, "chat", "--data", data)
	go io.WriteString(input, "hello\n")
	id := onlyConversation(t, me)
	awaitRecord(t, me, id, conversation.RoleUser, 1) // it is recorded when the model is about to be asked
	followed := &watched{begun: make(chan struct{})}
	follow := start(t, func(cmd *exec.Cmd) { cmd.Stdout = followed }, "conversation", "follow", "--json", "--data", data, id)
	<-followed.begun
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.end()

	second := start(t, nil, "serve", "--data", data, "--listen", "127.0.0.1:0", "--model", model)
	me = reader(t, data)
	whole := strings.Repeat("word ", 40) + "end"
	if got := awaitRecord(t, me, id, conversation.RoleAssistant, 1); got.Text != whole || got.Status != conversation.StatusComplete {
		t.Errorf("the answer after the kill is %+v, want it whole", got)
	}
	if _, err := io.WriteString(input, "and now\n"); err != nil {
		t.Fatal(err)
	}
	input.Close()
	if status := chat.end(); status != 0 || chat.stdout.String() != whole+"\n"+whole+"\n" {
		t.Errorf("chat exits with %d and %q, %q, want 0 and two whole answers", status, chat.stdout.String(), chat.stderr.String())
	}
	_, said, _ := strings.Cut(chat.stderr.String(), ")\n")
	if want := "parley: the connection to the server on " + data + " is lost; trying again\nparley: connected again\n"; said != want {
		t.Errorf("chat says %q on stderr, want %q", said, want)
	}

	page, err := me.History(t.Context(), id, conversation.HistoryOptions{})
	if err != nil || len(page.Entries) != 4 {
		t.Errorf("the history has %d entries, %v, want 4", len(page.Entries), err)
	}
	if err := me.Close(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for _, err := range me.Follow(t.Context(), id, nil) { // ends after the close
		if err != nil {
			t.Fatal(err)
		}
	}
	var want strings.Builder
	for _, record := range page.Entries {
		line, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		want.Write(append(line, '\n'))
	}
	if status := follow.end(); status != 0 || followed.String() != want.String() {
		t.Errorf("conversation follow exits with %d: %s%s\nwant 0 and\n%s", status, followed.String(), follow.stderr.String(), want.String())
	}
	if err := second.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := second.end(); status != 0 {
		t.Errorf("serve exits with %d after SIGTERM: %s", status, second.stderr.String())
	}
	for record, n := range wholeLog(t, data, id) {
		if n != 1 {
			t.Errorf("%s is recorded %d times", record, n)
		}
	}
}

// A chat that runs the server itself is killed in mid-answer; whoever opens the
// directory next finishes the answer.
func TestKillChatInMidAnswer(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	model := "script:" + writeFile(t, "slow.txt", slowScript)
	chat := start(t, func(cmd *exec.Cmd) { cmd.Stdin = strings.NewReader("hello\n") }, "chat", "--data", data, "--model", model)
	me := reader(t, data)
	id := onlyConversation(t, me)
	awaitRecord(t, me, id, conversation.RoleUser, 1)
	if err := chat.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	chat.end()

	again := start(t, func(cmd *exec.Cmd) { cmd.Stdin = strings.NewReader("and now\n") }, "chat", "--continue", "--data", data, "--model", model)
	whole := strings.Repeat("word ", 40) + "end\n"
	if status := again.end(); status != 0 || !strings.HasSuffix(again.stdout.String(), whole) {
		t.Errorf("chat exits with %d and %q, want 0 and a whole answer", status, again.stdout.String())
	}
	records := wholeLog(t, data, id)
	for _, record := range []string{"conv#o1:user", "conv#o1:reply", "conv#o2:user", "conv#o2:reply"} {
		if records[record] != 1 {
			t.Errorf("%s is recorded %d times, want once", record, records[record])
		}
	}
}

// hang leaves a request unfinished: its body is awaited and does not come.
func hang(t *testing.T, data string) {
	t.Helper()
	address, err := awaitServer(data)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := datadir.ReadToken(filepath.Join(data, "me.token"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /v1/conversations HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n", secret.Reveal())
	answer := make([]byte, 1<<10)
	if n, err := conn.Read(answer); err != nil || !strings.Contains(string(answer[:n]), "100 Continue") {
		t.Fatalf("the server answers %q, %v, want to be sent the body", answer[:n], err)
	}
}

// SIGTERM drains within 10 s, whatever the model does, with a stream open and a
// request unfinished; the unanswered turn is not lost.
func TestStopWithinTenSeconds(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	server := start(t, nil, "serve", "--data", data, "--listen", "127.0.0.1:0", "--model", "script:"+writeFile(t, "deaf.txt", deafScript))
	me := reader(t, data)
	id, err := me.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := me.Send(t.Context(), id, conversation.Message{Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	awaitRecord(t, me, id, conversation.RoleUser, 1)
	last := make(chan client.Kind, 1)
	begun := make(chan struct{})
	go func() {
		var kind client.Kind
		for event := range me.Events(t.Context(), id, nil) {
			if kind = event.Kind; kind == client.Status {
				close(begun)
			}
		}
		last <- kind
	}()
	<-begun
	hang(t, data)
	asked := time.Now()
	if err := server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	status := server.end()
	if took := time.Since(asked); status != 0 || took > 10*time.Second {
		t.Errorf("serve exits with %d after %v, want 0 within 10 s: %s", status, took, server.stderr.String())
	}
	if kind := <-last; kind != client.Reconnect {
		t.Errorf("the stream ends with %q, want %q", kind, client.Reconnect)
	}

	next := start(t, nil, "serve", "--data", data, "--listen", "127.0.0.1:0", "--model", "script:"+writeFile(t, "good.txt", "otherwise\n  say \"late\"\n"))
	if got := awaitRecord(t, reader(t, data), id, conversation.RoleAssistant, 1); got.Text != "late" {
		t.Errorf("after the next start the answer is %+v, want it", got)
	}
	if err := next.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	next.end()
}

// A second signal kills a server that is still draining.
func TestSecondSignalKills(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	errors, out := io.Pipe()
	server := start(t, func(cmd *exec.Cmd) { cmd.Stderr = out },
		"serve", "--data", data, "--listen", "127.0.0.1:0")
	reader(t, data)
	hang(t, data)
	if err := server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 1<<10)
	if n, err := errors.Read(line); err != nil || !strings.Contains(string(line[:n]), "stopping") {
		t.Fatalf("stderr is %q, %v, want that it stops", line[:n], err)
	}
	go io.Copy(io.Discard, errors)
	if err := server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	server.cmd.Wait()
	out.Close()
	if state := server.cmd.ProcessState.Sys().(syscall.WaitStatus); !state.Signaled() || state.Signal() != syscall.SIGTERM {
		t.Errorf("after a second SIGTERM the server ends with %v, want the signal", server.cmd.ProcessState)
	}
}

// OPENAI_BASE_URL and OPENAI_API_KEY name a compatible service; the key goes
// there and nowhere else.
func TestCompatibleService(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 8)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.URL.Path + " " + r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "text/event-stream")
		for _, delta := range []string{`{"role":"assistant","content":"from "}`, `{"content":"afar"}`} {
			fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
		}
		io.WriteString(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer service.Close()
	data := filepath.Join(t.TempDir(), "data")
	chat := start(t, func(cmd *exec.Cmd) {
		cmd.Stdin = strings.NewReader("hello\n")
		cmd.Env = append(cmd.Env, "PARLEY_MODEL=openai/some-model", "OPENAI_API_KEY=sekrit", "OPENAI_BASE_URL="+service.URL+"/v1")
	}, "chat", "--data", data)
	if status := chat.end(); status != 0 || chat.stdout.String() != "from afar\n" {
		t.Errorf("chat exits with %d, %q and %q, want the service's answer", status, chat.stdout.String(), chat.stderr.String())
	}
	if got, want := <-asked, "POST /v1/chat/completions Bearer sekrit"; got != want {
		t.Errorf("the service is asked %q, want %q", got, want)
	}
	files := 0
	err := filepath.WalkDir(data, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), "sekrit") {
			t.Errorf("%s holds the key", path)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files of the directory were read, %v", files, err)
	}
}

// A data directory without rights is one line. Root has every right, so as root
// the program runs as nobody.
func TestDirectoryWithoutRights(t *testing.T) {
	t.Parallel()
	root, err := os.MkdirTemp("", "parley-rights-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	data := filepath.Join(root, "data")
	if err := os.Mkdir(data, 0o500); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(root, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(root, 0o700) })
	configure := func(cmd *exec.Cmd) {}
	if os.Getuid() == 0 {
		program := publicCopy(t)
		configure = func(cmd *exec.Cmd) {
			cmd.Path, cmd.Dir = program, "/"
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
	}
	for _, args := range [][]string{
		{"serve", "--listen", "127.0.0.1:0", "--data", data},
		{"serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(root, "none")},
		{"chat", "--data", data},
		{"token", "create", "--actor", "ann", "--data", data},
	} {
		p := start(t, configure, args...)
		status, said := p.end(), p.stderr.String()
		if status != 1 || !strings.Contains(said, "permission denied") || !strings.Contains(said, root) || strings.Count(said, "\n") != 1 {
			t.Errorf("parley %q exits with %d and %q, want 1 and one line with the path and the reason", args, status, said)
		}
	}
	if files, err := os.ReadDir(data); len(files) != 0 || err != nil {
		t.Errorf("the directory holds %v, %v, want nothing", files, err)
	}
}

// publicCopy is a copy of the program that everybody may run.
func publicCopy(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("parley")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "parley-public-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	public := filepath.Join(folder, "parley")
	if err := os.WriteFile(public, program, 0o755); err != nil {
		t.Fatal(err)
	}
	return public
}
