//go:build !linux

package server

import "net"

// tune sets what a connection needs; without it the connection works too. How
// long the system waits for a peer that has vanished is its own affair here.
func tune(conn *net.TCPConn) { _ = conn.SetWriteBuffer(sendBuffer) }
