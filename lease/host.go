package lease

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-run/parley/body"
)

// host takes the reports of one adapter.
type host struct {
	registry *Registry
	slot     *slot
}

var _ body.Host = host{}

// Settled implements [body.Host].
func (h host) Settled(ctx context.Context, of body.Incarnation, operation string, became error) error {
	out := done
	switch {
	case errors.Is(became, body.ErrRefused):
		out = refused
	case became != nil:
		return fmt.Errorf("%w: an operation is settled by a definite outcome", ErrLimit)
	}
	digits, ok := strings.CutPrefix(operation, string(of)+".")
	number, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return ErrStale
	}
	return h.tell(ctx, complete{of: of, number: number, outcome: out, observed: true})
}

// Ended implements [body.Host].
func (h host) Ended(ctx context.Context, evidence body.Evidence, last int) error {
	if !isWord(string(evidence.Proof), 64) {
		return fmt.Errorf("%w: %w", ErrLimit, errNoProof)
	}
	return h.tell(ctx, report{evidence, last})
}

func (h host) tell(ctx context.Context, cmd command) error {
	ctx, leave, err := h.registry.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	_, err = h.registry.apply(ctx, h.slot, cmd)
	return err
}
