package anthropic_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/anthropic"
	"github.com/parley-run/parley/model/internal/remote/remotetest"
)

// TestService runs every fault of a stream against the messages route.
func TestService(t *testing.T) { remotetest.Run(t, dialect()) }

// TestRequest holds a request with everything in it against a recorded one.
func TestRequest(t *testing.T) { remotetest.Golden(t, dialect(), "testdata/request.txt") }

// TestOwnService: without a base URL a request goes to the vendor.
func TestOwnService(t *testing.T) {
	const want = "https://api.anthropic.com/v1/messages"
	if got := remotetest.Address(t, dialect(), func(cfg remotetest.Config) (model.Model, error) {
		return anthropic.New("claude-x", anthropic.Config{APIKey: cfg.APIKey, HTTPClient: cfg.HTTPClient})
	}); got != want {
		t.Errorf("request to %s, want %s", got, want)
	}
}

// dialect is Anthropic's messages.
func dialect() remotetest.Dialect {
	var blocks atomic.Int64
	block := func(start string, deltas ...string) string {
		index := blocks.Add(1)
		var b strings.Builder
		b.WriteString(event("content_block_start", fmt.Sprintf(`"index":%d,"content_block":%s`, index, start)))
		for _, delta := range deltas {
			b.WriteString(event("content_block_delta", fmt.Sprintf(`"index":%d,"delta":%s`, index, delta)))
		}
		b.WriteString(event("content_block_stop", fmt.Sprintf(`"index":%d`, index)))
		return b.String()
	}
	return remotetest.Dialect{
		Open: func(cfg remotetest.Config) (model.Model, error) {
			return anthropic.New("some-model", anthropic.Config{
				BaseURL: cfg.BaseURL, APIKey: cfg.APIKey, HTTPClient: cfg.HTTPClient, Limits: cfg.Limits,
			})
		},
		Path: "/v1/messages",
		Env: map[string]string{
			"ANTHROPIC_API_KEY": "env-key", "ANTHROPIC_AUTH_TOKEN": "env-token", "ANTHROPIC_BASE_URL": "http://env.example.com",
			"ANTHROPIC_CUSTOM_HEADERS": "X-Env: env-header", "ANTHROPIC_PROFILE": "env-profile",
		},
		Begin: event("message_start", `"message":{"id":"m","type":"message","role":"assistant","model":"some-model","content":[],`+
			`"stop_reason":null,"usage":{"input_tokens":3,"output_tokens":1}}`),
		Text: func(raw string) string {
			return block(`{"type":"text","text":""}`, `{"type":"text_delta","text":`+raw+`}`)
		},
		Think: block(`{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"Hm."}`),
		Call: func(id, name string, raw ...string) string {
			deltas := make([]string, len(raw))
			for i, piece := range raw {
				deltas[i] = `{"type":"input_json_delta","partial_json":` + piece + `}`
			}
			return block(fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, id, name), deltas...)
		},
		End: func(reason model.FinishReason) string {
			raw := map[model.FinishReason]string{
				model.FinishStop: "end_turn", model.FinishCalls: "tool_use",
				model.FinishLength: "max_tokens", model.FinishFiltered: "refusal",
			}[reason]
			if raw == "" {
				raw = string(reason)
			}
			return event("message_delta", `"delta":{"stop_reason":"`+raw+`","stop_sequence":null},"usage":{"output_tokens":5}`) +
				event("message_stop", "")
		},
		Error: func(kind, message string) string {
			return "event: error\ndata: " + errorBody(kind, message) + "\n\n"
		},
		ErrorBody:   errorBody,
		Transient:   "overloaded_error",
		RateLimited: "rate_limit_error",
		Invalid:     "invalid_request_error",
		Overflow:    "prompt is too long: 210000 tokens > 200000 maximum",
	}
}

// event is an event whose data says its type again, as this vendor's do.
func event(kind, members string) string {
	if members != "" {
		members = "," + members
	}
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + members + "}\n\n"
}

func errorBody(kind, message string) string {
	return `{"type":"error","error":{"type":` + remotetest.Quote(kind) + `,"message":` + remotetest.Quote(message) + `}}`
}

func TestConfigurationIsChecked(t *testing.T) {
	key := identity.NewSecret("sk-secret")
	for _, tt := range []struct {
		name string
		cfg  anthropic.Config
		want string // "" for a good one
	}{
		{"claude-x", anthropic.Config{APIKey: key}, ""},
		{"claude-x", anthropic.Config{BaseURL: "http://127.0.0.1:4000"}, ""},
		{"claude-x", anthropic.Config{}, "wants an API key"},
		{"", anthropic.Config{APIKey: key}, "no name"},
		{"claude-x", anthropic.Config{BaseURL: "localhost"}, "not an http or https address"},
		{"claude-x", anthropic.Config{APIKey: identity.NewSecret("sk-secret ")}, "no key has"},
	} {
		_, err := anthropic.New(tt.name, tt.cfg)
		if (tt.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("New(%q, %v) = %v, want %q", tt.name, tt.cfg, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("New(%q) tells the key: %v", tt.name, err)
		}
	}
}
