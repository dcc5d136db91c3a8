package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal opens a pseudo-terminal: the person's end, and the program's.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil && os.Getenv("CI") != "true" { // in CI what is missing fails
		t.Skipf("no pseudo-terminal: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
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

// On a terminal a person reads the words while the model still speaks, and each
// of them once (C-28.1).
func TestWordsOnTerminal(t *testing.T) {
	t.Parallel()
	person, program := openTerminal(t)
	model := writeFile(t, "model.txt", "otherwise\n  say \"one \"\n  wait 1s\n  say \"two \"\n  wait 1s\n  say \"three\"\n")
	p := start(t, func(cmd *exec.Cmd) {
		cmd.Stdin, cmd.Stdout = program, program
		cmd.Env = append(cmd.Env, "PARLEY_MODEL=script:"+model)
	}, "chat", "--data", filepath.Join(t.TempDir(), "data"))
	program.Close()

	var seen strings.Builder
	until := func(text string) {
		t.Helper()
		buffer := make([]byte, 1024)
		for !strings.Contains(seen.String(), text) {
			n, err := person.Read(buffer)
			if err != nil {
				t.Fatalf("the terminal shows %q and ends with %v, %s", seen.String(), err, p.stderr.String())
			}
			seen.Write(buffer[:n])
		}
	}
	until("> ")
	begun := time.Now()
	io.WriteString(person, "go\n")
	until("one ")
	if strings.Contains(seen.String(), "two") || time.Since(begun) > 30*time.Second {
		t.Errorf("the first word comes with the second: %q", seen.String())
	}
	until("two ")
	if strings.Contains(seen.String(), "three") {
		t.Errorf("the second word comes with the third: %q", seen.String())
	}
	until("three\r\n> ")
	io.WriteString(person, "\x04")
	if status := p.end(); status != 0 {
		t.Errorf("chat exits with %d: %s", status, p.stderr.String())
	}
	if got, want := seen.String(), "> go\r\none two three\r\n> "; got != want {
		t.Errorf("the terminal shows %q, want %q", got, want)
	}
}
