package browser

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// mortal makes a process die with the thread that starts it.
func mortal() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// identify reads who a process is.
func identify(pid int) (identity, error) {
	_, started, err := stat(pid)
	return identity{pid, started}, err
}

// stat reads the state of a process and when it started. What comes after the
// name, which may hold anything, is separated by spaces.
func stat(pid int) (state byte, started uint64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 {
		return 0, 0, fmt.Errorf("process %d: its state cannot be read", pid)
	}
	started, err = strconv.ParseUint(fields[19], 10, 64)
	return fields[0][0], started, err
}

// bootID names this run of the machine; process ids of another mean nothing.
func bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}

// uses reports whether a process has a profile on its command line. Chromium
// hands the flag to each of its children.
func uses(pid int, profile string) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	_, rest, found := bytes.Cut(append(line, 0), []byte(profileFlag(profile)))
	return found && (rest[0] == 0 || rest[0] == ' ') // children write it as one text
}

// living lists the processes of a profile that have not ended. A zombie has.
func living(profile string) ([]identity, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("look for processes: %w", err)
	}
	var all []identity
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || !uses(pid, profile) {
			continue
		}
		if state, started, err := stat(pid); err == nil && state != 'Z' && state != 'X' {
			all = append(all, identity{pid, started})
		}
	}
	return all, nil
}

// lives reports whether exactly this process has not ended.
func (id identity) lives() bool {
	state, started, err := stat(id.PID)
	return id.PID > 0 && err == nil && started == id.Started && state != 'Z' && state != 'X'
}

// signal sends a signal to exactly this process, if it still has the profile. The
// handle keeps a later process of the same number out of it.
func (id identity) signal(profile string, signal syscall.Signal) {
	handle, err := unix.PidfdOpen(id.PID, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(handle) }()
	if id.lives() && uses(id.PID, profile) {
		_ = unix.PidfdSendSignal(handle, signal, nil, 0)
	}
}

// child reports whether a process of Chromium is one that the first started.
func child(pid int) bool {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return bytes.Contains(line, []byte("--type="))
}
