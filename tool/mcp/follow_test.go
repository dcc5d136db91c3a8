package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-run/parley/kernel"
)

// A server that stays away is looked for less and less often, at least once a
// minute or so, and said to be away once.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log locked
		s, err := New(Config{Name: "none", URL: "http://127.0.0.1:1/", Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		var tried atomic.Int32
		s.dial = func() (*link, error) {
			tried.Add(1)
			return nil, errors.New("nobody is there")
		}
		s.Start()
		<-time.After(time.Minute)
		synctest.Wait()
		first := tried.Load()
		<-time.After(time.Hour)
		s.Close()
		if later := tried.Load() - first; first < 5 || first > 10 || later < 45 || later > 80 {
			t.Errorf("%d attempts in the first minute and %d in an hour, want about 7 and one a minute", first, later)
		}
		if n := strings.Count(log.String(), "away"); n != 1 {
			t.Errorf("the log says %d times that it is away:\n%s", n, log.String())
		}
	})
}

// pipe is a peer's end of a way within the process.
type pipe struct {
	net.Conn
	gone chan struct{} // closed when the way is cut
}

// piped is a way to a peer within the process, with the number of cuts.
func piped(answer func(pipe)) (dial func() (*link, error), cuts *atomic.Int32) {
	cuts = new(atomic.Int32)
	return func() (*link, error) {
		here, there := net.Pipe()
		done, gone := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			answer(pipe{there, gone})
		}()
		return &link{transport: &sdk.IOTransport{Reader: here, Writer: here}, cut: sync.OnceFunc(func() {
			cuts.Add(1)
			close(gone)
			here.Close()
			there.Close()
			<-done
		})}, nil
	}, cuts
}

// A server that never says a word, whether it takes in what it is told or not, is
// given up after its time, and looked for again.
func TestNoIntroduction(t *testing.T) {
	for name, answer := range map[string]func(c pipe){
		"it reads":      func(c pipe) { _, _ = io.Copy(io.Discard, c) },
		"it reads none": func(c pipe) { <-c.gone },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log locked
				s, err := New(Config{Name: "mute", URL: "http://127.0.0.1:1/", Log: slog.New(slog.NewTextHandler(&log, nil))})
				if err != nil {
					t.Fatal(err)
				}
				var cuts *atomic.Int32
				s.dial, cuts = piped(answer)
				s.Start()
				<-time.After(10 * time.Minute)
				s.Close()
				if n := cuts.Load(); n < 5 {
					t.Errorf("given up %d times in ten minutes, want about six times", n)
				}
				if !strings.Contains(log.String(), "did not introduce itself") {
					t.Errorf("the log does not say why:\n%s", log.String())
				}
			})
		})
	}
}

// Close cuts the calls that are being made: it waits for none.
func TestCloseCutsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{Name: "peer", URL: "http://127.0.0.1:1/", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		s.dial, _ = piped(func(c pipe) { _ = newPeer("good").Run(context.Background(), &sdk.IOTransport{Reader: c, Writer: c}) })
		s.Start()
		if err := s.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := s.Call(t.Context(), "wait", []byte(`{}`))
			ended <- err
		}()
		synctest.Wait()
		start := time.Now()
		s.Close()
		if took := time.Since(start); took > 0 {
			t.Errorf("Close took %v", took)
		}
		if err := <-ended; !errors.Is(err, kernel.ErrOutcomeUnknown) {
			t.Errorf("the call ended with %v, want its outcome unknown", err)
		}
	})
}

// A server that was there and does not answer any more is lost by the next look
// at it, and found again.
func TestPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{Name: "peer", URL: "http://127.0.0.1:1/", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		deaf := make(chan struct{})
		var met atomic.Int32
		s.dial, _ = piped(func(c pipe) {
			if met.Add(1) > 1 {
				_ = newPeer("good").Run(context.Background(), &sdk.IOTransport{Reader: c, Writer: c})
				return
			}
			_ = newPeer("good").Run(context.Background(), &sdk.IOTransport{Reader: until{c, deaf}, Writer: c})
		})
		s.Start()
		synctest.Wait()
		if len(s.Offers()) == 0 {
			t.Fatal("the tools are not there")
		}
		close(deaf)
		<-time.After(pulse + listTime + 2*farewell)
		synctest.Wait()
		if met.Load() == 1 && len(s.Offers()) > 0 {
			t.Error("the tools of a server that does not answer are still there")
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if len(s.Offers()) == 0 || met.Load() != 2 {
			t.Errorf("%d tools after the server was met %d times, want them back", len(s.Offers()), met.Load())
		}
		s.Close()
	})
}

// until reads until it is to hear nothing any more; what comes then is lost.
type until struct {
	io.ReadCloser
	deaf chan struct{}
}

func (u until) Read(p []byte) (int, error) {
	for {
		n, err := u.ReadCloser.Read(p)
		select {
		case <-u.deaf:
			if err != nil {
				return 0, err
			}
		default:
			return n, err
		}
	}
}

// A server of before that knows nothing of the newest protocol, and ends or is
// silent when it is asked for it, is met in the older way.
func TestOlderServer(t *testing.T) {
	for name, silent := range map[string]bool{"ends": false, "is silent": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := New(Config{Name: "old", URL: "http://127.0.0.1:1/", Log: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				s.dial, _ = piped(func(c pipe) { old(c, silent) })
				s.Start()
				<-time.After(2 * connectTime)
				synctest.Wait()
				got, err := s.Call(t.Context(), "greet", []byte(`{}`))
				if err != nil || got.Text != "good day" {
					t.Errorf("Call = %+v, %v, want the greeting", got, err)
				}
				s.Close()
			})
		})
	}
}

// old is a server of the first protocol, written without the SDK.
func old(c pipe, silent bool) {
	answers := map[string]string{
		"initialize": `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"greet","description":"Greets.","inputSchema":{"type":"object"}}]}`,
		"tools/call": `{"content":[{"type":"text","text":"good day"}]}`,
	}
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		var request struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(lines.Bytes(), &request) != nil {
			return
		}
		answer, ok := answers[request.Method]
		switch {
		case ok:
			fmt.Fprintf(c, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", request.ID, answer)
		case request.ID != nil && !silent:
			c.Close()
			return
		}
	}
}
