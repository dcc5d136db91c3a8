// Mutants takes out, one at a time, the guards that keep Parley's promises, and
// runs the test that must fail without each. It prints one line for each guard, and
// fails if one of them could be taken out unnoticed (C-44, L-31.4).
//
//	make mutants
//	go run ./internal/mutants [words of the guards to try]
//
// The tree stays as it is: the compiler is given the changed file in place of the
// real one.
package main

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one guard, how to take it out, and who must notice.
type mutant struct {
	guard string
	file  string
	from  string // stands once in the file
	to    string
	test  string // of the package that pkg names, or of the file's own
	pkg   string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, slices.Concat(mutants, leases), os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run tries the mutants whose guards have one of the words, all if there is none.
func run(ctx context.Context, out io.Writer, all []mutant, words []string) error {
	tried, survived := 0, 0
	for _, m := range all {
		if !wanted(m.guard, words) {
			continue
		}
		tried++
		verdict, err := m.try(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", m.guard, err)
		}
		if verdict != "" {
			survived++
			fmt.Fprintf(out, "SURVIVED  %s: %s\n", m.guard, verdict)
			continue
		}
		fmt.Fprintf(out, "noticed   %s, by %s\n", m.guard, m.test)
	}
	if tried == 0 {
		return errors.New("no guard has these words")
	}
	if survived > 0 {
		return fmt.Errorf("%d of %d guards can be taken out unnoticed", survived, tried)
	}
	fmt.Fprintf(out, "%d guards, each of them noticed\n", tried)
	return nil
}

func wanted(guard string, words []string) bool {
	for _, word := range words {
		if strings.Contains(guard, word) {
			return true
		}
	}
	return len(words) == 0
}

// try runs the test without the guard. The verdict is "" if the test failed, and
// else says what happened.
func (m mutant) try(ctx context.Context) (verdict string, err error) {
	dir, err := os.MkdirTemp("", "parley-mutant-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(dir)
	if err != nil {
		return "", err
	}
	pkg := m.pkg
	if pkg == "" {
		pkg = "./" + filepath.ToSlash(filepath.Dir(m.file))
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-count=1", "-run", "^"+m.test+"$", pkg)
	output, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case bytes.Contains(output, []byte("[no tests to run]")):
		return "", fmt.Errorf("there is no %s in %s", m.test, pkg)
	case bytes.Contains(output, []byte("[build failed]")):
		return "", fmt.Errorf("it does not compile:\n%s", output)
	case err == nil:
		return m.test + " passes", nil
	case !bytes.Contains(output, []byte("--- FAIL: "+m.test)) && !bytes.Contains(output, []byte("panic: ")):
		return "", fmt.Errorf("%s did not run:\n%s", m.test, output)
	}
	return "", nil
}

// overlay writes the changed file, and the list that puts it in place of the real
// one.
func (m mutant) overlay(dir string) (path string, err error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := bytes.Count(source, []byte(m.from)); n != 1 {
		return "", fmt.Errorf("%q stands %d times in %s, not once", m.from, n, m.file)
	}
	changed := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(changed, bytes.Replace(source, []byte(m.from), []byte(m.to), 1), 0o600); err != nil {
		return "", err
	}
	real, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {real: changed}})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}
