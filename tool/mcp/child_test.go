package mcp

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
	"github.com/parley-run/parley/tool"
	"github.com/parley-run/parley/tool/tooltest"
)

// A program that is started is a set of tools.
func TestChild(t *testing.T) {
	w := watch(t, child(t, "good"))
	w.Start()
	w.until("the tools are there", offers("echo"))
	tooltest.Run(t, w.Server)
	w.Close()
	if got := w.Offers(); len(got) != 0 {
		t.Errorf("Offers after Close = %v, want none", got)
	}
	if _, err := w.call("echo"); !errors.Is(err, tool.ErrAbsent) {
		t.Errorf("Call after Close = %v, want ErrAbsent", err)
	}
}

// An error of a tool is its result; so is a server's refusal. Both have the
// origin of their tool (C-8.9).
func TestChildFails(t *testing.T) {
	w := watch(t, child(t, "good"))
	w.Start()
	w.until("the tools are there", offers("echo"))
	for name, want := range map[string]tool.Result{
		"fail":   {Text: "no such page", Failed: true, Origin: taint.Origin("mcp:peer/fail")},
		"refuse": {Text: "The server refused the call: not with these words", Failed: true, Origin: taint.Origin("mcp:peer/refuse")},
	} {
		if got, err := w.call(name); err != nil || got != want {
			t.Errorf("Call(%s) = %+v, %v, want %+v", name, got, err, want)
		}
	}
}

// T59: a server that dies in the middle of a call leaves its outcome unknown. It
// is started again, and its tools are back.
func TestChildDies(t *testing.T) {
	for _, name := range []string{"die", "huge"} { // the latter by what it says
		t.Run(name, func(t *testing.T) {
			w := watch(t, child(t, "good"))
			w.Start()
			w.until("the tools are there", offers("echo"))
			if got, err := w.call(name); !errors.Is(err, kernel.ErrOutcomeUnknown) {
				t.Errorf("Call = %+v, %v, want ErrOutcomeUnknown", got, err)
			}
			w.until("the tools are gone", nothing)
			if _, err := w.call("echo"); !errors.Is(err, tool.ErrAbsent) {
				t.Errorf("Call of a server that is away = %v, want ErrAbsent", err)
			}
			w.until("the tools are back", offers("echo"))
		})
	}
}

// records are the lines of a log, as they come.
type records chan string

func (r records) Write(p []byte) (int, error) {
	r <- string(p)
	return len(p), nil
}

// Of a program that ends the log says how, also where it never began to talk.
func TestChildEnds(t *testing.T) {
	const want = "its program ended, exit status 3: "
	for _, mode := range []string{"broken", "good"} {
		t.Run(mode, func(t *testing.T) {
			log := make(records, 1024)
			config := child(t, mode)
			config.Log = slog.New(slog.NewTextHandler(log, nil))
			w := watch(t, config)
			w.Start()
			if mode == "good" {
				w.until("the tools are there", offers("echo"))
				_, _ = w.call("die")
			}
			patience := time.After(20 * time.Second)
			for line := ""; !strings.Contains(line, "is away"); {
				select {
				case line = <-log:
				case <-patience:
					t.Fatal("the log does not say that it is away")
				}
				if strings.Contains(line, "is away") && !strings.Contains(line, want) {
					t.Errorf("the log says %s; want %q", line, want)
				}
			}
		})
	}
}

// A call that hangs ends with its time, also where the server does not even read
// what it is sent, and the other tools go on.
func TestChildHangs(t *testing.T) {
	config := child(t, "good")
	config.Timeout = 100 * time.Millisecond
	w := watch(t, config)
	w.Start()
	w.until("the tools are there", offers("echo"))
	if got, err := w.call("wait"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Call = %+v, %v, want DeadlineExceeded", got, err)
	}
	if got, err := w.Call(t.Context(), "echo", jsontext.Value(`{"text":"still here"}`)); err != nil || got.Text != "still here" {
		t.Errorf("Call afterwards = %+v, %v", got, err)
	}
	if _, err := w.call("plug"); err != nil {
		t.Fatal(err)
	}
	large := jsontext.Value(`{"text":"` + strings.Repeat("x", 1<<20) + `"}`) // more than a pipe holds
	for range 3 {
		if got, err := w.Call(t.Context(), "echo", large); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Call of a server that does not read = %+v, %v, want DeadlineExceeded", got, err)
		}
	}
	start := time.Now()
	w.Close()
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("Close took %v", took)
	}
}

