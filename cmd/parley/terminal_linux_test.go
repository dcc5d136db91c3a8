package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/parley-run/parley/conversation"
)

// openTerminal opens a pseudo-terminal: the person's end, and the program's.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0) // so that reads have deadlines
	if err != nil && os.Getenv("CI") != "true" {                                                   // in CI what is missing fails
		t.Skipf("no pseudo-terminal: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	person = os.NewFile(uintptr(fd), "/dev/ptmx")
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// seat is a person at a terminal on which parley chat runs.
type seat struct {
	t    *testing.T
	p    *program
	end  *os.File
	seen strings.Builder
	read int // of what was seen, in bytes
}

// sit starts parley chat --plain on a terminal of its own, Ctrl-C included, and waits for
// the first prompt.
func sit(t *testing.T, model string, args ...string) *seat {
	t.Helper()
	person, program := openTerminal(t)
	file := writeFile(t, "model.txt", model)
	s := &seat{t: t, end: person}
	s.p = start(t, func(cmd *exec.Cmd) {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
		cmd.Env = append(cmd.Env, "PARLEY_MODEL=script:"+file)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}, append([]string{"chat", "--plain"}, args...)...)
	program.Close()
	s.sees(")\r\n") // the id, and how to go on
	return s
}

// sees waits until a text is shown behind what was read before, and returns what
// stands between.
func (s *seat) sees(text string) (before string) {
	s.t.Helper()
	if err := s.end.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	buffer := make([]byte, 4096)
	for {
		if i := strings.Index(s.seen.String()[s.read:], text); i >= 0 {
			before = s.seen.String()[s.read : s.read+i]
			s.read += i + len(text)
			return before
		}
		n, err := s.end.Read(buffer)
		if err != nil {
			s.t.Fatalf("waiting for %q: %v; the terminal shows %q", text, err, s.seen.String())
		}
		s.seen.Write(buffer[:n])
	}
}

// types writes on the keyboard.
func (s *seat) types(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.end, text); err != nil {
		s.t.Fatal(err)
	}
}

// leaves ends the talk with a key, and wants it to end well.
func (s *seat) leaves(key string) {
	s.t.Helper()
	s.types(key)
	if status := s.p.end(); status != 0 {
		s.t.Errorf("chat exits with %d; the terminal shows %q", status, s.seen.String())
	}
}

// On a terminal a person reads the words while the model still speaks, and each
// of them once (C-28.1).
func TestWordsOnTerminal(t *testing.T) {
	t.Parallel()
	s := sit(t, "otherwise\n  say \"one \"\n  wait 1s\n  say \"two \"\n  wait 1s\n  say \"three\"\n", "--data", filepath.Join(t.TempDir(), "data"))
	s.sees("> ")
	s.types("go\n")
	s.sees("go\r\none ")
	if strings.Contains(s.seen.String(), "two") {
		t.Errorf("the first word comes with the second: %q", s.seen.String())
	}
	s.sees("two ")
	if strings.Contains(s.seen.String(), "three") {
		t.Errorf("the second word comes with the third: %q", s.seen.String())
	}
	s.sees("three\r\n> ")
	s.leaves("\x04")
	if _, shown, _ := strings.Cut(s.seen.String(), ")\r\n"); shown != "> go\r\none two three\r\n> " {
		t.Errorf("the terminal shows %q", shown)
	}
}

// C-14.1, C-14.21, T40, T65: a line typed while an answer is written interrupts
// it. What was shown of it stays, marked, and the next answer begins on a line of
// its own. Both are in the history, and can be edited from there (C-27).
func TestInterruptOnTerminal(t *testing.T) {
	t.Parallel()
	s := sit(t, tireless, "--data", filepath.Join(t.TempDir(), "data"))
	s.sees("> ")
	s.types("a long one\n")
	s.sees("It was so so ")
	s.types("never mind\n")
	cut := s.sees("[interrupted]\r\nsaid: never mind\r\n> ")
	if cut = strings.ReplaceAll(strings.Replace(cut, "never mind\r\n", "", 1), "so ", ""); strings.TrimSpace(cut) != "" {
		t.Errorf("between the words and the mark stands %q", cut)
	}

	s.types("/history\n")
	s.sees("/history\r\n   1  you: a long one\r\n   2  agent: It was so so ")
	if rest := s.sees("[interrupted]\r\n"); strings.Trim(rest, "so ") != "" {
		t.Errorf("the cut answer goes on with %q", rest)
	}
	s.sees("   3  you: never mind\r\n   4  agent: said: never mind\r\n> ")
	s.types("/edit 3 do mind\n")
	s.sees("\r\nsaid: [This message edits the user's earlier message \"never mind\".]\r\ndo mind\r\n> ")
	s.types("/history 2\n")
	s.sees("\r\n   5  you: do mind [edits 3]\r\n   6  agent: said: ")
	s.sees("do mind\r\n> ")

	// An edit interrupts like any message, and one of nothing is told.
	s.types("another long one\n")
	s.sees("It was so ")
	s.types("/edit 2 of an answer\n")
	s.sees("[interrupted]\r\n")
	s.sees("parley: the message was rejected: edit-invalid; ")
	s.sees("> ")
	s.types("/nonsense\n")
	s.sees("parley: this is no command; /help lists them")
	s.sees("> ")
	s.types("/help\n")
	s.sees(strings.ReplaceAll(chatHelp, "\n", "\r\n") + "> ")
	s.types("//slash\n")
	s.sees("said: /slash\r\n> ")
	s.types("\x04")
	s.sees("parley: 1 of 6 lines got no answer")
	if status := s.p.end(); status != 1 {
		t.Errorf("chat exits with %d after a rejected line, want 1", status)
	}
}

// A line of which a terminal drops the end is not sent without it.
func TestLongLineOnTerminal(t *testing.T) {
	t.Parallel()
	s := sit(t, "otherwise\n  say \"heard\"\n", "--data", filepath.Join(t.TempDir(), "data"))
	s.sees("> ")
	s.types(strings.Repeat("x", 3000))
	s.types(strings.Repeat("y", 1095) + "lost\n")
	s.sees("parley: not sent: a terminal keeps 4095 bytes of a line")
	s.sees("> ")
	s.types(strings.Repeat("x", terminalLine-1) + "\n")
	s.sees("heard\r\n> ")
}

// C-46.2, T38: /stop, and the first Ctrl-C, end the answer, and the talk goes on.
// A Ctrl-C at the prompt ends the talk.
func TestStopOnTerminal(t *testing.T) {
	t.Parallel()
	s := sit(t, tireless, "--data", filepath.Join(t.TempDir(), "data"))
	s.sees("> ")
	for _, key := range []string{"/stop\n", "\x03"} {
		s.types("a long one\n")
		s.sees("It was so so ")
		s.types(key)
		s.sees("[interrupted]\r\n> ")
	}
	s.types("/stop\n")
	s.sees("parley: no answer is being written\r\n> ")
	s.types("short\n")
	s.sees("\r\nsaid: short\r\n> ")
	s.leaves("\x03")
}

// T24, T25, T98, T100: leaving the talk does not end the answer. Who comes back is
// shown all of it, as it is written, and can stop it.
func TestComeBackToTerminal(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	start(t, nil, "serve", "--data", data, "--listen", "127.0.0.1:0", "--model", "script:"+writeFile(t, "model.txt", tireless))
	me := reader(t, data)
	first := sit(t, tireless, "--data", data)
	first.sees("> ")
	first.types("a long one\n")
	first.sees("It was so so ")
	first.p.cmd.Process.Kill() // a closed window
	first.p.end()

	second := sit(t, tireless, "--data", data, "--continue")
	second.sees("It was so so so ")
	second.types("/stop\n")
	second.sees("[interrupted]\r\n> ")
	second.leaves("\x04")
	record := awaitRecord(t, me, onlyConversation(t, me), conversation.RoleAssistant, 1)
	if record.Status != conversation.StatusInterrupted || !strings.HasPrefix(record.Text, "It was so so so ") {
		t.Errorf("the answer is %s, %q", record.Status, record.Text)
	}
}

// A person who starts the server at a terminal is given a link to the page, without
// asking for it.
func TestLinkOnTerminal(t *testing.T) {
	person, program := openTerminal(t)
	s := &seat{t: t, end: person}
	s.p = start(t, func(cmd *exec.Cmd) {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}, "serve", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0")
	program.Close()
	s.sees("open the page, once, within an hour: http://127.0.0.1:")
	s.sees("/#code=parley_")
	s.leaves("\x03") // Ctrl-C
}
