package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is one line of go test -json; see go doc test2json and go help buildjson.
type event struct {
	Action     string
	Package    string
	Test       string
	Output     string
	Elapsed    float64 // seconds
	ImportPath string  // of a build
}

// tally counts results. A test with subtests counts only where it failed and no
// subtest did; a package that fails without a failed test counts as one.
type tally struct {
	out                     io.Writer
	notes                   []string
	passed, failed, skipped int
	open                    map[string]*running // by package
}

// running is a package whose tests run.
type running struct {
	results map[string]string // the action that ended each test; "" while it runs
	lines   []line
}

// line is something that a test printed, or the package where test is empty.
type line struct{ test, text string }

func newTally(out io.Writer) *tally {
	return &tally{out: out, open: map[string]*running{}}
}

// note keeps a line for the end of the report.
func (t *tally) note(text string) { t.notes = append(t.notes, text) }

// read takes events to the end of r, and passes on what is none.
func (t *tally) read(r io.Reader) error {
	for in := bufio.NewReader(r); ; {
		text, err := in.ReadString('\n')
		var e event
		if text != "" && (json.Unmarshal([]byte(text), &e) != nil || e.Action == "") {
			fmt.Fprint(t.out, text)
		} else if text != "" {
			t.take(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the events of go test: %w", err)
		}
	}
}

func (t *tally) take(e event) {
	if e.Action == "build-output" {
		fmt.Fprint(t.out, e.Output)
	}
	if e.Package == "" {
		return
	}
	p := t.open[e.Package]
	if p == nil {
		p = &running{results: map[string]string{}}
		t.open[e.Package] = p
	}
	switch e.Action {
	case "output":
		p.lines = append(p.lines, line{e.Test, e.Output})
	case "run":
		p.results[e.Test] = ""
	case "pass", "fail", "skip":
		if e.Test != "" {
			p.results[e.Test] = e.Action
			return
		}
		delete(t.open, e.Package)
		t.count(e.Package, p, e.Action)
		t.report(e, p)
	}
}

// count adds up the tests of a package that ended. A test that runs still was
// cut off by a panic, an exit or a deadline: it failed.
func (t *tally) count(name string, p *running, action string) {
	parents := map[string]bool{} // true where a subtest failed
	for test, result := range p.results {
		for i := strings.LastIndexByte(test, '/'); i >= 0; i = strings.LastIndexByte(test[:i], '/') {
			parents[test[:i]] = parents[test[:i]] || broke(result)
		}
	}
	before := t.failed
	for _, test := range slices.Sorted(maps.Keys(p.results)) {
		result := p.results[test]
		subtestFailed, isParent := parents[test]
		switch {
		case broke(result):
			if !subtestFailed {
				t.failed++
			}
		case isParent:
		case result == "pass":
			t.passed++
		case result == "skip":
			t.skipped++
			t.note(fmt.Sprintf("skipped: %s %s: %s", name, test, p.reason(test)))
		}
	}
	if action == "fail" && t.failed == before {
		t.failed++
	}
}

func broke(result string) bool { return result == "" || result == "fail" }

// reason returns the last thing that a skipped test said.
func (p *running) reason(test string) string {
	said := "it does not say why"
	for _, l := range p.lines {
		text := strings.TrimSpace(l.text)
		if l.test == test && text != "" && !strings.HasPrefix(text, "--- ") && !strings.HasPrefix(text, "=== ") {
			said = text
		}
	}
	return said
}

// report prints one line for a package that passed, and for one that failed
// what its failed tests and the package itself printed.
func (t *tally) report(e event, p *running) {
	switch e.Action {
	case "pass":
		fmt.Fprintf(t.out, "ok    %7.2fs  %s\n", e.Elapsed, e.Package)
	case "fail":
		for _, l := range p.lines {
			if broke(p.results[l.test]) && !strings.HasPrefix(l.text, "=== ") {
				fmt.Fprint(t.out, l.text)
			}
		}
		fmt.Fprintf(t.out, "FAIL  %7.2fs  %s\n", e.Elapsed, e.Package)
	}
}

// finish counts what never ended, prints notes and the last line, and returns
// the exit code. That nothing ran is a failure too.
func (t *tally) finish() int {
	for _, name := range slices.Sorted(maps.Keys(t.open)) {
		t.count(name, t.open[name], "fail")
		t.report(event{Action: "fail", Package: name}, t.open[name])
	}
	if t.passed+t.failed+t.skipped == 0 {
		t.note("no test ran")
		t.failed++
	}
	for _, note := range t.notes {
		fmt.Fprintln(t.out, note)
	}
	fmt.Fprintf(t.out, "%d passed, %d failed", t.passed, t.failed)
	if t.skipped > 0 {
		fmt.Fprintf(t.out, ", %d skipped", t.skipped)
	}
	fmt.Fprintln(t.out)
	return min(t.failed, 1)
}
