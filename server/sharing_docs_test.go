package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// newPager is an MCP server of an incident room.
func newPager(t *testing.T, alert string) *httptest.Server {
	t.Helper()
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server {
		s := sdk.NewServer(&sdk.Implementation{Name: "pager", Version: "1"}, nil)
		s.AddTool(&sdk.Tool{Name: "alerts", Description: "Lists alerts.", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: alert}}}, nil
			})
		return s
	}, nil)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// withPager starts a server that is configured so, and waits until the pager's tools
// are there.
func (w *world) withPager(text string) *running {
	w.t.Helper()
	w.config.Settings = configured(w.t, text)
	s := w.start()
	for _, peer := range s.mcp {
		if err := peer.Await(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
	return s
}

// token makes a token of somebody of acme's.
func (r *running) token(actor string) string {
	r.t.Helper()
	_, secret, err := r.Directory().CreateToken(r.t.Context(), person("acme", actor, ""))
	if err != nil {
		r.t.Fatal(err)
	}
	return secret.Reveal()
}

// The incident room of docs/sharing.md is as it stands there: its configuration is
// taken, and its commands do what stands behind them.
func TestIncidentRoomOfDocument(t *testing.T) {
	texts := map[string]string{}
	for _, b := range blocks(t, "../docs/sharing.md") {
		texts[b.language] = b.text
	}
	script := filepath.Join(t.TempDir(), "room.script")
	if err := os.WriteFile(script, []byte(texts["script"]), 0o600); err != nil {
		t.Fatal(err)
	}
	pager := newPager(t, "payments: logins from 203.0.113.9 refused")
	w := newWorld(t)
	s := w.withPager(strings.NewReplacer("script:room.script", "script:"+script, "http://127.0.0.1:9000/mcp", pager.URL).Replace(texts["toml"]))
	defer s.end()
	repeatCommands(t, "../docs/sharing.md", "URL="+s.URL(), "ANN="+s.token("ann"), "BOB="+s.token("bob"))
}

// The rules of docs/operations.md are taken as they stand there.
func TestRulesOfDocument(t *testing.T) {
	for _, b := range blocks(t, "../docs/operations.md") {
		if b.language == "toml" && strings.Contains(b.text, "[sharing.tools]") {
			const beside = "mcp.files.command = \"files\"\noidc = {issuer = \"https://login.example.org\", audience = \"parley\"}\n"
			if rules := configured(t, beside+b.text).Sharing.People; len(rules) != 1 || len(rules[0].Claim) != 1 {
				t.Errorf("the rules are %+v", rules)
			}
			return
		}
	}
	t.Error("there are no rules in the document")
}
