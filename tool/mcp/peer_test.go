package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/tool"
)

// modeVariable makes the test binary a server of the given kind.
const modeVariable = "PARLEY_TEST_PEER"

func TestMain(m *testing.M) {
	switch mode := os.Getenv(modeVariable); mode {
	case "":
		os.Exit(m.Run())
	case "mute":
		select {} // it says nothing, reads nothing, and does not end with its input
	case "broken":
		os.Exit(3)
	case "linger":
		conn, err := net.Dial("unix", os.Getenv("PARLEY_TEST_SOCKET"))
		if err == nil {
			_, _ = conn.Read(make([]byte, 1)) // until it is killed
		}
	default:
		fmt.Fprintf(os.Stderr, "a word to the log %s\n", strings.Repeat("x", 2*maxLine))
		_ = newPeer(mode).Run(context.Background(), &sdk.IOTransport{Reader: ears{}, Writer: os.Stdout})
	}
}

// ears is standard input until plugged.
type ears struct{}

var plugged atomic.Bool

func (ears) Read(p []byte) (int, error) {
	if plugged.Load() {
		select {} // nothing is read any more, and its end is not seen
	}
	return os.Stdin.Read(p)
}

func (ears) Close() error { return nil }

// newPeer is the server of the tests: the tools of the suite, and some that
// misbehave.
func newPeer(mode string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "peer", Version: "1"}, nil)
	add := func(name, schema string, run func(ctx context.Context, args map[string]any) (*sdk.CallToolResult, error)) {
		s.AddTool(&sdk.Tool{Name: name, Description: "Does " + name + ".", InputSchema: json.RawMessage(schema)},
			func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				var args map[string]any
				if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
					return nil, err
				}
				return run(ctx, args)
			})
	}
	const none = `{"type":"object"}`
	add("echo", `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`,
		func(_ context.Context, args map[string]any) (*sdk.CallToolResult, error) {
			return says(args["text"].(string)), nil
		})
	add("wait", none, func(ctx context.Context, _ map[string]any) (*sdk.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	add("die", none, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		os.Exit(3)
		return nil, nil
	})
	add("fail", none, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no such page"}}}, nil
	})
	add("refuse", none, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return nil, fmt.Errorf("not with these words")
	})
	add("environ", none, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return says(strings.Join(os.Environ(), "\n")), nil
	})
	add("huge", none, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return says(strings.Repeat("x", maxFrame+1)), nil
	})
	add("grow", none, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		add("grown", none, func(context.Context, map[string]any) (*sdk.CallToolResult, error) { return says("I am new"), nil })
		s.RemoveTools("huge")
		return says("done"), nil
	})
	add("plug", none, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		plugged.Store(true)
		return says("I listen no more"), nil
	})
	add("spawn", none, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), modeVariable+"=linger")
		return says("started"), cmd.Start()
	})
	if mode == "many" {
		for i := range 1000 {
			add(fmt.Sprintf("tool%03d", i), none, func(context.Context, map[string]any) (*sdk.CallToolResult, error) { return says("x"), nil })
		}
	}
	return s
}

func says(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// watched is a server whose changes a test can wait for.
type watched struct {
	*Server
	t       *testing.T
	changes chan []tool.Offer
}

// watch makes a server that is closed with the test.
func watch(t *testing.T, config Config) *watched {
	t.Helper()
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{Server: s, t: t, changes: make(chan []tool.Offer, 1024)}
	s.seen = func(offers []tool.Offer) { w.changes <- offers }
	t.Cleanup(s.Close)
	return w
}

// child is a configuration of the test binary as a server.
func child(t *testing.T, mode string) Config {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Config{Name: "peer", Command: program, Env: map[string]identity.Secret{modeVariable: identity.NewSecret(mode)}}
}

// until waits until the tools are as the test wants them.
func (w *watched) until(what string, so func([]tool.Offer) bool) {
	w.t.Helper()
	patience := time.NewTimer(20 * time.Second)
	defer patience.Stop()
	for {
		select {
		case offers := <-w.changes:
			if so(offers) {
				return
			}
		case <-patience.C:
			w.t.Fatalf("waited 20 s in vain until %s", what)
		}
	}
}

func offers(name string) func([]tool.Offer) bool {
	return func(all []tool.Offer) bool {
		for _, offer := range all {
			if offer.Name == name {
				return true
			}
		}
		return false
	}
}

func nothing(all []tool.Offer) bool { return len(all) == 0 }

// call calls a tool without arguments.
func (w *watched) call(name string) (tool.Result, error) {
	return w.Call(w.t.Context(), name, []byte(`{}`))
}
