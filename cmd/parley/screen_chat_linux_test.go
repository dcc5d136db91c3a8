package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
)

// served is the data directory of a server that plays a script.
func served(t *testing.T, model string) (data string, server *program) {
	t.Helper()
	data = filepath.Join(t.TempDir(), "data")
	config := writeFile(t, "parley.toml", "posts_per_minute = 10000\n")
	server = start(t, nil, "serve", "--config", config, "--data", data, "--listen", "127.0.0.1:0", "--model", "script:"+writeFile(t, "model.txt", model))
	if _, err := awaitServer(data); err != nil {
		t.Fatal(err)
	}
	return data, server
}

// C-28.1: on a screen a person reads the words while the model still speaks; Ctrl-C
// ends the answer, and then the chat, whose own server ends with it.
func TestScreenStreams(t *testing.T) {
	t.Parallel()
	model := "when has \"long\"\n  say \"It was \"\n  forever \"so \" 20ms\notherwise\n  say \"one \"\n  wait 1s\n  say \"*two*\"\n"
	m := sitBefore(t, 60, 16, []string{"PARLEY_MODEL=script:" + writeFile(t, "model.txt", model)}, "--data", filepath.Join(t.TempDir(), "data"))
	m.sees("parley · ", "Enter sends")
	m.types("go" + keyEnter)
	if screen := m.sees("go\n", "agent  writing\none"); strings.Contains(screen, "two") {
		t.Errorf("the first word comes with the second:\n%s", screen)
	}
	m.sees("#1\ngo\n", "#2\none two\n")
	for _, key := range []string{keyEsc, keyCtrlX, "/stop" + keyEnter, keyCtrlC} {
		m.types("a long one" + keyEnter)
		m.sees("agent  writing\nIt was so so ")
		m.types(key)
		m.until("the end of the answer", func(screen string) bool {
			return strings.Contains(screen, "[interrupted]") && !strings.Contains(screen, "writing")
		})
	}
	m.types(keyCtrlC)
	m.ends(0)
}

// C-14.21, C-27, T40, T65: a message interrupts the answer; one's own message is
// edited.
func TestScreenInterruptsAndEdits(t *testing.T) {
	t.Parallel()
	data, _ := served(t, tireless)
	m := sitBefore(t, 60, 20, nil, "--data", data)
	m.types("a long one" + keyEnter)
	m.sees("agent  writing\nIt was so so ")
	m.types("never mind" + keyEnter)
	m.sees("#1\na long one\n", "#2\nIt was so so ", "[interrupted]\n", "#3\nnever mind\n", "#4\nsaid: never mind\n")
	m.types(keyCtrlR)
	m.sees("▸you")
	m.types(keyEnter)
	m.sees("edits #3", "> never mind")
	m.types(", do" + keyEnter)
	m.sees("#5 edits #3\nnever mind, do\n")
	m.sees("said: ", "never mind, do\n\n")
	m.types("/edit 4 of an answer" + keyEnter)
	m.sees("of an answer\n[not taken: only a message of your own")
	m.types(keyCtrlC)
	m.ends(0)
}

