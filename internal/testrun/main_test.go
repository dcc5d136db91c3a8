package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// Each file of testdata is a module and what a run of its tests prints, less
// the frames of a stack.
func TestRun(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("Glob = %v, %v, want the modules", files, err)
	}
	for _, name := range files {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			want := ""
			dir := t.TempDir()
			for _, f := range archive.Files {
				if f.Name == "want" {
					want = string(f.Data)
					continue
				}
				path := filepath.Join(dir, f.Name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, f.Data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			t.Chdir(dir)
			var out, log bytes.Buffer
			tl := newTally(&out)
			err := goTest(t.Context(), []string{"test", "-json", "-p=1", "./..."}, tl, &log)
			if err != nil {
				fmt.Fprintln(&out, err)
			}
			fmt.Fprintf(&out, "exit %d\n", tl.finish())
			if diff := cmp.Diff(want, steady(out.String())); diff != "" {
				t.Errorf("output (-want +got):\n%s\nlog:\n%s", diff, log.String())
			}
		})
	}
}

var (
	times  = regexp.MustCompile(`\d+\.\d+s`)
	spaces = regexp.MustCompile(` +TIME`)
	dirs   = regexp.MustCompile(`\S*/\d{3}/`)
	frames = regexp.MustCompile(`(?m)^(goroutine \d|\t/|\S*\(.*\)$|created by|\s*$|exit status|\[recovered).*\n`)
)

// steady takes the times, the temporary folders and the stacks out of an output.
func steady(s string) string {
	s = dirs.ReplaceAllString(frames.ReplaceAllString(s, ""), "DIR/")
	return spaces.ReplaceAllString(times.ReplaceAllString(s, "TIME"), " TIME")
}

// A stream that ends in the middle fails the package that was running.
func TestCutStream(t *testing.T) {
	var out bytes.Buffer
	tl := newTally(&out)
	stream := `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestOne"}
{"Action":"pass","Package":"m/a","Test":"TestOne"}
{"Action":"run","Package":"m/a","Test":"TestTwo"}
{"Action":"output","Package":"m/a","Test":"TestTwo","Output":"still here\n"}
not an event
{"Action":"run","Package":`
	if err := tl.read(strings.NewReader(stream)); err != nil {
		t.Fatal(err)
	}
	code := tl.finish()
	if !strings.HasSuffix(out.String(), "\n1 passed, 1 failed\n") || code != 1 {
		t.Errorf("finish() = %d after\n%s\nwant 1 and one failure", code, out.String())
	}
	for _, want := range []string{"still here\n", "not an event\n", "FAIL", `{"Action":"run","Package":`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
}

// A tool that is missing, and cannot be installed, is named with its package.
func TestMissingTool(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	absent := tool{purpose: "the browser tests", anyOf: []string{"chromium", filepath.Join(t.TempDir(), "*")}, packages: []string{"chromium", "fonts"}}
	got := absent.provide(t.Context(), t.Output())
	if !strings.Contains(got, "the browser tests") || !strings.HasSuffix(got, "apt-get install chromium fonts") {
		t.Errorf("provide = %q, want purpose and packages", got)
	}
	here := tool{anyOf: []string{"nowhere", filepath.Join(filepath.Dir(os.Args[0]), "*")}}
	if got := here.provide(t.Context(), t.Output()); got != "" {
		t.Errorf("provide of what is there = %q, want nothing", got)
	}
}

// A test of very many cases runs twice where the race detector slows it.
func TestSecondPass(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("deep", 0o700); err != nil {
		t.Fatal(err)
	}
	for file, source := range map[string]string{
		"a_test.go": "package a\n\nfunc TestOne(t *testing.T) {}\n", "deep/b_test.go": "package b\n\nfunc TestManyThings(t *testing.T) {}\n",
		"deep/c_test.go": "package b\n\nfunc TestManyMore(t *testing.T) {}\n",
	} {
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		race bool
		args string
		want []string
	}{
		{true, "./...", []string{"test -json -race ./...", "test -json -run ^(TestMany|TestCrashMatrix|TestEveryAppend) ./deep"}},
		{true, "./deep", []string{"test -json -race ./deep"}},
		{false, "./...", []string{"test -json ./..."}},
	} {
		var got []string
		for _, command := range commands(tt.race, strings.Fields(tt.args)) {
			got = append(got, strings.Join(command, " "))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("commands(%v, %s) (-want +got):\n%s", tt.race, tt.args, diff)
		}
	}
}
