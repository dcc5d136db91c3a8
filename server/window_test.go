package server

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/model/anthropic"
)

// Where the configuration has no window, it is that of the model: by its name,
// with or without the date of a release, and by the service that is asked. A
// vendor's model that nobody knows has none, and the log says what to do; the
// models that ship with us have none, and nothing is said (C-1.8, C-20).
func TestWindowOfTheModel(t *testing.T) {
	router := map[string]string{"OPENAI_BASE_URL": "https://openrouter.ai/api/v1/"}
	local := map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:11434/v1"}
	no := false
	for _, test := range []struct {
		name     string
		settings Settings
		env      map[string]string
		want     conversation.Budget
		hint     bool
	}{
		{"eliza", Settings{}, nil, conversation.Budget{}, false},
		{"a script", Settings{Model: "script:openai/gpt-4o"}, nil, conversation.Budget{}, false},
		{"by name", Settings{Model: "openai/gpt-4o"}, nil, conversation.Budget{ContextWindow: 128_000, ReserveOutputTokens: 8192, Summarizer: "summarize"}, false},
		{"with a date", Settings{Model: "openai/gpt-4o-2024-08-06"}, nil, conversation.Budget{ContextWindow: 128_000, ReserveOutputTokens: 8192, Summarizer: "summarize"}, false},
		{"without a date", Settings{Model: "anthropic/claude-sonnet-4-5"}, nil, conversation.Budget{ContextWindow: 200_000, ReserveOutputTokens: anthropic.DefaultMaxOutputTokens, Summarizer: "summarize"}, false},
		{"a reply that would take all", Settings{Model: "openai/gpt-5", ContextWindow: 100_000}, nil, conversation.Budget{ContextWindow: 100_000, ReserveOutputTokens: 50_000, Summarizer: "summarize"}, false},
		{"of another vendor", Settings{Model: "anthropic/gpt-4o"}, nil, conversation.Budget{}, true},
		{"of nobody", Settings{Model: "openai/my-llama"}, local, conversation.Budget{}, true},
		{"of nobody, configured", Settings{Model: "openai/my-llama", ContextWindow: 8000}, local, conversation.Budget{ContextWindow: 8000, ReserveOutputTokens: 2000, Summarizer: "summarize"}, false},
		{"a known name elsewhere", Settings{Model: "openai/gpt-4o"}, local, conversation.Budget{ContextWindow: 128_000, ReserveOutputTokens: 8192, Summarizer: "summarize"}, false},
		{"no summaries", Settings{Model: "openai/gpt-4o", Summarize: &no}, nil, conversation.Budget{ContextWindow: 128_000, ReserveOutputTokens: 8192}, false},
		{"all configured", Settings{Model: "openai/gpt-4o", ContextWindow: 9000, ReserveOutputTokens: 100}, nil, conversation.Budget{ContextWindow: 9000, ReserveOutputTokens: 100, Summarizer: "summarize"}, false},
		{"eliza, configured", Settings{ContextWindow: 9000}, nil, conversation.Budget{ContextWindow: 9000, ReserveOutputTokens: 2250, Summarizer: "summarize"}, false},
	} {
		var log bytes.Buffer
		getenv := func(name string) string { return test.env[name] }
		got := test.settings.withWindow(getenv, slog.New(slog.NewTextHandler(&log, nil))).budget()
		if got != test.want {
			t.Errorf("%s: the budget is %+v, want %+v", test.name, got, test.want)
		}
		if hint := strings.Count(log.String(), "\n"); (hint == 1) != test.hint || test.hint && !strings.Contains(log.String(), "set context_window") {
			t.Errorf("%s: the log says %q, a hint wanted: %v", test.name, log.String(), test.hint)
		}
	}
	routed := Settings{Model: "openai/anthropic/claude-sonnet-4.5"}.withWindow(func(name string) string { return router[name] }, slog.New(slog.DiscardHandler))
	if routed.ContextWindow < 200_000 {
		t.Errorf("a model of the service at the base URL has the window %d", routed.ContextWindow)
	}
}

// Bad figures are refused in the words of the file.
func TestBudgetSettingsErrors(t *testing.T) {
	for _, test := range []struct {
		settings Settings
		want     string
	}{
		{Settings{ContextWindow: 100, ReserveOutputTokens: 200}, "setting context_window is 100, which leaves nothing beside reserve_output_tokens 200"},
		{Settings{ReserveOutputTokens: 200}, "reserve_output_tokens is set, and context_window is not"},
		{Settings{ContextWindow: -5}, "setting context_window is -5"},
		{Settings{ContextWindow: 100, ReserveOutputTokens: 10}, "system prompt and tools have"},
	} {
		log := slog.New(slog.DiscardHandler)
		err := test.settings.withWindow(func(string) string { return "" }, log).check(noModel{}, nil, log)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "ContextWindow") {
			t.Errorf("check of %+v = %v, want %q", test.settings, err, test.want)
		}
	}
}

// A server keeps a dialogue within its window and sums up what leaves it; a
// generation that began so goes on with another model and without summaries.
func TestServerSumsUp(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "script.txt")
	text := "when system \"memory of a long conversation\"\n say \"they counted\"\nwhen replies 2\n say \"summary and a turn\"\notherwise\n reply\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.config.Settings.Model, w.config.Settings.MaxWindowTurns, w.config.Settings.ContextWindow = "script:"+path, 1, 4000
	first := w.start()
	id, err := first.me().Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"one", "two", "summary and a turn", "summary and a turn"} {
		if got := say(t, first.me(), id, []string{"one", "two", "three", "four"}[i]); got.Text != want {
			t.Errorf("answer %d is %q, want %q", i+1, got.Text, want)
		}
	}
	first.end()

	no := false
	w.config.Settings.Model, w.config.Settings.ContextWindow, w.config.Settings.Summarize = "", 0, &no
	second := w.start()
	defer second.end()
	if got := say(t, second.me(), id, "five"); got.Status != conversation.StatusComplete {
		t.Errorf("the answer of another model is %+v", got)
	}
}