// numbers are those of the entries on the screen, a large one alone if there is none.
func (m *monitor) numbers() []int {
	var numbers []int
	for _, found := range regexp.MustCompile(`  #(\d+)\n`).FindAllStringSubmatch(m.reads(), -1) {
		n, err := strconv.Atoi(found[1])
		if err != nil {
			m.t.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	if numbers == nil {
		return []int{1 << 20}
	}
	return numbers
}

// talked is a conversation of so many turns.
func talked(t *testing.T, me *client.Client, turns int) (id string) {
	t.Helper()
	id, err := me.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	say := func() {
		said++
		if _, err := me.Send(t.Context(), id, conversation.Message{Text: fmt.Sprintf("text %d.", said)}); err != nil {
			t.Fatal(err)
		}
	}
	say()
	for event, err := range me.Follow(t.Context(), id, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind != client.Message || event.Record.Role != conversation.RoleAssistant {
			continue
		}
		if said == turns {
			break
		}
		say()
	}
	return id
}

// C-17: all of 300 messages can be scrolled to, in any size of the screen.
func TestScreenScrollsBack(t *testing.T) {
	t.Parallel()
	data, _ := served(t, "otherwise\n  reply\n")
	const turns = 150
	id := talked(t, reader(t, data), turns)
	m := sitBefore(t, 60, 20, nil, "--data", data, "--id", id)
	m.sees("#300\ntext 150.\n")
	small := false
	for seen := m.numbers(); seen[0] > 1; {
		if seen[0] < 200 && !small { // the last row stays
			small = true
			m.setSize(40, 12)
			m.until(fmt.Sprintf("#%d at the end", seen[len(seen)-1]), func(string) bool {
				now := m.numbers()
				return len(now) <= 4 && now[len(now)-1] == seen[len(seen)-1]
			})
			seen = m.numbers()
		}
		m.types(keyPgUp)
		m.until(fmt.Sprintf("what is older than #%d", seen[0]), func(screen string) bool {
			return m.numbers()[0] < seen[0] && !strings.Contains(screen, "reading") // else it has not gone all the way
		})
		older := m.numbers()
		if next := seen[0] - 1; !slices.Contains(older, next) && !slices.Contains(older, next+1) {
			t.Fatalf("from #%d it goes to %v", seen[0], older)
		}
		for i, n := range older {
			if n != older[0]+i {
				t.Fatalf("the screen has %v", older)
			}
		}
		seen = older
	}
	m.sees("parley · text 1.", "#1\ntext 1.\n")
	m.types(keyCtrlEnd)
	m.sees("#300\ntext 150.\n")
	m.types("/history 100" + keyEnter)
	m.sees("#201\n")
	m.types(keyCtrlD)
	m.ends(0)
}

// What a person types before the screen is there is not lost, Enter included.
func TestScreenTypedBefore(t *testing.T) {
	t.Parallel()
	data, _ := served(t, "otherwise\n  reply\n")
	m := sitDown(t, 60, 20, "early\rand so", nil, "--data", data)
	m.sees("#1\nearly\n", "#2\nearly\n", "> and so")
	m.types(" on" + keyEnter)
	m.sees("#3\nand so on\n")
	m.types(keyCtrlD)
	m.ends(0)
}

// The threads stand beside the transcript where there is room; a key opens another.
func TestScreenThreads(t *testing.T) {
	t.Parallel()
	data, _ := served(t, "otherwise\n  reply\n")
	m := sitBefore(t, 100, 20, nil, "--data", data)
	m.types("apples" + keyEnter)
	m.sees("• apples", "#2", "│apples")
	m.types(keyCtrlN)
	m.misses("#2")
	m.types("pears" + keyEnter)
	m.sees("• pears", "  apples")
	m.sees("│pears")
	m.setSize(40, 10)
	m.misses("│")
	m.types(keyCtrlT)
	m.sees("threads", "• pears", "  apples")
	m.types(keyDown + keyEnter)
	m.sees("parley · apples", "#1\napples\n", "#2\napples\n")
	m.types(keyCtrlC)
	m.ends(0)
}

// A pasted text is one message, whatever its lines are.
func TestScreenPaste(t *testing.T) {
	t.Parallel()
	data, _ := served(t, "otherwise\n  say \"heard\"\n")
	m := sitBefore(t, 60, 20, nil, "--data", data)
	m.sees("Enter sends")
	m.types("\x1b[200~first\rsecond\n/stop\x1b[201~")
	m.sees("> first\n> second\n> /stop")
	m.types(keyAltEnter + "last" + keyEnter)
	m.sees("#1\nfirst\nsecond\n/stop\nlast\n", "#2\nheard\n")
	me := reader(t, data)
	record := awaitRecord(t, me, onlyConversation(t, me), conversation.RoleUser, 1)
	if record.Text != "first\nsecond\n/stop\nlast" {
		t.Errorf("the message is %q", record.Text)
	}
	m.types(keyCtrlD)
	m.ends(0)
}

// T26, T27: the loss of the connection is told, and its return. What was said
// meanwhile is sent once.
func TestScreenConnection(t *testing.T) {
	t.Parallel()
	data, server := served(t, "otherwise\n  reply\n")
	m := sitBefore(t, 60, 20, nil, "--data", data)
	m.types("before" + keyEnter)
	m.sees("#2\nbefore\n")
	server.cmd.Process.Kill() // as kill -9
	server.end()
	m.sees("the connection is lost")
	m.types("meanwhile" + keyEnter)
	m.sees("you  on its way\nmeanwhile")
	start(t, nil, "serve", "--data", data, "--listen", "127.0.0.1:0", "--model", "script:"+writeFile(t, "model.txt", "otherwise\n  reply\n"))
	m.sees("#3\nmeanwhile\n", "#4\nmeanwhile\n", "connected again")
	if screen := m.reads(); strings.Count(screen, "meanwhile\n") != 2 {
		t.Errorf("something comes twice:\n%s", screen)
	}
	m.types(keyCtrlC)
	m.ends(0)
}

// C-30.13: what a model says makes the terminal do nothing, as words and as Markdown.
func TestScreenHostile(t *testing.T) {
	t.Parallel()
	data, _ := served(t, "otherwise\n  say \"bad \\x1b]0;pwned\\a\\x1b[2J\\u202e &#27;]0;pwned&#7; &amp;#27;[2J <b>\"\n  wait 500ms\n  say \"**end**\"\n")
	m := sitBefore(t, 78, 20, nil, "--data", data)
	m.types("x" + keyEnter)
	m.sees("agent  writing\nbad \uFFFD]0;pwned\uFFFD\uFFFD[2J\uFFFD &#27;]0;pwned&#7; &amp;#27;[2J <b>")
	m.sees("#2\nbad \uFFFD]0;pwned\uFFFD\uFFFD[2J\uFFFD &#27;]0;pwned&#7; &amp;#27;[2J <b>end\n")
	m.types(keyCtrlC)
	m.ends(0)
	if raw := m.written(); strings.Contains(raw, "\x1b]") || strings.Contains(raw, "\u202e") {
		t.Errorf("written was %q", raw)
	}
}

// However the chat ends, the terminal is as it was found.
func TestScreenSignals(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		data, _ := served(t, tireless)
		m := sitBefore(t, 60, 20, nil, "--data", data)
		m.types("a long one" + keyEnter)
		m.sees("agent  writing\nIt was so so ")
		m.p.cmd.Process.Signal(signal)
		m.ends(0)
	}
}

// NO_COLOR is honoured; --plain and a dumb terminal have the lines.
func TestScreenPlain(t *testing.T) {
	t.Parallel()
	data, _ := served(t, "otherwise\n  say \"`code` [not\"\n  fail unavailable after 1ms \"x\"\n")
	m := sitBefore(t, 60, 20, []string{"NO_COLOR=1"}, "--data", data)
	m.types("x" + keyEnter)
	m.sees("[no answer: the model failed")
	m.types(keyCtrlC)
	m.ends(0)
	for _, colour := range []string{"\x1b[33m", "\x1b[36m", "\x1b[34m"} {
		if strings.Contains(m.written(), colour) {
			t.Errorf("%q is written", colour)
		}
	}
	dumb := sitBefore(t, 60, 20, []string{"TERM=dumb"}, "--data", data)
	dumb.sees("conversation ", "\n>")
	dumb.types(keyCtrlD)
	if status := dumb.p.end(); status != 0 || strings.Contains(dumb.written(), "\x1b") {
		t.Errorf("a dumb terminal: exit %d, %q", status, dumb.written())
	}
	piped := start(t, func(cmd *exec.Cmd) {
		cmd.Stdin = strings.NewReader("/help\n")
		cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	}, "chat", "--data", data)
	if status := piped.end(); status != 0 || piped.stdout.String() != chatHelp {
		t.Errorf("a pipe: exit %d, %q", status, piped.stdout.String())
	}
}
