//go:build !linux

package browser

import (
	"errors"
	"syscall"
)

// errSystem says that the end of a process cannot be proved here; nothing is
// started where that is so.
var errSystem = errors.New("a browser of the agent's own needs Linux")

func mortal() *syscall.SysProcAttr { return nil }

func identify(int) (identity, error) { return identity{}, errSystem }

func bootID() (string, error) { return "", errSystem }

func living(string) ([]identity, error) { return nil, errSystem }

func (id identity) lives() bool { return false }

func (id identity) signal(string, syscall.Signal) {}

func child(int) bool { return false }
