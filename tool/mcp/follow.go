package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/cenkalti/backoff/v5"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	firstWait = 500 * time.Millisecond // before the second attempt to find a server
	lastWait  = time.Minute            // between two attempts, at most
	steady    = time.Minute            // a server that was there so long is looked for at once again

	connectTime = time.Minute      // for a server to introduce itself; some load themselves first
	listTime    = 30 * time.Second // for it to list its tools
	pulse       = time.Minute      // between two looks whether it is still there
	settle      = 100 * time.Millisecond
	farewell    = time.Second // for it to hear that it is over
)

// follow looks for the server until ctx ends.
func (s *Server) follow(ctx context.Context) {
	wait := &backoff.ExponentialBackOff{
		InitialInterval: firstWait, MaxInterval: lastWait, Multiplier: 2, RandomizationFactor: 0.2,
	}
	wait.Reset()
	away := false
	for {
		began := time.Now()
		met, err := s.meet(ctx)
		if ctx.Err() != nil {
			return
		}
		if met && time.Since(began) >= steady {
			wait.Reset()
		}
		if met || !away { // once for each time that it goes
			s.log.Warn("an MCP server is away; its tools are not offered", "error", s.reason(err))
		}
		away = true
		timer := time.NewTimer(wait.NextBackOff())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// meet finds the server once and stays with it until it is lost or ctx ends. It
// reports whether it was found.
func (s *Server) meet(ctx context.Context) (met bool, err error) {
	way, err := s.dial()
	if err != nil {
		return false, err
	}
	c, err := connect(ctx, way, s.version)
	if err != nil {
		way.cut()
		s.version = other(s.version)
		return false, way.why(err)
	}
	defer func() {
		c.close()
		err = way.why(err)
	}()
	defer s.publish(nil)
	for {
		current, err := s.list(ctx, c)
		if err != nil {
			return met, err
		}
		if !met {
			s.log.Info("an MCP server is there", "tools", len(current.offers))
		}
		met = true
		s.publish(current)
		if err := c.stay(ctx); err != nil {
			return met, err
		}
	}
}

// The SDK asks a server first whether it knows the newest protocol. One that takes
// that badly, by its end or by silence, is asked in the older way the next time.
const (
	newest = ""
	older  = "2025-11-25"
)

func other(version string) string {
	if version == newest {
		return older
	}
	return newest
}

// stay waits until the tools are to be listed again, and then a moment more: a
// server may tell of any number of changes.
func (c *connection) stay(ctx context.Context) error {
	timer := time.NewTimer(pulse)
	defer timer.Stop()
	for changed := c.changed; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.lost:
			return errors.New("the connection ended")
		case <-changed:
			changed = nil
			timer.Reset(settle)
		case <-timer.C:
			return nil
		}
	}
}

// reason is an error as an operator may read it: one short line without a secret.
func (s *Server) reason(err error) string {
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		err = wrong.Err
	}
	return printable(s.config.hide(err.Error()), 200)
}

// printable makes a short line of anything.
func printable(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return '_'
	}, text[:min(len(text), limit)])
	return text
}

// link is a way to a server. cut ends it at once: whoever reads or writes on it
// comes back, and everything that was started for it is gone when cut returns. It
// can be called more than once, and by several at a time.
type link struct {
	transport sdk.Transport
	cut       func()
	explain   func(error) error // says more of the end of a way that was cut; nil if there is no more to say
}

// why is why a way came to its end, by the error that was met.
func (l *link) why(err error) error {
	if l.explain == nil {
		return err
	}
	return l.explain(err)
}

// connection is a server that was found.
type connection struct {
	way     *link
	client  *sdk.ClientSession
	lost    chan struct{} // closed when the connection has ended
	changed chan struct{} // its tools may have changed
	over    chan struct{} // closed when it is given up
	asking  sync.WaitGroup
}

// connect introduces Parley to a server. It tells the server of nothing that it
// could ask for.
func connect(ctx context.Context, way *link, version string) (*connection, error) {
	c := &connection{way: way, lost: make(chan struct{}), changed: make(chan struct{}, 1), over: make(chan struct{})}
	client := sdk.NewClient(&sdk.Implementation{Name: "parley", Version: "0"}, &sdk.ClientOptions{
		Capabilities:           &sdk.ClientCapabilities{},
		MultiRoundTrip:         &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { c.doubt() },
	})
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	stop := context.AfterFunc(ctx, way.cut) // the SDK may wait for a peer that does not even read
	defer stop()
	err := guarded(func() (err error) {
		c.client, err = client.Connect(ctx, way.transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
		return err
	})
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("it did not introduce itself: %w", ctx.Err())
		}
		return nil, err
	}
	go func() {
		defer close(c.lost)
		_ = c.client.Wait() // why it ended is of no use to anybody
	}()
	return c, nil
}

// guarded makes a request of the SDK, which may panic over an answer that nobody
// thought of; that must end nothing else.
func guarded(request func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("its answer cannot be read")
		}
	}()
	return request()
}

// doubt has the connection looked at.
func (c *connection) doubt() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// ask makes one request, and comes back when it is answered, ctx ends or the
// connection is given up. A request that cannot even be written stays behind
// until then.
func (c *connection) ask(ctx context.Context, request func(context.Context, *sdk.ClientSession) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer := make(chan error, 1)
	c.asking.Go(func() { answer <- guarded(func() error { return request(ctx, c.client) }) })
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.over:
		return sdk.ErrConnectionClosed
	}
}

// close says farewell, and cuts the way when that takes too long.
func (c *connection) close() {
	close(c.over)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = c.client.Close() // it is cut now in any case
	}()
	timer := time.NewTimer(farewell)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
	c.way.cut()
	<-closed
	<-c.lost
	c.asking.Wait()
}
