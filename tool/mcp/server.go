package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
	"github.com/parley-run/parley/tool"
)

// DefaultTimeout is how long a call may take.
const DefaultTimeout = 60 * time.Second

// Server is an MCP server as a set of tools. There are none while it is away.
type Server struct {
	config Config
	log    *slog.Logger
	dial   func() (*link, error) // starts the program, or gets ready for HTTP

	// Of the goroutine that follows the server alone.
	version string          // of the protocol in which it is asked next
	warned  map[string]bool // of which tools it was said that they are refused

	// seen, of tests, is told of each change of the offers.
	seen func([]tool.Offer)

	mu      sync.Mutex
	current *session // nil while away
	cancel  context.CancelFunc
	done    chan struct{} // closed when the following has ended; nil before Start
	met     chan struct{} // closed when it has told its tools for the first time
}

var _ tool.Set = (*Server)(nil)

// New makes a server of a configuration. Nothing is started and nobody is asked.
func New(config Config) (*Server, error) {
	if err := config.check(); err != nil {
		return nil, fmt.Errorf("MCP server: %w", err)
	}
	log := cmp.Or(config.Log, slog.Default()).With("mcp", config.Name)
	s := &Server{config: config, log: log, warned: map[string]bool{}, met: make(chan struct{})}
	s.dial = func() (*link, error) { return start(config, log) }
	if config.URL != "" {
		s.dial = func() (*link, error) { return open(config), nil }
	}
	return s, nil
}

// Start begins to look for the server, and goes on until Close: its tools are
// there as soon as it has told them, gone when it is lost, and back when it is
// found again. Start waits for nothing. A server that was closed stays closed.
func (s *Server) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.done = cancel, make(chan struct{})
	go func() {
		defer close(s.done)
		s.follow(ctx)
	}()
}

// Close cuts what is being called, ends the program that was started with all
// that it has started, and waits until that is done: two seconds at most.
func (s *Server) Close() {
	s.mu.Lock()
	if s.done == nil {
		s.cancel, s.done = func() {}, make(chan struct{})
		close(s.done)
	}
	cancel, done := s.cancel, s.done
	s.mu.Unlock()
	cancel()
	<-done
}

// Await waits until a server that was started has told its tools for the first
// time, or until ctx ends. It is for those who cannot ask again later.
func (s *Server) Await(ctx context.Context) error {
	select {
	case <-s.met:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isClosed reports whether a channel that carries nothing is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Name is the name of the configuration.
func (s *Server) Name() string { return s.config.Name }

// Mode is the mode of the configuration.
func (s *Server) Mode() kernel.Mode { return s.config.Mode }

// Offers lists the tools that the server has told, in the order of their names.
func (s *Server) Offers() []tool.Offer {
	if current := s.session(); current != nil {
		return current.offers
	}
	return nil
}

func (s *Server) session() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// publish puts a session in the place of the one before, nil for none.
func (s *Server) publish(next *session) {
	s.mu.Lock()
	if s.current = next; next != nil && !isClosed(s.met) {
		close(s.met)
	}
	s.mu.Unlock()
	if s.seen != nil {
		s.seen(s.Offers())
	}
}

// Call calls a tool of the server; see [tool.Set].
func (s *Server) Call(ctx context.Context, name string, args jsontext.Value) (tool.Result, error) {
	current := s.session()
	if current == nil || !current.has(name) {
		return tool.Result{}, tool.ErrAbsent
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.config.Timeout, DefaultTimeout))
	defer cancel()
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	var got *sdk.CallToolResult
	err := current.conn.ask(ctx, func(ctx context.Context, client *sdk.ClientSession) (err error) {
		got, err = client.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
		return err
	})
	origin := taint.MCPOrigin(s.config.Name, name)
	if err == nil {
		return resultOf(got, origin), nil
	}
	if refusal, ok := answered(err); ok {
		return tool.Result{Text: "The server refused the call: " + refusal, Failed: true, Origin: origin}, nil
	}
	current.conn.doubt()
	return tool.Result{}, meaning(ctx, err)
}

// answered returns what the server itself said in refusing a call. The SDK has
// errors of the same type for what happens on the way; those are no answers.
func answered(err error) (text string, ok bool) {
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || wire.Code <= -32003 && wire.Code >= -32005 || errors.Is(err, sdk.ErrConnectionClosed) {
		return "", false
	}
	return wire.Message, true
}

// meaning says what an error on the way means for a call: that it was not made
// only where that is certain (T59).
func meaning(ctx context.Context, err error) error {
	if on, ok := errors.AsType[*net.OpError](err); ok && on.Op == "dial" || errors.Is(err, sdk.ErrSessionMissing) {
		return tool.ErrAbsent
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("the server was lost in the middle of a call: %w", kernel.ErrOutcomeUnknown)
}
