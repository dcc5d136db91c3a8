// Testrun runs the module's tests and says in one last line how many passed.
//
//	go run ./internal/testrun [arguments of go test]
//	go run ./internal/testrun tools
//
// The second form only installs what the tests want.
//
// It installs the tools that the tests want, where it is root and has apt-get;
// elsewhere it runs what it can. The race detector is on wherever it works; tests
// of very many cases run all of them in a second pass without it. Of a package
// that passes it prints one line, of one that fails what its failed tests printed;
// at the end it lists what was left out and how to get it. With CI=true in the
// environment a missing tool is a failure.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
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
	if slices.Equal(args, []string{"tools"}) {
		return min(t.failed, 1)
	}
	for _, command := range commands(races(ctx), args) {
		if err := goTest(ctx, command, t, stderr); err != nil {
			fmt.Fprintln(stderr, "testrun:", err)
			return max(t.finish(), 1)
		}
	}
	return t.finish()
}

// ofMany are the tests that do only a part of their cases under the race detector,
// by the beginnings of their names.
var ofMany = []string{"TestMany", "TestCrashMatrix", "TestEveryAppend"}

// commands are the arguments of each go test to run. Where all tests are asked for
// under the race detector, those of many cases run once more without it.
func commands(race bool, args []string) [][]string {
	if !race {
		return [][]string{append([]string{"test", "-json"}, args...)}
	}
	all := [][]string{append([]string{"test", "-json", "-race"}, args...)}
	if packages := foldersOfMany("."); slices.Equal(args, []string{"./..."}) && len(packages) > 0 {
		all = append(all, append([]string{"test", "-json", "-run", "^(" + strings.Join(ofMany, "|") + ")"}, packages...))
	}
	return all
}

// foldersOfMany lists the folders beneath root that have such a test.
func foldersOfMany(root string) (folders []string) {
	filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return nil // a folder that cannot be read is go test's to complain of
		}
		source, err := os.ReadFile(path)
		has := func(name string) bool { return bytes.Contains(source, []byte("\nfunc "+name)) }
		folder := "./" + filepath.ToSlash(filepath.Dir(path))
		if err == nil && slices.ContainsFunc(ofMany, has) && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
		return nil
	})
	return folders
}

// goTest feeds the tally from one go test. That tests failed is no error, since
// the tally has counted them.
func goTest(ctx context.Context, args []string, t *tally, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stderr = stderr
	if !slices.Contains(args, "-race") {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as make check builds, so that nothing is compiled a third time
	}
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
