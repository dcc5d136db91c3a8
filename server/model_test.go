package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-run/parley/server"
)

func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestNewModel(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.txt")
	bad := filepath.Join(t.TempDir(), "bad.txt")
	for path, text := range map[string]string{good: "otherwise\n  say \"hello\"\n", bad: "otherwise\n  say sekrit\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key := map[string]string{"OPENAI_API_KEY": "sekrit", "ANTHROPIC_API_KEY": "sekrit"}
	local := map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}
	tests := []struct {
		name string
		env  map[string]string
		want string // in the error; "" for none
	}{
		{"", nil, ""},
		{"eliza", nil, ""},
		{"script:" + good, nil, ""},
		{"openai/gpt", key, ""},
		{"openai/org/llama", local, ""},
		{"anthropic/claude", key, ""},
		{"anthropic/claude", local, ""},
		{"gpt", key, `unknown model "gpt": --model is eliza,`},
		{"openai/", key, "unknown model"},
		{"openai", key, "unknown model"},
		{"Eliza", nil, "unknown model"},
		{"openai/gpt", nil, "set OPENAI_API_KEY, or OPENAI_BASE_URL"},
		{"anthropic/claude", nil, "set ANTHROPIC_API_KEY"},
		{"script:" + bad, nil, bad + ":2:7"},
		{"script:" + good + ".none", nil, "no such file"},
		{"script:", nil, "no such file"},
	}
	for _, tt := range tests {
		m, err := server.NewModel(tt.name, environment(tt.env))
		if tt.want == "" {
			if err != nil || m == nil {
				t.Errorf("NewModel(%q) = %v, %v, want a model", tt.name, m, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("NewModel(%q) = %v, want one line with %q", tt.name, err, tt.want)
		}
		if err != nil && len(tt.env) > 0 && strings.Contains(err.Error(), "sekrit") {
			t.Errorf("NewModel(%q) = %v, which tells the key", tt.name, err)
		}
	}
}

// A key in the environment gives a hint where no model was named, and changes
// nothing else.
func TestHint(t *testing.T) {
	env := environment(map[string]string{"ANTHROPIC_API_KEY": "sekrit"})
	if got := server.Hint("", env); !strings.Contains(got, "--model anthropic/NAME") || strings.Contains(got, "sekrit") {
		t.Errorf("Hint = %q, want the flag and not the key", got)
	}
	for name, got := range map[string]string{
		"model named": server.Hint("eliza", env),
		"no key":      server.Hint("", environment(nil)),
	} {
		if got != "" {
			t.Errorf("%s: Hint = %q, want none", name, got)
		}
	}
}
