package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"
)

// monitor is a person before a screen on which parley chat runs.
type monitor struct {
	t       *testing.T
	p       *program
	end     *os.File // the person's
	tty     *os.File // the program's
	found   unix.Termios
	screen  *vt.SafeEmulator
	changed chan struct{}
	done    sync.WaitGroup

	mu  sync.Mutex
	raw bytes.Buffer // all that the program has written
}

// sitBefore starts parley chat on a screen of a size, and waits until it is there.
func sitBefore(t *testing.T, width, height int, env []string, args ...string) *monitor {
	t.Helper()
	return sitDown(t, width, height, "", env, args...)
}

// sitDown is sitBefore for a person who types before the screen is there.
func sitDown(t *testing.T, width, height int, early string, env []string, args ...string) *monitor {
	t.Helper()
	person, tty := openTerminal(t)
	m := &monitor{t: t, end: person, tty: tty, screen: vt.NewSafeEmulator(width, height), changed: make(chan struct{}, 1)}
	m.setSize(width, height)
	found, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	m.found = *found
	m.types(early)
	m.done.Go(m.shows)
	m.done.Go(m.answers)
	t.Cleanup(func() {
		person.Close()
		m.screen.InputPipe().(io.Closer).Close() // the screen's own Close races with its Read
		m.done.Wait()
	})
	m.p = start(t, func(cmd *exec.Cmd) {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
		cmd.Env = append(append(cmd.Env, "TERM=xterm-256color", "NO_COLOR="), env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}, append([]string{"chat"}, args...)...)
	m.until("the first screen", func(screen string) bool {
		return strings.Contains(screen, "Enter sends") || strings.Contains(screen, "writing") || strings.Contains(screen, "\n>") && strings.Contains(screen, "conversation ")
	})
	return m
}

// shows puts on the screen what the program writes.
func (m *monitor) shows() {
	buffer := make([]byte, 4096)
	for {
		n, err := m.end.Read(buffer)
		if err != nil {
			return
		}
		m.mu.Lock()
		m.raw.Write(buffer[:n])
		m.mu.Unlock()
		m.screen.Write(buffer[:n])
		select {
		case m.changed <- struct{}{}:
		default:
		}
	}
}

// answers passes on what a terminal answers when it is asked.
func (m *monitor) answers() {
	buffer := make([]byte, 256)
	for {
		n, err := m.screen.Read(buffer)
		if err != nil {
			return
		}
		if _, err := m.end.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// setSize tells the program how large the screen is.
func (m *monitor) setSize(width, height int) {
	m.t.Helper()
	m.screen.Resize(width, height)
	if err := unix.IoctlSetWinsize(int(m.tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(width), Row: uint16(height)}); err != nil {
		m.t.Fatal(err)
	}
}

// reads is what stands on the screen.
func (m *monitor) reads() string {
	rows := strings.Split(ansi.Strip(m.screen.Render()), "\n")
	for i, row := range rows {
		rows[i] = strings.TrimRight(row, " \r")
	}
	return strings.Join(rows, "\n")
}

// until waits until the screen is as wanted, and returns what it shows.
func (m *monitor) until(what string, wanted func(string) bool) string {
	m.t.Helper()
	late := time.After(20 * time.Second)
	for {
		if text := m.reads(); wanted(text) {
			return text
		}
		select {
		case <-m.changed:
		case <-late:
			m.t.Fatalf("waiting for %s; the screen shows\n%s", what, m.reads())
		}
	}
}

// sees waits until texts stand on the screen, in this order.
func (m *monitor) sees(texts ...string) string {
	m.t.Helper()
	return m.until(strings.Join(texts, " … "), func(screen string) bool {
		for _, text := range texts {
			_, rest, ok := strings.Cut(screen, text)
			if !ok {
				return false
			}
			screen = rest
		}
		return true
	})
}

// misses waits until a text stands there no more.
func (m *monitor) misses(text string) string {
	m.t.Helper()
	return m.until("no "+text, func(screen string) bool { return !strings.Contains(screen, text) })
}

// types presses keys.
func (m *monitor) types(keys string) {
	m.t.Helper()
	if _, err := m.end.WriteString(keys); err != nil {
		m.t.Fatal(err)
	}
}

// The keys, as terminals send them.
const (
	keyEnter    = "\r"
	keyEsc      = "\x1b"
	keyAltEnter = "\x1b\r"
	keyPgUp     = "\x1b[5~"
	keyPgDown   = "\x1b[6~"
	keyUp       = "\x1b[A"
	keyDown     = "\x1b[B"
	keyCtrlEnd  = "\x1b[1;5F"
	keyCtrlC    = "\x03"
	keyCtrlD    = "\x04"
	keyCtrlN    = "\x0e"
	keyCtrlR    = "\x12"
	keyCtrlT    = "\x14"
	keyCtrlX    = "\x18"
)

// ends waits for the program, and wants the terminal as it was found.
func (m *monitor) ends(status int) {
	m.t.Helper()
	if got := m.p.end(); got != status {
		m.t.Errorf("chat exits with %d, want %d; the screen shows\n%s", got, status, m.reads())
	}
	left, err := unix.IoctlGetTermios(int(m.tty.Fd()), unix.TCGETS)
	if err != nil {
		m.t.Fatal(err)
	}
	if *left != m.found {
		m.t.Errorf("the terminal is left as %+v, was found as %+v", *left, m.found)
	}
	m.sees("(to go on")
	if m.screen.IsAltScreen() || m.screen.CursorHidden() {
		m.t.Errorf("the terminal is left on the other screen: %v, or without its cursor: %v", m.screen.IsAltScreen(), m.screen.CursorHidden())
	}
	if strings.LastIndex(m.written(), "\x1b[?2004h") > strings.LastIndex(m.written(), "\x1b[?2004l") {
		m.t.Error("the terminal goes on marking what is pasted")
	}
}

// written is all that the program has written so far.
func (m *monitor) written() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.raw.String()
}
