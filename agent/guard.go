package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// grace is how long code that is not ours may take to return after its context
// ended. It is shorter than the kernel's own.
const grace = 3 * time.Second

var (
	errPanicked = errors.New("it panicked")
	errDeaf     = errors.New("it did not return after its context had ended")
)

// guarded calls code that is not ours and always comes back: with its error,
// with an error in place of its panic, or, if it overlooks the end of ctx, with
// errDeaf; it is then left behind, and its result goes nowhere.
func guarded(ctx context.Context, call func() error) error {
	done := make(chan error, 1)
	go func() {
		err := errPanicked // stays if call leaves by Goexit
		defer func() { done <- err }()
		defer func() {
			if r := recover(); r != nil {
				err = panicked(r)
			}
		}()
		err = call()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errDeaf
	}
}

// panicked describes a panic without the text of anybody: runtime errors are
// the program's own, anything else is named by its type.
func panicked(r any) error {
	if err, ok := r.(runtime.Error); ok {
		return fmt.Errorf("%w: %w", errPanicked, err)
	}
	return fmt.Errorf("%w with a %T", errPanicked, r)
}
