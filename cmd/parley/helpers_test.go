package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/parley-run/parley/server/datadir"
)

// scriptCommands are what the scripts can say beside the built-in commands.
var scriptCommands = map[string]func(*testscript.TestScript, bool, []string){
	"status":  status,
	"await":   await,
	"sigterm": sigterm,
	"busy":    busy,
	"newest":  newest,
	"capture": capture,
	"login":   login,
	"oneline": oneline,
	"sql":     sql,
}

// status N COMMAND… wants the command to exit with status N.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		failure, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v: %v", args[1:], err)
		}
		got = failure.ExitCode()
	}
	if got != want {
		ts.Fatalf("%v exits with %d, want %d", args[1:], got, want)
	}
}

// await DIR waits until the server of the data directory answers.
func await(ts *testscript.TestScript, _ bool, args []string) {
	_, err := awaitServer(ts.MkAbs(args[0]))
	ts.Check(err)
}

// awaitServer returns the address of the directory's server when it answers.
func awaitServer(path string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		dir, err := datadir.Existing(path)
		if err == nil {
			address, ok, err := dir.Address()
			if err == nil && ok && answers(ctx, address) {
				return address, nil
			}
		}
		select {
		case <-ctx.Done():
			return "", errors.New("no server answers on " + path)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func answers(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/readyz", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// sigterm DIR asks the server of the data directory to stop.
func sigterm(ts *testscript.TestScript, _ bool, args []string) {
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(filepath.Join(args[0], "lock"))))
	ts.Check(err)
	ts.Check(syscall.Kill(pid, syscall.SIGTERM))
}

// busy VAR listens on a port until the script ends and puts its address into
// the environment.
func busy(ts *testscript.TestScript, _ bool, args []string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { listener.Close() })
	ts.Setenv(args[0], listener.Addr().String())
}

// capture VARIABLE PATTERN sets a variable to what the group of a pattern is in the
// standard output of the last command.
func capture(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: capture VARIABLE PATTERN")
	}
	m := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) != 2 {
		ts.Fatalf("%s is not in the output", args[1])
	}
	ts.Setenv(args[0], m[1])
}

// newest VAR puts the id in the second line of the last command's output, a
// list, into the environment.
func newest(ts *testscript.TestScript, _ bool, args []string) {
	lines := strings.Split(ts.ReadFile("stdout"), "\n")
	if len(lines) < 2 {
		ts.Fatalf("no list in %q", lines)
	}
	id, _, _ := strings.Cut(lines[1], " ")
	ts.Setenv(args[0], id)
}

// login FILE opens a session with the link that ends the file, as the page does:
// from the link's own origin.
func login(ts *testscript.TestScript, neg bool, args []string) {
	text := strings.TrimSpace(ts.ReadFile(args[0]))
	at, code, ok := strings.Cut(text[strings.LastIndexByte(text, ' ')+1:], "/#code=")
	if !ok {
		ts.Fatalf("no link in %q", args[0])
	}
	request, err := http.NewRequest(http.MethodPost, at+"/session", strings.NewReader(`{"code":"`+code+`"}`))
	ts.Check(err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Origin", at)
	answer, err := http.DefaultClient.Do(request)
	ts.Check(err)
	answer.Body.Close()
	if neg != (answer.StatusCode != http.StatusCreated) {
		ts.Fatalf("the link is answered with %s", answer.Status)
	}
}

// oneline wants the last command to have said one line on standard error and
// nothing on standard output.
func oneline(ts *testscript.TestScript, _ bool, _ []string) {
	stdout, stderr := ts.ReadFile("stdout"), ts.ReadFile("stderr")
	if stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "parley: ") {
		ts.Fatalf("stdout %q and stderr %q, want one line on stderr", stdout, stderr)
	}
}

// sql FILE STATEMENT changes a database behind the program's back.
func sql(ts *testscript.TestScript, _ bool, args []string) {
	conn, err := sqlite.OpenConn(ts.MkAbs(args[0]), sqlite.OpenReadWrite)
	ts.Check(err)
	defer conn.Close()
	ts.Check(sqlitex.ExecuteTransient(conn, args[1], nil))
	if conn.Changes() == 0 {
		ts.Fatalf("%s changes nothing", args[1])
	}
}

// program is a parley process that a test has started.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr bytes.Buffer
}

// start starts parley with a home of its own.
func start(t *testing.T, configure func(*exec.Cmd), args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command("parley", args...)}
	p.cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "PARLEY_MODEL=", "OPENAI_API_KEY=", "ANTHROPIC_API_KEY=")
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if configure != nil {
		configure(p.cmd)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
	return p
}

// end waits for the process and returns its exit status, -1 after a signal.
func (p *program) end() int {
	p.t.Helper()
	if err := p.cmd.Wait(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			p.t.Fatal(err)
		}
	}
	return p.cmd.ProcessState.ExitCode()
}

// watched is what a process prints, and that it has begun to.
type watched struct {
	strings.Builder
	begun chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	if w.Len() == 0 {
		close(w.begun)
	}
	return w.Builder.Write(p)
}

// writeFile writes a file of a test and returns its path.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
