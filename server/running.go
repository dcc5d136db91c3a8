package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/parley-run/parley/server/datadir"
)

// RunningError says that the data directory has a server, and that it answers.
type RunningError struct{ URL string }

// Error names the address.
func (e *RunningError) Error() string { return "already running at " + e.URL }

const (
	// lockPatience is how long a start waits for a server that is on its way out,
	// or for one that was started at the same time and does not answer yet.
	lockPatience = 3 * time.Second
	// lockRound is how long it waits between two looks for the other's answer.
	lockRound = 100 * time.Millisecond
	// answerTime is how long a running server may take to answer.
	answerTime = 2 * time.Second
)

// lockDirectory takes the lock of the directory.
//
// Errors: [RunningError] if its holder answers, else [datadir.HeldError].
func lockDirectory(ctx context.Context, dir datadir.Dir) (*datadir.Lock, error) {
	for deadline := time.Now().Add(lockPatience); ; {
		lock, err := dir.LockWithin(ctx, lockRound)
		if _, held := errors.AsType[*datadir.HeldError](err); !held {
			return lock, err
		}
		if url, ok := answering(ctx, dir); ok {
			return nil, &RunningError{URL: url}
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return nil, fmt.Errorf("%w, which does not answer; stop it first, or name another directory with --data DIR", err)
		}
	}
}

// findRunning returns the error that says where the directory's server runs,
// nil where none answers. It touches nothing.
func findRunning(ctx context.Context, path string) error {
	dir, err := datadir.Existing(path)
	if err != nil {
		return nil
	}
	if url, ok := answering(ctx, dir); ok {
		return &RunningError{URL: url}
	}
	return nil
}

// answering asks the directory's server for a sign of life.
func answering(ctx context.Context, dir datadir.Dir) (url string, ok bool) {
	url, ok, err := dir.Address()
	if err != nil || !ok {
		return "", false
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/healthz", nil)
	if err != nil {
		return "", false
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: dir.TLS()}} // no proxy: it is this machine
	answer, err := client.Do(request)
	if err != nil {
		return "", false
	}
	defer answer.Body.Close()
	return url, answer.StatusCode == http.StatusOK
}
