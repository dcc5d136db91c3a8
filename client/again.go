package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

const (
	// leastWait is what a wait grows from, and mostWait what it grows to; where
	// somebody waits for an answer, to mostPersistWait.
	leastWait       = 500 * time.Millisecond
	mostWait        = 30 * time.Second
	mostPersistWait = 5 * time.Second
	// mostAfter bounds what a Retry-After can ask for.
	mostAfter = 5 * time.Minute
	// patience is for how long Persist asks.
	patience = time.Minute
)

// Persist asks a server until it has an answer that counts. After a failure that
// may pass it asks again: the connection could not be made or was lost, the server
// failed or is not available, there is too much to do. It waits longer each time,
// and at least as long as a Retry-After says. It asks for the last time within a
// minute of the first failure, or before the deadline of ctx, and returns the last
// failure as soon as there is no time for another wait, of a quarter of a second at
// least. Where ctx ends a wait, its cause is returned as well.
//
// What is asked may have happened although its answer was lost, so that ask must
// bear being repeated. All methods of a [Client] do but Start, after which there may
// be two conversations.
func Persist(ctx context.Context, ask func(context.Context) error) error {
	pace := pace{most: mostPersistWait}
	var deadline time.Time
	for {
		err := ask(ctx)
		if err == nil || ctx.Err() != nil || !Passes(err) {
			return err
		}
		if deadline.IsZero() {
			deadline = time.Now().Add(patience)
			if earlier, ok := ctx.Deadline(); ok && earlier.Before(deadline) {
				deadline = earlier
			}
		}
		pace.failed(err)
		wait := pace.next()
		if time.Now().Add(wait).After(deadline) {
			return err
		}
		if ended := sleep(ctx, wait); ended != nil {
			return fmt.Errorf("%w; before that: %w", ended, err)
		}
	}
}

// Passes reports whether an error may be gone the next time: a failure of the
// connection or of the server, and a limit. Of what a server has refused nothing
// else will pass, but for one thing: that an open stream's caller is not known any
// more, since their next token may be (C-31.8). [Persist] goes by it.
func Passes(err error) bool {
	if refused, ok := errors.AsType[*Error](err); ok {
		event := refused.Status == 0
		return refused.Status >= 500 || refused.Status == http.StatusTooManyRequests || refused.Status == http.StatusRequestTimeout ||
			event && (errors.Is(err, ErrInternal) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrTooMany) || errors.Is(err, ErrUnauthorized))
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	return !errors.Is(err, ErrProtocol) && !errors.Is(err, ErrBadRequest) && !errors.Is(err, http.ErrSchemeMismatch)
}

// pace says how long to wait before the server is asked again. Its zero value is
// ready to use.
type pace struct {
	most  time.Duration // what a wait grows to; 0 means mostWait
	wait  time.Duration // as things stand; 0 means leastWait
	retry time.Duration // at least; a stream has said so, and it holds until another does
	after time.Duration // at least; a refusal has said so, and it holds once
}

// failed takes in a failure.
func (p *pace) failed(err error) {
	if refused, ok := errors.AsType[*Error](err); ok {
		p.after = min(refused.RetryAfter, mostAfter)
	}
}

// told takes in what a stream says.
func (p *pace) told(retry time.Duration) {
	if retry > 0 {
		p.retry = min(retry, mostWait)
	}
}

// succeeded makes the next wait a short one.
func (p *pace) succeeded() { p.wait = 0 }

// next returns the wait, between a half and the whole of what it could be, so that
// clients do not come back all at once (SSE-32), and makes the one after it longer.
func (p *pace) next() time.Duration {
	wait := max(p.wait, leastWait)
	p.wait = min(2*wait, cmp.Or(p.most, mostWait))
	wait = wait/2 + rand.N(wait/2)
	if least := max(p.retry, p.after); wait < least {
		wait = least + rand.N(leastWait)
	}
	p.after = 0
	return wait
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
