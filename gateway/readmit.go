package gateway

import (
	"context"
	"errors"
	"time"
)

// reauth is how often a stream asks again who its caller is, and whether they
// may still read (C-31.8).
const reauth = 30 * time.Second

// readmit takes the caller of an open stream through the door again. A token
// that now stands for somebody else is no better than one that stands for
// nobody (C-31.8).
func (g *Gateway) readmit(x *exchange) error {
	before := x.caller
	if err := g.authenticate(x); err != nil {
		return err
	}
	if before != nil && before.Identity != x.caller.Identity {
		return errUnauthorized
	}
	return g.admit(x)
}

// readmit does so for a stream, when it is time. It is asked at each beat, and
// before each chunk: a client that reads just fast enough can make one page last
// for minutes.
func (s *stream) readmit() error {
	if time.Since(s.admitted) < reauth {
		return nil
	}
	if err := aside(func() error { return s.gateway.readmit(s.x) }); err != nil {
		return &unadmitted{err}
	}
	s.admitted = time.Now()
	return nil
}

// permit asks whether the caller still takes part in a shared conversation, right
// before an entry of it is written, or a word (C-37.10). Who does not is told what a
// revoked caller is.
func (s *stream) permit() error {
	if !s.shared {
		return nil
	}
	if err := s.tail.Permit(s.x.r.Context()); err != nil {
		return &unadmitted{err}
	}
	return nil
}

// unadmitted says that nothing more is written, because of the error.
type unadmitted struct{ error }

// Unwrap returns the error.
func (u *unadmitted) Unwrap() error { return u.error }

// cut ends a stream to whose client nothing more could be written, or was to be.
func (s *stream) cut(ctx context.Context, err error) StreamEnd {
	if u, ok := errors.AsType[*unadmitted](err); ok {
		return s.fail(ctx, u.error)
	}
	return cutBy(err)
}
