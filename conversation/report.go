package conversation

import (
	"context"
	"sync"
	"time"

	"github.com/parley-run/parley/fault"
	"github.com/parley-run/parley/kernel"
)

// hookTime is how long an error hook may take before it is left behind (C-25.5).
const hookTime = 5 * time.Second

// Where says in which turn something failed.
type Where struct {
	ConversationID string
	Turn           int
}

// report gives a failure to the host, or its code to the log where there is no
// hook: nobody is told twice. A hook that panics or blocks stops nothing: it
// runs by itself and is left behind after its time.
func (f *Flow) report(ctx context.Context, errorID string, err error, where Where) {
	if f.config.OnError == nil {
		f.log().Warn("a turn failed", "errorId", errorID,
			"conversation", where.ConversationID, "turn", where.Turn, "code", fault.CodeOf(err))
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if recover() != nil {
				f.log().Error("the error hook panicked", "conversation", where.ConversationID, "errorId", errorID)
			}
		}()
		f.config.OnError(errorID, err, where)
	}()
	timer := time.NewTimer(hookTime)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		f.log().Error("the error hook blocks and is left behind", "conversation", where.ConversationID, "errorId", errorID)
	case <-ctx.Done():
	}
}

// trouble collects what really went wrong in a turn. It lives as long as the
// process: after a crash only the recorded code is left.
type trouble struct {
	mu   sync.Mutex
	errs []error
}

func (t *trouble) add(_ kernel.EffectID, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errs = append(t.errs, err)
}

func (t *trouble) all() []error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.errs
}
