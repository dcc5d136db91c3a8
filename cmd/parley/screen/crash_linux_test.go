package screen

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/parley-run/parley/client"
)

// crashes tells a process of this test to crash, and where.
const crashes = "PARLEY_TEST_CRASH"

// A panic, of the state machine or of what works for it, leaves the terminal as it was
// found and says what it was.
func TestCrash(t *testing.T) {
	if where := os.Getenv(crashes); where != "" {
		crash(t, where)
		return
	}
	for _, where := range []string{"state", "world"} {
		t.Run(where, func(t *testing.T) {
			person, tty := openTerminal(t)
			found, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			var shown bytes.Buffer
			read := make(chan error, 1)
			go func() {
				screen := bufio.NewReader(io.TeeReader(person, &shown))
				for line := ""; !strings.Contains(line, "reading"); { // the screen is there
					b, err := screen.ReadByte()
					if err != nil {
						read <- err
						return
					}
					line += string(b)
				}
				_, err := person.WriteString("boom\r") // it crashes when it sends that
				_, copied := io.Copy(io.Discard, screen)
				read <- cmp.Or(err, copied)
			}()
			program := exec.Command(os.Args[0], "-test.run=^TestCrash$")
			program.Env = append(os.Environ(), crashes+"="+where, "TERM=xterm-256color")
			program.Stdin, program.Stdout, program.Stderr = tty, tty, tty
			program.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := program.Run(); err == nil {
				t.Error("the process ends well")
			}
			left, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			if *left != *found {
				t.Errorf("the terminal is left as %+v, was found as %+v", *left, *found)
			}
			tty.Close()
			<-read // ends when nobody has the program's end any more
			text := shown.String()
			_, after, ok := strings.Cut(text, "\x1b[?1049l")
			if !ok || strings.LastIndex(text, "\x1b[?25l") > strings.LastIndex(text, "\x1b[?25h") {
				t.Errorf("the terminal is left on the other screen, or without its cursor: %q", text)
			}
			if !strings.Contains(after, "boom of the "+where) || !strings.Contains(after, "crash_linux_test.go:") {
				t.Errorf("the terminal does not show the panic: %q", text)
			}
		})
	}
}

// crash runs a chat that panics.
func crash(t *testing.T, where string) {
	asked := make(chan struct{})
	server, err := client.New("http://server.invalid", "token", &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		if where == "world" {
			select {
			case <-asked:
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
			panic("boom of the world")
		}
		<-r.Context().Done()
		return nil, r.Context().Err()
	})})
	if err != nil {
		t.Fatal(err)
	}
	state := newState("first", time.Local)
	state.ids = func() string {
		if where == "state" {
			panic("boom of the state")
		}
		close(asked)
		return "m1"
	}
	_, err = run(t.Context(), Config{Server: server, ID: "first", In: os.Stdin, Out: os.Stdout}, state)
	t.Fatal(err)
}

// openTerminal opens a pseudo-terminal: the person's end, and the program's.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil && os.Getenv("CI") != "true" {
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
