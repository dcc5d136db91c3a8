package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/parley-run/parley/gateway"
	"github.com/parley-run/parley/identity"
)

// protocol is how streams are carried.
type protocol string

const (
	http1 protocol = "HTTP/1.1" // a connection each
	http2 protocol = "HTTP/2"   // perConnection of them on each connection
)

const perConnection = 100

// gateway puts the API before a house, with limits that are in nobody's way.
func (h *house) gateway(streams int) (*gateway.Gateway, error) {
	return gateway.New(gateway.Config{
		Client: h.client, MaxStreams: streams, MaxStreamsPerCaller: streams, PostsPerMinute: 1e9,
		Authenticate: func(*http.Request) (identity.Principal, error) { return somebody, nil },
	})
}

// serve serves a handler over both protocols, without TLS.
func serve(handler http.Handler) (address string, closeServer func() error, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handler, Protocols: &protocols}
	go server.Serve(listener)
	return listener.Addr().String(), server.Close, nil
}

// subscribers are a process of their own, so that what they cost is not taken for
// the server's.
type subscribers struct {
	said *bufio.Reader
	in   io.Writer
	stop func()
}

// subscribe starts them and waits until all are connected.
func subscribe(ctx context.Context, order string) (*subscribers, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, self, "-subscribe", order)
	cmd.Stderr = os.Stderr
	out, errOut := cmd.StdoutPipe()
	in, errIn := cmd.StdinPipe()
	if err := errors.Join(errOut, errIn, cmd.Start()); err != nil {
		cancel()
		return nil, err
	}
	s := &subscribers{said: bufio.NewReader(out), in: in, stop: func() { cancel(); cmd.Wait() }}
	if err := s.await("connected"); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// await waits until the subscribers say the word.
func (s *subscribers) await(word string) error {
	if line, err := s.said.ReadString('\n'); err != nil || line != word+"\n" {
		return fmt.Errorf("the subscribers say %q; want %q", strings.TrimSpace(line), word)
	}
	return nil
}

// beSubscribers is that process.
func beSubscribers(order string, in io.Reader, out io.Writer) error {
	what, rest, _ := strings.Cut(order, " ")
	if what == "resume" {
		return resume(rest, in, out)
	}
	return listen(rest, out)
}

// listen opens streams, says so when every one has begun, and reads until it is
// killed.
func listen(order string, out io.Writer) error {
	var address, path string
	var count int
	var over protocol
	if _, err := fmt.Sscan(order, &address, &path, &count, &over); err != nil {
		return err
	}
	var begun sync.WaitGroup
	failed := make(chan error, count)
	var transport *http.Transport
	for i := range count {
		if i%perConnection == 0 {
			transport = &http.Transport{Protocols: new(http.Protocols)}
			transport.Protocols.SetUnencryptedHTTP2(true)
		}
		begun.Add(1)
		go func() {
			var body io.Reader
			var err error
			if over == http2 {
				body, err = openOn(transport, "http://"+address+path)
			} else {
				body, err = openRaw(address, path, "")
			}
			if err == nil {
				_, err = body.Read(make([]byte, 4096))
			}
			if err != nil {
				failed <- err
				return
			}
			begun.Done()
			io.Copy(io.Discard, body)
		}()
	}
	go func() { begun.Wait(); fmt.Fprintln(out, "connected") }()
	return <-failed
}

// openOn asks for a stream over a connection that others share.
func openOn(transport *http.Transport, url string) (io.Reader, error) {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// openRaw asks for a stream over a connection of its own, with as little as that
// takes.
func openRaw(address, path, header string) (io.Reader, error) {
	conn, err := net.Dial("tcp", address)
	if err == nil {
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, address, header)
	}
	return conn, err
}

// resume connects, waits for a line, and then resumes a stream on each connection
// at once. It says so when every one has read all that it had missed.
func resume(order string, in io.Reader, out io.Writer) error {
	var address, pattern, cursor string
	var count, conversations, entries int
	if _, err := fmt.Sscan(order, &address, &pattern, &conversations, &count, &cursor, &entries); err != nil {
		return err
	}
	connections := make([]net.Conn, count)
	for i := range connections {
		var err error
		if connections[i], err = net.Dial("tcp", address); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "connected")
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return err
	}
	var done sync.WaitGroup
	failed := make(chan error, count)
	for i, conn := range connections {
		done.Go(func() {
			_, err := fmt.Fprintf(conn, "GET "+pattern+" HTTP/1.1\r\nHost: %s\r\nLast-Event-ID: %s\r\n\r\n", i%conversations, address, cursor)
			lines := bufio.NewReader(conn)
			for missing := entries; err == nil && missing > 0; {
				var line []byte
				if line, err = lines.ReadSlice('\n'); bytes.HasPrefix(line, []byte("event: message")) {
					missing--
				}
				if errors.Is(err, bufio.ErrBufferFull) {
					err = nil
				}
			}
			if err != nil {
				failed <- err
			}
		})
	}
	done.Wait()
	select {
	case err := <-failed:
		return err
	default:
	}
	fmt.Fprintln(out, "done")
	_, err := io.Copy(io.Discard, in) // until it is killed
	return err
}
