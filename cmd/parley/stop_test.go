package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-run/parley/conversation"
)

// tireless never ends the answer to "long", and repeats every other text.
const tireless = "when has \"long\"\n  say \"It was \"\n  forever \"so \" 20ms\notherwise\n  say \"said: \"\n  reply\n"

// T25, T98: an answer is stopped from elsewhere, by its conversation alone. Who
// waits for it in a pipe gets what there was of it, is told so, and goes on.
func TestStopFromElsewhere(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	server := start(t, nil, "serve", "--data", data, "--listen", "127.0.0.1:0", "--model", "script:"+writeFile(t, "model.txt", tireless))
	me := reader(t, data)
	chat := start(t, func(cmd *exec.Cmd) { cmd.Stdin = strings.NewReader("a long one\nshort\n") }, "chat", "--data", data)
	id := onlyConversation(t, me)
	awaitRecord(t, me, id, conversation.RoleUser, 1)

	stop := start(t, nil, "conversation", "stop", "--data", data, id)
	if status := stop.end(); status != 0 || stop.stdout.String() != "turn 1 is to stop\n" {
		t.Errorf("conversation stop exits with %d: %s%s", status, stop.stdout.String(), stop.stderr.String())
	}
	if status := chat.end(); status != 0 || !strings.Contains(chat.stderr.String(), "parley: the answer was interrupted\n") {
		t.Errorf("chat exits with %d: %s", status, chat.stderr.String())
	}
	cut := awaitRecord(t, me, id, conversation.RoleAssistant, 1)
	if want := cut.Text + "\nsaid: short\n"; cut.Status != conversation.StatusInterrupted || chat.stdout.String() != want {
		t.Errorf("the answer is %s; chat prints %q, want %q", cut.Status, chat.stdout.String(), want)
	}
	// What happened is replayed from the log without a divergence (C-14.19).
	server.cmd.Process.Signal(syscall.SIGTERM)
	server.end()
	for id, n := range wholeLog(t, data, id) {
		if n != 1 {
			t.Errorf("%s is %d times in the log", id, n)
		}
	}
}
