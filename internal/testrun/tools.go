package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tool is a program that some tests want and a new machine lacks.
type tool struct {
	purpose  string
	anyOf    []string // names for the PATH, or patterns of absolute paths
	packages []string // of Debian
}

var tools = []tool{
	{
		purpose:  "the race detector",
		anyOf:    []string{"gcc", "clang"},
		packages: []string{"gcc", "libc6-dev"},
	},
	{
		purpose:  "the tests behind a proxy",
		anyOf:    []string{"nginx"},
		packages: []string{"nginx-light"},
	},
	{
		purpose:  "the commands in the documentation",
		anyOf:    []string{"curl"},
		packages: []string{"curl"},
	},
	{
		purpose:  "the tests in a browser",
		anyOf:    []string{"chromium", "chromium-browser", "google-chrome"},
		packages: []string{"chromium"},
	},
}

// present reports whether the tool is installed.
func (t tool) present() bool {
	for _, name := range t.anyOf {
		if filepath.IsAbs(name) {
			if found, _ := filepath.Glob(name); len(found) > 0 {
				return true
			}
		} else if _, err := exec.LookPath(name); err == nil {
			return true
		}
	}
	return false
}

// provide installs the tool if it is missing and may be installed. It returns
// what to tell the reader if the tool is missing still, else "".
func (t tool) provide(ctx context.Context, log io.Writer) (missing string) {
	if t.present() {
		return ""
	}
	install := append([]string{"install", "-y", "--no-install-recommends"}, t.packages...)
	why := ""
	if _, err := exec.LookPath("apt-get"); err == nil && os.Geteuid() == 0 {
		for _, args := range [][]string{{"update", "-q"}, install} {
			if err := aptGet(ctx, log, args...); err != nil {
				why = fmt.Sprintf(" (apt-get %s: %v)", args[0], err)
				break
			}
		}
		if why == "" && t.present() {
			return ""
		}
	}
	return fmt.Sprintf("left out: %s, for want of %s%s; on Debian: apt-get install %s",
		t.purpose, strings.Join(t.anyOf, " or "), why, strings.Join(t.packages, " "))
}

// aptGet runs one command of apt-get, asking nothing of anybody.
func aptGet(ctx context.Context, log io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	cmd.Stdout, cmd.Stderr = log, log
	return cmd.Run()
}
