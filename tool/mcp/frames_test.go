package mcp

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever a server writes costs it its tools and nothing else: frames that are
// none, answers to nothing, questions that are told and news that are asked, all
// kinds in all places.
func TestHostileFrames(t *testing.T) {
	frames := map[string]string{
		"a call that is told":       `{"jsonrpc":"2.0","method":"ping"}`,
		"sampling that is told":     `{"jsonrpc":"2.0","method":"sampling/createMessage","params":{}}`,
		"news that are asked":       `{"jsonrpc":"2.0","id":1,"method":"notifications/tools/list_changed"}`,
		"news of progress asked":    `{"jsonrpc":"2.0","id":"x","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`,
		"an answer to nothing":      `{"jsonrpc":"2.0","id":77,"result":{}}`,
		"an answer twice":           `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":1,"result":{}}`,
		"an answer and an error":    `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`,
		"neither":                   `{"jsonrpc":"2.0","id":1}`,
		"a null":                    `null`,
		"a list":                    `[]`,
		"a list of frames":          `[{"jsonrpc":"2.0","method":"ping","id":1},{"jsonrpc":"2.0","method":"ping","id":2}]`,
		"an id of two kinds":        `{"jsonrpc":"2.0","id":{},"method":"ping"}`,
		"a null id":                 `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		"one id twice":              `{"jsonrpc":"2.0","id":5,"method":"roots/list"}` + "\n" + `{"jsonrpc":"2.0","id":5,"method":"roots/list"}`,
		"an unknown method":         `{"jsonrpc":"2.0","id":5,"method":"nothing/at/all","params":[1]}`,
		"params that are none":      `{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":"x"}`,
		"params that are null":      `{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":null}`,
		"sampling without anything": `{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":{}}`,
		"news without params":       `{"jsonrpc":"2.0","method":"notifications/resources/updated"}`,
		"a log of nothing":          `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":null,"data":null}}`,
		"a cancel of nothing":       `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}`,
		"a cancel of a call":        `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`,
		"no UTF-8":                  "{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}",
		"deep":                      strings.Repeat("[", 100_000),
		"a name twice":              `{"jsonrpc":"2.0","method":"a","method":"ping","id":3,"id":4}`,
		"blank lines":               "\n\n\r\n \n",
		"no JSON":                   `HTTP/1.1 200 OK`,
	}
	for name, frame := range frames {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := New(Config{Name: "peer", URL: "http://127.0.0.1:1/", Log: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				s.dial, _ = piped(func(c pipe) {
					go func() { // what it is told is read on
						introduce(c)
						fmt.Fprintln(c, frame)
						introduce(c)
					}()
					<-c.gone
				})
				s.Start()
				<-time.After(3 * time.Minute)
				_ = s.Offers()
				_, _ = s.Call(t.Context(), "x", []byte(`{}`))
				s.Close()
			})
		})
	}
}

// A list and an answer of any shape are told or refused, and end nothing else.
func TestHostileAnswers(t *testing.T) {
	tool := `{"name":"x","inputSchema":{"type":"object"}}`
	for name, answers := range map[string][2]string{
		"no list":                  {`{}`, `{}`},
		"a list of nothing":        {`{"tools":null}`, ``},
		"nothing in a list":        {`{"tools":[null,` + tool + `]}`, `{"content":[null]}`},
		"a null list":              {`null`, ``},
		"no content":               {`{"tools":[` + tool + `]}`, `{}`},
		"a null answer":            {`{"tools":[` + tool + `]}`, `null`},
		"content that is none":     {`{"tools":[` + tool + `]}`, `{"content":"x"}`},
		"content of no kind":       {`{"tools":[` + tool + `]}`, `{"content":[{}]}`},
		"nothing within":           {`{"tools":[` + tool + `]}`, `{"content":[{"type":"resource"},{"type":"resource_link"},{"type":"image"},{"type":"tool_result","content":[null]}]}`},
		"a result in a result":     {`{"tools":[` + tool + `]}`, `{"content":[{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"x"}]}]}`},
		"it asks for more":         {`{"tools":[` + tool + `]}`, `{"resultType":"input_required","inputRequests":{"a":null}}`},
		"structure alone":          {`{"tools":[` + tool + `]}`, `{"structuredContent":[null,{"a":1e999}]}`},
		"a schema that is a list":  {`{"tools":[{"name":"x","inputSchema":[]}]}`, ``},
		"a schema that is nothing": {`{"tools":[{"name":"x","inputSchema":null}]}`, ``},
		"a header for a parameter": {`{"tools":[{"name":"x","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Authorization"},"b":null}}}]}`, `{}`},
		"the same page for ever":   {`{"tools":[` + tool + `],"nextCursor":"again"}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := New(Config{Name: "peer", URL: "http://127.0.0.1:1/", Log: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				s.dial, _ = piped(func(c pipe) { speak(c, map[string]string{"tools/list": answers[0], "tools/call": answers[1]}) })
				s.Start()
				<-time.After(3 * time.Minute)
				_, _ = s.Call(t.Context(), "x", []byte(`{"a":"b"}`))
				s.Close()
			})
		})
	}
}

// Nor does an introduction of any shape.
func TestHostileIntroductions(t *testing.T) {
	for _, method := range []string{"initialize", "server/discover"} {
		for _, answer := range []string{
			`null`, `{}`, `[]`, `"x"`, `{"protocolVersion":null,"capabilities":null,"serverInfo":null}`,
			`{"protocolVersion":"1","capabilities":{},"serverInfo":{}}`, `{"protocolVersion":7}`,
			`{"protocolVersion":"2025-11-25"}`, `{"protocolVersion":"2026-07-28","capabilities":{"tools":null,"extensions":{"a":null}},"serverInfo":{"name":null,"icons":[null]}}`,
			`{"supportedVersions":null}`, `{"supportedVersions":[null]}`, `{"supportedVersions":["2026-07-28"],"capabilities":null}`,
		} {
			t.Run(method+" "+answer, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, err := New(Config{Name: "peer", URL: "http://127.0.0.1:1/", Log: slog.New(slog.DiscardHandler)})
					if err != nil {
						t.Fatal(err)
					}
					s.dial, _ = piped(func(c pipe) {
						speak(c, map[string]string{method: answer, "tools/list": `{"tools":[]}`})
					})
					s.Start()
					<-time.After(3 * time.Minute)
					s.Close()
				})
			})
		}
	}
}
