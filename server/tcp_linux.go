package server

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// unanswered is how long the other end of a connection may leave what was sent
// unacknowledged. A comment every 15 s is always on its way, so a peer that has
// vanished without a word frees its place within 45 s, and not in the quarter of
// an hour that the system would try (SSE-10, SSE-11).
const unanswered = 30 * time.Second

// tune sets what a connection needs; without it the connection works too.
func tune(conn *net.TCPConn) {
	_ = conn.SetWriteBuffer(sendBuffer)
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unanswered.Milliseconds()))
	})
}
