package server_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/server"
)

func settingsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "parley.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadSettings(t *testing.T) {
	got, err := server.ReadSettings(settingsFile(t, `
listen = "127.0.0.1:0"
model = "script:demo.txt"
system = "Be brief."
barge_in = false
rotate_every_turns = 7
max_turn_chars = 1000
max_window_turns = 8
context_window = 9000
reserve_output_tokens = 500
summarize = false
`))
	if err != nil {
		t.Fatal(err)
	}
	want := server.Settings{
		Listen: "127.0.0.1:0", Model: "script:demo.txt", System: "Be brief.", BargeIn: new(false),
		RotateEveryTurns: 7, MaxTurnChars: 1000, MaxWindowTurns: 8,
		ContextWindow: 9000, ReserveOutputTokens: 500, Summarize: new(bool),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ReadSettings (-want +got):\n%s", diff)
	}
}

// An error says what and where, in the words of the file, in one line, and
// repeats no value.
func TestReadSettingsErrors(t *testing.T) {
	tests := map[string]struct{ file, want string }{
		"unknown key":         {"model = \"eliza\"\nmodle = \"sekrit\"\n", `:2:1: unknown key "modle"; the keys are listen, model`},
		"unknown table":       {"[http]\nlisten = \"sekrit\"\n", `:1:2: unknown key "http"`},
		"number for a text":   {"model = 31337\n", `:1:9: key "model" has a value of the wrong type`},
		"text for a number":   {"\n\nrotate_every_turns = \"sekrit\"\n", `:3:22: key "rotate_every_turns" has a value of the wrong type`},
		"text for a switch":   {"barge_in = \"sekrit\"\n", `:1:12: key "barge_in" has a value of the wrong type`},
		"number for a switch": {"barge_in = 1\n", `:1:12: key "barge_in" has a value of the wrong type`},
		"text for the other":  {"summarize = \"sekrit\"\n", `:1:13: key "summarize" has a value of the wrong type`},
		"list for a number":   {"max_turn_chars = [\"sekrit\"]\n", `:1:18: key "max_turn_chars" has a value of the wrong type`},
		"open string":         {"model = \"sekrit", `:1:15: unterminated`},
		"defined twice":       {"model = \"sekrit\"\nmodel = \"eliza\"\n", `:2:1: `},
		"not UTF-8":           {"model = \"sekrit\xff\"\n", `:1:16: `},
		"no TOML":             {"sekrit\n", `:1:`},
		"larger than allowed": {strings.Repeat("# sekrit\n", 1<<17), `larger than`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := settingsFile(t, tt.file)
			_, err := server.ReadSettings(path)
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("ReadSettings = %v, want the path and %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "sekrit") || strings.Contains(err.Error(), "31337") || strings.Contains(err.Error(), "\n") {
				t.Errorf("ReadSettings = %v, which repeats a value or has more than one line", err)
			}
		})
	}
	if _, err := server.ReadSettings(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("ReadSettings of no file = %v, want ErrNotExist", err)
	}
}