// Whatever a program does, Close ends it: one that never says a word, and one
// that is in the middle of a call.
func TestCloseEndsTheChild(t *testing.T) {
	for _, mode := range []string{"mute", "good"} {
		t.Run(mode, func(t *testing.T) {
			w := watch(t, child(t, mode))
			w.Start()
			var calling sync.WaitGroup
			if mode == "good" {
				w.until("the tools are there", offers("wait"))
				calling.Go(func() {
					if _, err := w.call("wait"); !errors.Is(err, kernel.ErrOutcomeUnknown) && !errors.Is(err, tool.ErrAbsent) {
						t.Errorf("Call = %v, want its outcome unknown", err)
					}
				})
			}
			start := time.Now()
			w.Close()
			calling.Wait()
			if took := time.Since(start); took > 3*time.Second {
				t.Errorf("Close took %v", took)
			}
			w.Close() // again, for nothing
		})
	}
}

// What a program has started ends with it.
func TestCloseEndsTheGroup(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	config := child(t, "good")
	config.Env["PARLEY_TEST_SOCKET"] = identity.NewSecret(socket)
	w := watch(t, config)
	w.Start()
	w.until("the tools are there", offers("spawn"))
	if got, err := w.call("spawn"); err != nil || got.Failed {
		t.Fatalf("Call(spawn) = %+v, %v", got, err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w.Close()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the grandchild is still there: %v, want its end", err)
	}
}

// A program is given what it takes to run, what it was promised, and no key of
// Parley's.
func TestChildEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sekrit")
	config := child(t, "good")
	config.Env["WIKI_TOKEN"] = identity.NewSecret("promised")
	w := watch(t, config)
	w.Start()
	w.until("the tools are there", offers("environ"))
	got, err := w.call("environ")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.Text, "WIKI_TOKEN=promised") || !strings.Contains(got.Text, "PATH=") || strings.Contains(got.Text, "sekrit") {
		t.Errorf("the environment of the program is\n%s", got.Text)
	}
}

// A server tells of a change, and its tools are listed again.
func TestListChanged(t *testing.T) {
	w := watch(t, child(t, "good"))
	w.Start()
	w.until("the tools are there", offers("grow"))
	if got, err := w.call("grow"); err != nil || got.Text != "done" {
		t.Fatalf("Call(grow) = %+v, %v", got, err)
	}
	w.until("the new tool is there, and the old one gone", func(all []tool.Offer) bool {
		return offers("grown")(all) && !offers("huge")(all)
	})
	if got, err := w.call("grown"); err != nil || got.Text != "I am new" {
		t.Errorf("Call(grown) = %+v, %v", got, err)
	}
}

// A program's standard error goes to the log for us, in bounded lines, and not to
// an operator.
func TestStandardError(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo} {
		var log locked
		config := child(t, "good")
		config.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level}))
		w := watch(t, config)
		w.Start()
		w.until("the tools are there", offers("echo"))
		w.Close()
		text := log.String()
		if got := strings.Contains(text, "a word to the log"); got != (level == slog.LevelDebug) {
			t.Errorf("at %v the log has its words: %t\n%s", level, got, text)
		}
		if strings.Contains(text, strings.Repeat("x", maxLine)) {
			t.Error("a line of the log is longer than it may be")
		}
		if !strings.Contains(text, `msg="an MCP server is there" mcp=peer tools=10`) {
			t.Errorf("the log does not say that the server is there:\n%s", text)
		}
	}
}

// locked is a log that can be looked at.
type locked struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds to the log.
func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A command that cannot be started is tried again, and said once.
func TestNoCommand(t *testing.T) {
	var log locked
	w := watch(t, Config{Name: "none", Command: filepath.Join(t.TempDir(), "none"), Log: slog.New(slog.NewTextHandler(&log, nil))})
	w.Start()
	w.Start() // again, for nothing
	if got := w.Offers(); len(got) != 0 {
		t.Errorf("Offers = %v, want none", got)
	}
	w.Close()
	if text := log.String(); strings.Count(text, "away") > 1 {
		t.Errorf("the log says it more than once:\n%s", text)
	}
}
