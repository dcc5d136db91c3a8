package proxy

import (
	"net"
	"sync"
	"time"
)

// connections are the open ones of a proxy, which can be bounded and ended.
type connections struct {
	halfOpen time.Duration // what an end has for the rest once the other has finished

	mu     sync.Mutex
	open   map[*conn]struct{}
	closed bool
}

// add takes a connection in, or closes it where there are too many or none may
// be any more.
func (c *connections) add(inner net.Conn) (*conn, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.open) >= maxConnections {
		inner.Close()
		return nil, false
	}
	if c.open == nil {
		c.open = map[*conn]struct{}{}
	}
	added := &conn{Conn: inner, of: c}
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
	of *connections
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
	if err := c.SetReadDeadline(time.Now().Add(c.of.halfOpen)); err != nil {
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
	open *connections
}

func (l limited) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if client, ok := l.open.add(accepted); ok {
			return client, nil
		}
	}
}
