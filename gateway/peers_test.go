package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/parley-run/parley/conversation"
)

// peers are clients of a server in a bubble, over HTTP/1.1 and HTTP/2.
type peers struct {
	w        *world
	listener *pipeListener
	two      *http.Transport
}

// errCut is the end of a connection that its own client has cut.
var errCut = errors.New("cut")

// peers serves the world to clients of both protocols. wrap, if there is one, is
// put around each connection of HTTP/2.
func (w *world) peers(t *testing.T, wrap func(net.Conn) net.Conn) *peers {
	_, listener := w.piped(t, func(s *http.Server) {
		s.Protocols = new(http.Protocols)
		s.Protocols.SetHTTP1(true)
		s.Protocols.SetUnencryptedHTTP2(true)
	})
	p := &peers{w: w, listener: listener, two: &http.Transport{
		Protocols: new(http.Protocols),
		HTTP2:     &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10},
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			conn := listener.dial()
			if wrap != nil {
				conn = wrap(conn)
			}
			return conn, nil
		},
	}}
	p.two.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(p.two.CloseIdleConnections)
	return p
}

// read opens a stream behind an entry, "" for the beginning, hands on its events
// until it ends, and cuts it after so many bytes. Of HTTP/2 these are bytes of the
// stream, of HTTP/1.1 bytes of the connection, so that a cut may fall into the head.
func (p *peers) read(two bool, id, last string, most int64, each func(sse)) error {
	r := request("GET", "http://x/v1/conversations/"+id+"/events", "ann@acme", "")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	body, done, err := p.open(two, r, most)
	if err != nil {
		return err
	}
	defer done()
	for events := newReader(body); ; {
		e, err := events.next()
		if err != nil {
			return err
		}
		each(e)
	}
}

// open sends a request for a stream. done gives up what is left of the answer.
func (p *peers) open(two bool, r *http.Request, most int64) (body io.Reader, done func(), err error) {
	if two {
		response, err := p.two.RoundTrip(r)
		if err != nil {
			return nil, nil, err
		}
		return cutAfter(response.Body, most), func() { response.Body.Close() }, answered(response)
	}
	conn := p.listener.dial()
	r.Write(conn) // what is not written is not answered
	response, err := http.ReadResponse(bufio.NewReader(cutAfter(conn, most)), r)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return response.Body, func() { conn.Close() }, answered(response)
}

// errOver says that a conversation is over, and that all of it is known.
var errOver = errors.New("204")

func answered(response *http.Response) error {
	switch response.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusNoContent:
		return errOver
	}
	return errors.New(response.Status)
}

// cutAfter reads so many bytes, and then fails.
func cutAfter(from io.Reader, most int64) io.Reader {
	return io.MultiReader(io.LimitReader(from, most), failing{})
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errCut }

// brittle is a connection that breaks when it has carried so many bytes.
type brittle struct {
	net.Conn
	mu   sync.Mutex
	left int
}

// Read breaks the connection when its time has come.
func (b *brittle) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left -= n; b.left < 0 {
		b.Conn.Close()
		return 0, errCut
	}
	return n, err
}

// ids are the cursors of all entries of a conversation of ann's.
func (w *world) ids(id string) (all []string) {
	w.t.Helper()
	var from *conversation.Cursor
	for {
		page, err := w.client.History(context.Background(), ann, id, conversation.HistoryOptions{Limit: conversation.MaxPage, Cursor: from})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, entry := range page.Entries {
			all = append(all, entry.Cursor.String())
		}
		if page.Done {
			return all
		}
		from = &page.Next
	}
}
