package mcp

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	lastWords = 500 * time.Millisecond // for a program to end after its input has
	maxLine   = 1 << 10                // of what it writes to its standard error
)

// passed are the variables that every program is given: what it takes to find
// and run programs. Keys and tokens of Parley's own are not among them.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TEMP", "TMP",
	"SYSTEMROOT", "PATHEXT", "COMSPEC", "APPDATA", "LOCALAPPDATA", "PROGRAMFILES", "USERPROFILE",
}

// environment is the whole environment of the program.
func environment(config Config) []string {
	var env []string
	for _, name := range passed {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for name, value := range config.Env {
		env = append(env, name+"="+value.Reveal()) // the last of a name holds
	}
	return env
}

// start starts the program in a group of its own, so that it can be ended with
// all that it starts.
func start(config Config, log *slog.Logger) (*link, error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the command: %w", err)
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the command: %w", closing(err, childIn, in))
	}
	cmd := exec.Command(config.Command, config.Args...)
	cmd.Env = environment(config)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = childIn, childOut, &lines{log: log, hide: config.hide}
	cmd.WaitDelay = lastWords // for its standard error, which somebody it started may hold open
	ownGroup(cmd)
	err = cmd.Start()
	_ = closing(nil, childIn, childOut)
	if err != nil {
		return nil, fmt.Errorf("start the command: %w", closing(err, in, out))
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // how it ended stands in its state
		killGroup(cmd) // what it has left behind
	}()
	var how string // it ended, where that was not our doing
	cut := sync.OnceFunc(func() {
		byItself := false
		select {
		case <-ended:
			byItself = true
		default:
		}
		_ = in.Close()
		timer := time.NewTimer(lastWords)
		defer timer.Stop()
		select {
		case <-ended:
			if byItself || !cmd.ProcessState.Success() {
				how = cmd.ProcessState.String()
			}
		case <-timer.C:
			killGroup(cmd)
			<-ended
		}
		_ = out.Close()
	})
	explain := func(err error) error {
		if cut(); how == "" {
			return err
		}
		return fmt.Errorf("its program ended, %s: %w", how, err)
	}
	return &link{transport: &sdk.IOTransport{Reader: out, Writer: in, MaxLineLength: maxFrame}, cut: cut, explain: explain}, nil
}

// closing closes files on the way out with an error.
func closing(err error, files ...*os.File) error {
	for _, file := range files {
		_ = file.Close()
	}
	return err
}

// lines writes what comes into the log, line by line, for us: a program's
// standard error may say anything, and its lines have any length.
type lines struct {
	log  *slog.Logger
	hide func(string) string
	line []byte
}

// Write takes in a piece. The rest of a line that is too long is dropped.
func (l *lines) Write(p []byte) (int, error) {
	if !l.log.Enabled(context.Background(), slog.LevelDebug) {
		return len(p), nil
	}
	n := len(p)
	for {
		piece, rest, end := bytes.Cut(p, []byte("\n"))
		l.line = append(l.line, piece[:min(len(piece), maxLine-len(l.line))]...)
		if !end {
			return n, nil
		}
		l.log.Debug("an MCP server says", "line", printable(l.hide(string(l.line)), maxLine))
		l.line, p = l.line[:0], rest
	}
}
