package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A test that notices, one that does not, one that is not there, a text that is not
// there, and one that does not compile.
func TestTry(t *testing.T) {
	t.Chdir(t.TempDir())
	for file, text := range map[string]string{
		"go.mod":      "module example.com/m\n\ngo 1.27\n",
		"a/a.go":      "package a\n\nfunc Safe(n int) bool {\n\treturn n > 0\n}\n",
		"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestSafe(t *testing.T) {\n\tif Safe(0) {\n\t\tt.Error(\"0 is safe\")\n\t}\n}\n\nfunc TestBlind(t *testing.T) { Safe(0) }\n",
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ from, to, test, out, err string }{
		{"n > 0", "n >= 0", "TestSafe", "1 guards, each of them noticed", ""},
		{"n > 0", "n >= 0", "TestBlind", "SURVIVED  zero is not safe: TestBlind passes", "1 of 1 guards can be taken out unnoticed"},
		{"n > 0", "n >= 0", "TestNone", "", "there is no TestNone in ./a"},
		{"n > 1", "n >= 0", "TestSafe", "", "stands 0 times in a/a.go, not once"},
		{"n > 0", "m > 0", "TestSafe", "", "it does not compile"},
	} {
		var out bytes.Buffer
		err := run(t.Context(), &out, []mutant{{guard: "zero is not safe", file: "a/a.go", from: tt.from, to: tt.to, test: tt.test}}, nil)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if !strings.Contains(out.String(), tt.out) || !strings.Contains(said, tt.err) || (err == nil) != (tt.err == "") {
			t.Errorf("%+v: %q, %v", tt, out.String(), err)
		}
	}
	if err := run(t.Context(), new(bytes.Buffer), mutants, []string{"no such guard"}); err == nil {
		t.Error("words that fit no guard are no error")
	}
}

// Each guard stands where the table says.
func TestGuardsStand(t *testing.T) {
	t.Chdir("../..")
	for _, m := range slices.Concat(mutants, leases) {
		if _, err := m.overlay(t.TempDir()); err != nil {
			t.Errorf("%s: %v", m.guard, err)
		}
	}
}
