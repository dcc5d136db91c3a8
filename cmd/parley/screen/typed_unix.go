//go:build unix

package screen

import (
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// typedBefore reads what was typed while the terminal still gathered lines. Read later
// it could not be told from what is typed then, where a line break is no Enter.
func typedBefore(in *os.File) string {
	fd := int(in.Fd())
	found, err := term.MakeRaw(fd) // gives what there is of a line too
	if err != nil {
		return ""
	}
	defer func() { _ = term.Restore(fd, found) }()
	waiting := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	text := make([]byte, 0, maxTyped)
	for len(text) < cap(text) {
		if n, err := unix.Poll(waiting, 0); n != 1 || err != nil || waiting[0].Revents&unix.POLLIN == 0 {
			break
		}
		n, err := unix.Read(fd, text[len(text):cap(text)])
		if n <= 0 || err != nil {
			break
		}
		text = text[:len(text)+n]
	}
	return string(text)
}
