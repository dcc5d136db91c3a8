package lease

import (
	"github.com/parley-run/parley/body"
)

// An attempt tries to end a claim: the holder's ordinary stop, an explicit
// recovery, or the sweep's check. All three go the same way: begin, strike (where
// there is a stop, at its last step), confirm or abandon. Each step names the
// attempt by its nonce and is judged anew, because each follows an await
// (L-15.7). A struck attempt pins the body until it is over, so that its stop
// cannot land on a successor; one that has not struck may be superseded, and is
// dead from then on.

// stop begins the ordinary stop. held, holder's token, no pin: goes on.
// Otherwise: held, and the error says what blocks.
type stop struct {
	fence fence
	nonce string
}

func (cmd stop) on(s state, _ instant) ([]event, error) {
	if err := s.holds(cmd.fence); err != nil {
		return nil, err
	}
	if err := s.pinned(""); err != nil {
		return nil, err
	}
	if s.claim.attempt != nil {
		return nil, &BlockedError{Stopping: true}
	}
	return []event{attempted{attempt{nonce: cmd.nonce, cause: CauseStop}}}, nil
}

// recovery begins an explicit recovery, by the operator or by the holding
// conversation (L-15.8), of exactly the incarnation that it names (L-15.4). It
// supersedes any attempt that has not struck.
type recovery struct {
	of    body.Incarnation
	by    Caller
	may   bool
	nonce string
}

func (cmd recovery) on(s state, now instant) ([]event, error) {
	switch {
	case !cmd.may:
		return nil, ErrDenied
	case s.exact(cmd.of) != nil:
		return nil, ErrStale
	case s.claim.blocked == "":
		return nil, s.busy(cmd.by, now)
	}
	if err := s.pinned(""); err != nil {
		return nil, err
	}
	return []event{
		recovering{cmd.of, cmd.by, s.claim.holder},
		attempted{attempt{nonce: cmd.nonce, cause: CauseRecovery, by: cmd.by}},
	}, nil
}

// sweep begins an automatic check. It steps back behind everybody else.
type sweep struct {
	of    body.Incarnation
	nonce string
}

func (cmd sweep) on(s state, _ instant) ([]event, error) {
	if s.exact(cmd.of) != nil || s.claim.blocked == "" || s.claim.attempt != nil || len(s.claim.active()) > 0 {
		return nil, ErrStale
	}
	return []event{attempted{attempt{nonce: cmd.nonce, cause: CauseSweep}}}, nil
}

// strike is the guard of the attempt's stop at its last remote step. An ordinary
// stop is for those who still hold (L-8.8).
type strike struct {
	nonce string
	may   bool
}

func (cmd strike) on(s state, _ instant) ([]event, error) {
	switch {
	case !s.runs(cmd.nonce):
		return nil, ErrStale
	case !cmd.may:
		return nil, ErrDenied
	case s.claim.attempt.cause == CauseStop && s.claim.blocked != "":
		return nil, ErrExpired
	}
	return []event{struck{cmd.nonce}}, nil
}

// confirm: confirmed termination of this incarnation, no pin left: free. It
// settles what was uncertain; what is active is settled by its own completion
// alone (L-9.8).
type confirm struct {
	nonce    string
	may      bool
	evidence body.Evidence
}

func (cmd confirm) on(s state, now instant) ([]event, error) {
	switch {
	case !s.runs(cmd.nonce):
		return nil, ErrStale
	case !cmd.may:
		return nil, ErrDenied
	case s.exact(cmd.evidence.Incarnation) != nil:
		return nil, &BlockedError{Check: errAnotherLife}
	}
	if err := s.pinned(cmd.nonce); err != nil {
		return nil, err
	}
	a := s.claim.attempt
	return []event{s.release(a.cause, cmd.evidence.Proof, a.by, now)}, nil
}

// abandon ends an attempt without evidence: the claim stays (L-15.6).
type abandon struct {
	nonce string
}

func (cmd abandon) on(s state, _ instant) ([]event, error) {
	if !s.runs(cmd.nonce) {
		return nil, nil
	}
	return []event{over(cmd)}, nil
}

// report: the adapter reports a confirmed end that it observed by itself, no pin
// left: free. A pin is left: unchanged, and the adapter reports again.
type report struct {
	evidence body.Evidence
	last     int
}

func (cmd report) on(s state, now instant) ([]event, error) {
	if s.exact(cmd.evidence.Incarnation) != nil {
		return nil, ErrStale
	}
	if err := s.pinned(""); err != nil {
		return nil, err
	}
	if s.claim.newest > cmd.last {
		return nil, body.ErrPinned // an operation began after what was observed
	}
	return []event{s.release(CauseEnded, cmd.evidence.Proof, Caller{}, now)}, nil
}

// runs reports whether the attempt of the nonce is the present one.
func (s state) runs(nonce string) bool {
	return s.claim != nil && s.claim.attempt != nil && s.claim.attempt.nonce == nonce
}

// release frees the resource, on record with the ground for it (L-16.9). What
// waits in the queue stays, and is due from now on.
func (s state) release(cause Cause, proof body.Proof, by Caller, now instant) released {
	c := s.claim
	return released{c.incarnation, cause, proof, by, c.holder, pruned(s.requests, now.wall)}
}
