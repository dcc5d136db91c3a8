package openai_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/internal/remote/remotetest"
	"github.com/parley-run/parley/model/openai"
)

// TestService runs every fault of a stream against the compatible route.
func TestService(t *testing.T) { remotetest.Run(t, dialect()) }

// TestRequest holds a request with everything in it against a recorded one.
func TestRequest(t *testing.T) { remotetest.Golden(t, dialect(), "testdata/request.txt") }

// TestOwnService: without a base URL a request goes to the vendor.
func TestOwnService(t *testing.T) {
	const want = "https://api.openai.com/v1/chat/completions"
	if got := remotetest.Address(t, dialect(), func(cfg remotetest.Config) (model.Model, error) {
		return openai.New("gpt-x", openai.Config{APIKey: cfg.APIKey, HTTPClient: cfg.HTTPClient})
	}); got != want {
		t.Errorf("request to %s, want %s", got, want)
	}
}

// dialect is chat completions.
func dialect() remotetest.Dialect {
	var calls atomic.Int64
	return remotetest.Dialect{
		Open: func(cfg remotetest.Config) (model.Model, error) {
			return openai.New("some-model", openai.Config{
				BaseURL: cfg.BaseURL, APIKey: cfg.APIKey, HTTPClient: cfg.HTTPClient, Limits: cfg.Limits,
			})
		},
		Path: "/chat/completions",
		Env: map[string]string{
			"OPENAI_API_KEY": "env-key", "OPENAI_BASE_URL": "http://env.example.com", "OPENAI_ORG_ID": "env-org",
			"OPENAI_PROJECT_ID": "env-project", "OPENAI_ADMIN_KEY": "env-admin", "OPENAI_CUSTOM_HEADERS": "X-Env: env-header",
		},
		Begin: event(`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`),
		Text: func(raw string) string {
			return event(`{"id":"c","choices":[{"index":0,"delta":{"content":` + raw + `}}]}`)
		},
		Think: event(`{"id":"c","choices":[{"index":0,"delta":{"reasoning_content":"Hm."}}]}`),
		Call: func(id, name string, raw ...string) string {
			index := calls.Add(1)
			var b strings.Builder
			b.WriteString(event(fmt.Sprintf(`{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[`+
				`{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}}]}`, index, id, name)))
			for _, piece := range raw {
				b.WriteString(event(fmt.Sprintf(`{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[`+
					`{"index":%d,"function":{"arguments":%s}}]}}]}`, index, piece)))
			}
			return b.String()
		},
		End: func(reason model.FinishReason) string {
			raw := map[model.FinishReason]string{
				model.FinishCalls: "tool_calls", model.FinishFiltered: "content_filter",
			}[reason]
			if raw == "" {
				raw = string(reason)
			}
			return event(`{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"`+raw+`"}]}`) +
				event(`{"id":"c","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}}`) +
				event("[DONE]")
		},
		Error:       func(kind, message string) string { return event(errorBody(kind, message)) },
		ErrorBody:   errorBody,
		Transient:   "server_error",
		RateLimited: "rate_limit_exceeded",
		Invalid:     "invalid_request_error",
		Overflow: "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. " +
			"Please reduce the length of the messages.",
	}
}

func event(data string) string { return "data: " + data + "\n\n" }

func errorBody(kind, message string) string {
	return `{"error":{"message":` + remotetest.Quote(message) + `,"type":` + remotetest.Quote(kind) + `,"param":null,"code":null}}`
}

func TestConfigurationIsChecked(t *testing.T) {
	key := identity.NewSecret("sk-secret")
	for _, tt := range []struct {
		name string
		cfg  openai.Config
		want string // "" for a good one
	}{
		{"gpt-x", openai.Config{APIKey: key}, ""},
		{"llama", openai.Config{BaseURL: "http://127.0.0.1:11434/v1"}, ""},
		{"gpt-x", openai.Config{}, "wants an API key"},
		{" ", openai.Config{APIKey: key}, "no name"},
		{"llama", openai.Config{BaseURL: "127.0.0.1:11434"}, "not an http or https address"},
		{"llama", openai.Config{BaseURL: "ftp://example.com"}, "not an http or https address"},
		{"llama", openai.Config{BaseURL: "http://me:sk-secret@example.com"}, "a place of its own"},
		{"llama", openai.Config{BaseURL: "http://example.com/?key=sk-secret"}, "a place of its own"},
		{"gpt-x", openai.Config{APIKey: identity.NewSecret("sk-secret\n")}, "no key has"},
	} {
		_, err := openai.New(tt.name, tt.cfg)
		if (tt.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("New(%q, %v) = %v, want %q", tt.name, tt.cfg, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("New(%q) tells the key: %v", tt.name, err)
		}
	}
}
