package mcp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-run/parley/identity"
)

// A server that repeats in an error what it was sent makes no secret appear in a
// log: neither a header nor what stands in the URL, however it is written there.
func TestSecretsAreNotEchoed(t *testing.T) {
	for _, path := range []string{"/mcp?key=sekrit-query", "/a b?key=sekrit-query"} {
		asked := make(chan struct{}, 64)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var request struct{ ID json.RawMessage }
			body, _ := io.ReadAll(r.Body)
			_ = json.Unmarshal(body, &request)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no: %s, token %s, %s"}}`,
				request.ID, r.Header.Get("Authorization"), strings.Fields(r.Header.Get("Authorization"))[1], r.URL.RawQuery)
			asked <- struct{}{}
		}))
		var log locked
		w := watch(t, Config{
			Name: "peer", URL: server.URL + path, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Header: map[string]identity.Secret{"Authorization": identity.NewSecret("Bearer sekrit-token")},
		})
		w.Start()
		<-asked
		for deadline := time.After(10 * time.Second); !strings.Contains(log.String(), "away"); {
			select {
			case <-asked:
			case <-deadline:
				t.Fatalf("the log does not say that the server is away:\n%s", log.String())
			}
		}
		w.Close()
		server.Close()
		if text := log.String(); strings.Contains(text, "sekrit") {
			t.Errorf("%s: a secret is in the log:\n%s", path, text)
		}
	}
}

// What is remembered of tools that are refused is bounded in size, not only in
// number: their names are a stranger's.
func TestRefusedNamesAreNotKept(t *testing.T) {
	s, err := New(Config{Name: "a", Command: "x", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		s.take(&session{}, []*sdk.Tool{{Name: fmt.Sprint(i) + strings.Repeat("n", 1<<20)}})
	}
	kept := 0
	for key := range s.warned {
		kept += len(key)
	}
	if kept > 64<<10 {
		t.Errorf("%d bytes are kept of the names of tools that were refused", kept)
	}
}

// introduce speaks for a server of before until its tools are listed.
func introduce(c pipe) { converse(c, map[string]string{"tools/list": `{"tools":[]}`}, "tools/list") }

// speak speaks for a server of before that gives the answers, by method.
func speak(c pipe, answers map[string]string) { converse(c, answers, "") }

func converse(c pipe, answers map[string]string, last string) {
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		var request struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(lines.Bytes(), &request) != nil {
			return
		}
		answer, ok := answers[request.Method]
		switch {
		case request.Method == "initialize" && !ok:
			answer = `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}`
			fallthrough
		case ok:
			fmt.Fprintf(c, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", request.ID, answer)
		case request.ID != nil:
			fmt.Fprintf(c, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", request.ID)
		}
		if request.Method == last {
			return
		}
	}
}
