package server

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// SSE-10, SSE-11, check 36, finding 7: each connection that the server accepts gives
// up a peer that acknowledges nothing for 30 s, and lets the system buffer little
// for one that does not read.
func TestSSE10ConnectionsAreTuned(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := limitConnections(inner, 1)
	defer listener.Close()
	client, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*limitedConn).Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	option := func(level, name int) (value int) {
		controlErr := raw.Control(func(fd uintptr) { value, err = unix.GetsockoptInt(int(fd), level, name) })
		if controlErr != nil || err != nil {
			t.Fatal(controlErr, err)
		}
		return value
	}
	if got := option(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); got != int(unanswered.Milliseconds()) {
		t.Errorf("TCP_USER_TIMEOUT is %d ms, want %v", got, unanswered)
	}
	if got := option(unix.SOL_SOCKET, unix.SO_SNDBUF); got != 2*sendBuffer { // Linux doubles it
		t.Errorf("SO_SNDBUF is %d, want 2 × %d", got, sendBuffer)
	}
}
