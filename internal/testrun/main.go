// Testrun runs the module's tests and says in one last line how many passed.
//
//	go run ./internal/testrun [arguments of go test]
//
// It installs the tools that the tests want, where it is root and has apt-get;
// elsewhere it runs what it can. The race detector is on wherever it works. Of
// a package that passes it prints one line, of one that fails what its failed
// tests printed; at the end it lists what was left out and how to get it. With
// CI=true in the environment a missing tool is a failure.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run does what the program promises and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	t := newTally(stdout)
	for _, tool := range tools {
		if missing := tool.provide(ctx, stderr); missing != "" {
			t.note(missing)
			if os.Getenv("CI") == "true" {
				t.failed++
			}
		}
	}
	command := []string{"test", "-json"}
	if races(ctx) {
		command = append(command, "-race")
	}
	if err := goTest(ctx, append(command, args...), t, stderr); err != nil {
		fmt.Fprintln(stderr, "testrun:", err)
		return max(t.finish(), 1)
	}
	return t.finish()
}

// goTest feeds the tally from one go test. That tests failed is no error, since
// the tally has counted them.
func goTest(ctx context.Context, args []string, t *tally, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stderr = stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := t.read(events)
	if err := cmd.Wait(); err != nil && t.failed == 0 {
		return fmt.Errorf("go test: %w", err)
	}
	return readErr
}

// races reports whether this machine can run the race detector.
func races(ctx context.Context) bool {
	return exec.CommandContext(ctx, "go", "list", "-race", "errors").Run() == nil
}
