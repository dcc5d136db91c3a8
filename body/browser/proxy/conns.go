package proxy

import (
	"net"
	"sync"
	"time"
)

// connections are the open ones of one side of a proxy, so many that they can be
// bounded and ended. Its zero value is ready.
type connections struct {
	mu     sync.Mutex
	open   map[*conn]struct{}
	closed bool
}

// add takes a connection in, or closes it where there are too many or none may
// be any more.
func (c *connections) add(inner net.Conn, halfOpen time.Duration) (*conn, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.open) >= maxConnections {
		inner.Close()
		return nil, false
	}
	if c.open == nil {
		c.open = map[*conn]struct{}{}
	}
	added := &conn{Conn: inner, of: c, halfOpen: halfOpen}
	c.open[added] = struct{}{}
	return added, true
}

// close ends all, and those that are yet to come.
func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for open := range c.open {
		open.Conn.Close()
	}
	clear(c.open)
}

// conn is a connection among others.
type conn struct {
	net.Conn
	of       *connections
	halfOpen time.Duration
}

// Close closes the connection and forgets it.
func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite tells the other end that nothing more comes. What it has still to
// say it must say soon, or a tunnel of which one end is gone would never end.
func (c *conn) CloseWrite() error {
	if err := c.SetReadDeadline(time.Now().Add(c.halfOpen)); err != nil {
		return err
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// limited is a listener whose connections are counted, and closed above the
// bound.
type limited struct {
	net.Listener
	clients  *connections
	halfOpen time.Duration
}

func (l limited) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if client, ok := l.clients.add(accepted, l.halfOpen); ok {
			return client, nil
		}
	}
}
