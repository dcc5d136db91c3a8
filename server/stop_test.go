package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/parley-run/parley/server/datadir"
)

// streamer opens streams of a server by raw requests.
type streamer struct {
	t     *testing.T
	r     *running
	token string
	one   *http.Client
	two   *http.Client
}

// streams is a streamer of a server that speaks HTTP/2 without TLS.
func (r *running) streams() *streamer {
	r.t.Helper()
	secret, err := datadir.ReadToken(r.Directory().OwnTokenFile())
	if err != nil {
		r.t.Fatal(err)
	}
	var h1, h2 http.Protocols
	h1.SetHTTP1(true)
	h2.SetUnencryptedHTTP2(true)
	one := &http.Transport{Protocols: &h1, DisableKeepAlives: true}
	two := &http.Transport{Protocols: &h2, HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}}
	r.t.Cleanup(two.CloseIdleConnections)
	return &streamer{t: r.t, r: r, token: secret.Reveal(), one: &http.Client{Transport: one}, two: &http.Client{Transport: two}}
}

// open opens a stream and returns its body.
func (s *streamer) open(ctx context.Context, two bool, id string, header ...string) io.ReadCloser {
	s.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.r.URL()+"/v1/conversations/"+id+"/events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	client := s.one
	if two {
		client = s.two
	}
	response, err := client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	if response.StatusCode != 200 || (response.ProtoMajor == 2) != two {
		s.t.Fatalf("a stream: %d over HTTP/%d", response.StatusCode, response.ProtoMajor)
	}
	s.t.Cleanup(func() { response.Body.Close() })
	return response.Body
}

// SSE-53, check 46: a stop with a hundred streams open, over HTTP/1.1 and HTTP/2,
// ends within its window, and each stream has been told all of its last event.
func TestSSE53StopWithManyStreams(t *testing.T) {
	w := newWorld(t)
	w.config.Settings.MaxStreamsPerCaller, w.config.Settings.H2C = 200, true
	r := w.start()
	streams := r.streams()
	var ids []string
	for range 4 {
		id, err := r.me().Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	var bodies []*bufio.Reader
	for i := range 100 {
		body := bufio.NewReader(streams.open(t.Context(), i%2 == 1, ids[i%len(ids)]))
		if line, err := body.ReadString('\n'); err != nil || line != "event: status\n" {
			t.Fatalf("stream %d begins with %q, %v", i, line, err)
		}
		bodies = append(bodies, body)
	}
	r.stop()
	var all sync.WaitGroup
	for i, body := range bodies {
		all.Go(func() {
			rest, err := io.ReadAll(body)
			last := string(rest[strings.LastIndex(string(rest), "event: "):])
			var retry int
			if _, scanErr := fmt.Sscanf(last, "event: reconnect\nretry: %d\ndata: {}\n\n", &retry); err != nil || scanErr != nil || !strings.HasSuffix(last, "data: {}\n\n") {
				t.Errorf("stream %d ends with %q, %v", i, last, err)
			}
		})
	}
	all.Wait()
	if err := <-r.done; err != nil {
		t.Errorf("Run = %v", err)
	}
	if log := w.log.String(); strings.Contains(log, "are cut") {
		t.Errorf("the window was too short: %s", log)
	}
}
