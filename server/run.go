package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// A server that is told to stop has this long for its streams and requests; the
// runtime then needs 5 s at most for the effects that it cuts. Together they
// stay below the 10 s that a stop may take.
const drainTime = 4 * time.Second

// lameTime is how long a server whose journal has failed says so, on /readyz
// and with 503, before it stops.
const lameTime = time.Second

// Run serves until ctx is done, then drains: no new connections, a reconnect
// event to every stream, then the runtime, the journal and the lock are given
// back. It returns nil after a clean stop, and an error if the journal failed
// or could not be closed.
func (s *Server) Run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- s.serve() }()
	var failure error
	select {
	case <-ctx.Done():
	case err := <-served:
		failure = fmt.Errorf("serve: %w", err)
		served <- err
	case <-s.runtime.Failed():
		failure = fmt.Errorf("journal %s: %w; see to its disk, then start the server again: what it has confirmed is there",
			s.dir.Database(), s.runtime.Err())
		s.ready.Store(false)
		s.log.Error("the journal has failed; the server stops", "error", s.runtime.Err())
		select {
		case <-ctx.Done():
		case <-time.After(lameTime):
		}
	}
	s.drain()
	<-served
	return errors.Join(failure, s.release())
}

// serve answers requests until the HTTP server is shut down.
func (s *Server) serve() error {
	listener := limitConnections(s.listener, maxConnections)
	if s.door.certificate != nil {
		return s.http.ServeTLS(listener, "", "") // with the certificate of its configuration
	}
	return s.http.Serve(listener)
}

// drain stops listening and lets streams and requests end. Those that do not in
// time are cut; their clients come back with what they have.
func (s *Server) drain() {
	s.ready.Store(false)
	s.log.Info("stopping")
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	drained := make(chan error, 1)
	go func() { drained <- s.gateway.Drain(ctx) }()
	if err := s.http.Shutdown(ctx); err != nil && !errors.Is(err, http.ErrServerClosed) {
		s.log.Warn("connections are cut", "error", err)
		_ = s.http.Close() // what it could say was said
	}
	if err := <-drained; err != nil {
		s.log.Warn("streams are cut", "error", err)
	}
}

// release gives back what the server has taken, the last thing first.
func (s *Server) release() error {
	var failures []error
	if s.runtime != nil {
		s.runtime.Close()
	}
	s.hands.close()
	s.mcp.close()
	if s.issuer != nil {
		s.issuer.Close()
	}
	if s.store != nil {
		failures = append(failures, s.store.Close())
	}
	if s.listener != nil {
		_ = s.listener.Close() // after Run it is closed
	}
	if s.lock != nil {
		failures = append(failures, s.lock.Unlock())
	}
	return errors.Join(failures...)
}
