package agent

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/anthropic"
	"github.com/parley-run/parley/model/openai"
)

// T72, T60: a reply that thinks, signs its thoughts, speaks, calls a tool and
// speaks again. Thoughts are dropped whole, with their signatures and what was
// redacted; the words are all there, before the call, and the request with the
// tool's result is one that the vendor takes.
func TestSignedReasoning(t *testing.T) {
	for _, vendor := range []struct {
		name string
		open func(base string, client *http.Client) (model.Model, error)
		want string // the messages of the second request
	}{
		{
			"anthropic", func(base string, client *http.Client) (model.Model, error) {
				return anthropic.New("some-model", anthropic.Config{BaseURL: base, HTTPClient: client, APIKey: identity.NewSecret("key")})
			},
			`[{"content":[{"text":"What time is it?","type":"text"}],"role":"user"},
			{"content":[{"text":"Let me look.\n\nOne moment.","type":"text"},
				{"id":"toolu_01ABC","input":{"at":"the clock"},"name":"look","type":"tool_use"}],"role":"assistant"},
			{"content":[{"content":[{"text":"FENCED","type":"text"}],"tool_use_id":"toolu_01ABC","type":"tool_result"}],"role":"user"}]`,
		},
		{
			"openai", func(base string, client *http.Client) (model.Model, error) {
				return openai.New("some-model", openai.Config{BaseURL: base, HTTPClient: client})
			},
			`[{"content":"What time is it?","role":"user"},
			{"content":"Let me look.\n\nOne moment.","role":"assistant","tool_calls":[
				{"function":{"arguments":"{\"at\":\"the clock\"}","name":"look"},"id":"call-1","type":"function"}]},
			{"content":"FENCED","role":"tool","tool_call_id":"call-1"}]`,
		},
	} {
		t.Run(vendor.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var bodies []string
				server := httptest.NewTestServer(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					body, err := io.ReadAll(req.Body)
					if err != nil {
						t.Error(err)
					}
					bodies = append(bodies, string(body))
					file := vendor.name + []string{"-thinking.sse", "-answer.sse"}[min(len(bodies), 2)-1]
					stream, err := os.ReadFile(filepath.Join("testdata", file))
					if err != nil {
						t.Error(err)
					}
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = w.Write(stream)
				}))
				m, err := vendor.open("http://example.com/base", server.Client())
				if err != nil {
					t.Fatal(err)
				}
				l := newLab(t, m)
				l.def.Tools = []Tool{toolFunc("look", kernel.Once, func(context.Context, jsontext.Value) (Result, error) {
					return Result{Text: "noon"}, nil
				})}
				got := l.ask("What time is it?")
				if want := "Let me look.\n\nOne moment.\n\nIt is noon."; got.Code != "" || got.Reply.Text != want {
					t.Fatalf("came to %q with code %q, want %q", got.Reply.Text, got.Code, want)
				}
				for _, trace := range []string{"thinking", "reasoning", "They ask", "signature", "SIGNED", "REDACTED"} {
					if strings.Contains(bodies[1], trace) {
						t.Errorf("the second request holds %q of a thought: %s", trace, bodies[1])
					}
				}
				fenced, _ := json.Marshal(lastResult(l))
				want := strings.Replace(vendor.want, `"FENCED"`, string(fenced), 1)
				if diff := cmp.Diff(canonical(t, want), canonical(t, messagesIn(t, bodies[1]))); diff != "" {
					t.Errorf("messages of the second request (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// messagesIn returns the messages of a request's body, but for the system
// prompt.
func messagesIn(t *testing.T, body string) string {
	t.Helper()
	var request struct {
		Messages []map[string]any `json:"messages"`
	}
	if err := json.Unmarshal([]byte(body), &request); err != nil {
		t.Fatal(err)
	}
	if request.Messages[0]["role"] == "system" {
		request.Messages = request.Messages[1:]
	}
	for _, m := range request.Messages {
		delete(m, "cache_control")
	}
	data, err := json.Marshal(request.Messages)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func canonical(t *testing.T, text string) string {
	t.Helper()
	data := jsontext.Value(text)
	if err := data.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	return string(data)
}
