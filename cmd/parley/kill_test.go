package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal"
)

// kills is how often TestKillAtAppends kills a server.
const kills = 60

// killScript has a tool call in every other turn, and fails in some.
const killScript = `when has "time"
  say "Let me look. "
  call clock {"zone": "UTC"}
then
  say "I have looked."
when has "trouble"
  fail refused "no"
otherwise
  reply
`

// TestKillAtAppends builds a binary that kills itself at a chosen append, before
// or after the write, and starts it sixty times under a person who goes on
// talking. Whatever was accepted is there once, in order, and answered (K12,
// C-1.12, C-3.8, T11, T26, T27).
func TestKillAtAppends(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := filepath.Join(dir, "parley")
	build := exec.Command("go", "build", "-tags", "crashpoint", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make builds it
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build with a crash point: %v\n%s", err, out)
	}
	k := killed{
		t: t, binary: binary, data: filepath.Join(dir, "data"), listen: freeAddress(t),
		model: "script:" + writeFile(t, "kill.txt", killScript),
	}

	first := k.serve("")
	me := reader(t, k.data)
	id, err := me.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first.cmd.Process.Kill()
	first.cmd.Wait()

	stop, said := make(chan struct{}), make(chan []string)
	go func() { said <- talkOn(t, me, id, stop) }()
	random := rand.New(rand.NewPCG(7, 60))
	for n := range kills {
		at := fmt.Sprintf("%s:%d", []string{"before", "after"}[n%2], 1+random.IntN(12))
		p := k.serve(at)
		p.cmd.Wait()
		if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Fatalf("kill %d at %s: the server ended with %v: %s", n+1, at, p.cmd.ProcessState, p.stderr.String())
		}
	}
	last := k.serve("")
	close(stop)
	want := <-said
	got := transcript(t, me, id)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("transcript after %d kills (-want +got):\n%s", kills, diff)
	}
	t.Logf("%d kills, %d records", kills, len(got))
	last.cmd.Process.Signal(syscall.SIGTERM)
	last.cmd.Wait()
	for record, times := range wholeLog(t, k.data, id) {
		if times != 1 {
			t.Errorf("decision %s is %d times in the log", record, times)
		}
	}
}

// killed is a server that is killed again and again.
type killed struct {
	t                           *testing.T
	binary, data, listen, model string
}

func (k killed) serve(crashAt string) *program {
	k.t.Helper()
	return start(k.t, func(cmd *exec.Cmd) {
		cmd.Path, cmd.Err = k.binary, nil
		cmd.Env = append(cmd.Env, "PARLEY_CRASH_AT="+crashAt)
	}, "serve", "--data", k.data, "--listen", k.listen, "--model", k.model)
}

// freeAddress is an address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// talkOn says one thing after another, each until it is accepted, and waits for
// the answer, until it is told to stop. It returns the transcript that there
// must be.
func talkOn(t *testing.T, me *client.Client, id string, stop <-chan struct{}) (want []string) {
	var from *conversation.Cursor
	for n := 1; ; n++ {
		select {
		case <-stop:
			return want
		default:
		}
		text, answer := fmt.Sprint("message ", n), fmt.Sprintf("complete message %d", n)
		switch n % 4 {
		case 1:
			text, answer = fmt.Sprint("what time is it, ", n), "complete Let me look. \n\nI have looked."
		case 3:
			text, answer = fmt.Sprint("trouble ", n), "failed "
		}
		for { // a retry has the same message id
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/4) // too short for the client's own patience
			_, err := me.Send(ctx, id, conversation.Message{Text: text, ID: fmt.Sprint("id-", n)})
			cancel()
			if err == nil {
				break
			}
			select {
			case <-t.Context().Done():
				return want
			case <-time.After(5 * time.Millisecond):
			}
		}
		from = awaitAnswer(t, me, id, from)
		want = append(want, "accepted "+text, answer)
	}
}

// awaitAnswer reads streams, one after another over the kills, until the next
// answer.
func awaitAnswer(t *testing.T, me *client.Client, id string, from *conversation.Cursor) *conversation.Cursor {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		for event, err := range me.Events(ctx, id, from) {
			if err != nil {
				break // the server is away
			}
			if event.Kind != client.Message {
				continue
			}
			from = &event.Record.Cursor
			if event.Record.Role == conversation.RoleAssistant {
				return from
			}
		}
		select {
		case <-ctx.Done():
			t.Error("no answer came")
			return from
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// transcript is the whole history, with status and text.
func transcript(t *testing.T, me *client.Client, id string) (lines []string) {
	t.Helper()
	if _, err := awaitReady(t, me, id); err != nil {
		t.Fatal(err)
	}
	var from *conversation.Cursor
	for {
		page, err := me.History(t.Context(), id, conversation.HistoryOptions{Cursor: from, Direction: journal.Forward})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Entries {
			lines = append(lines, fmt.Sprintf("%s %s", r.Status, r.Text))
		}
		if page.Done {
			return lines
		}
		from = &page.Next
	}
}

// awaitReady asks until the server answers.
func awaitReady(t *testing.T, me *client.Client, id string) (conversation.Info, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		info, err := me.Status(ctx, id)
		if err == nil || ctx.Err() != nil {
			return info, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}
