package mcp

import (
	"context"
	"errors"
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
		attempts := 0
		s.dial = func() (*link, error) {
			attempts++
			return nil, errors.New("nobody is there")
		}
		s.Start()
		<-time.After(time.Minute)
		synctest.Wait()
		first := attempts
		<-time.After(time.Hour)
		s.Close()
		if first < 5 || first > 10 || attempts-first < 45 || attempts-first > 80 {
			t.Errorf("%d attempts in the first minute and %d in an hour, want about 7 and one a minute", first, attempts-first)
		}
		if n := strings.Count(log.String(), "away"); n != 1 {
			t.Errorf("the log says %d times that it is away:\n%s", n, log.String())
		}
	})
}

// piped is a way to a peer within the process, with the number of cuts.
func piped(answer func(io.ReadWriteCloser)) (dial func() (*link, error), cuts *atomic.Int32) {
	cuts = new(atomic.Int32)
	return func() (*link, error) {
		here, there := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			answer(there)
		}()
		return &link{transport: &sdk.IOTransport{Reader: here, Writer: here}, cut: sync.OnceFunc(func() {
			cuts.Add(1)
			here.Close()
			there.Close()
			<-done
		})}, nil
	}, cuts
}

// A server that takes everything in and never says a word is given up after its
// time, and looked for again.
func TestNoIntroduction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log locked
		s, err := New(Config{Name: "mute", URL: "http://127.0.0.1:1/", Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		var cuts *atomic.Int32
		s.dial, cuts = piped(func(c io.ReadWriteCloser) { _, _ = io.Copy(io.Discard, c) })
		s.Start()
		<-time.After(10 * time.Minute)
		s.Close()
		if n := cuts.Load(); n < 8 {
			t.Errorf("given up %d times in ten minutes, want about nine times", n)
		}
		if !strings.Contains(log.String(), "did not introduce itself") {
			t.Errorf("the log does not say why:\n%s", log.String())
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
		met := 0
		s.dial, _ = piped(func(c io.ReadWriteCloser) {
			met++
			if met > 1 {
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
		if met == 1 && len(s.Offers()) > 0 {
			t.Error("the tools of a server that does not answer are still there")
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if len(s.Offers()) == 0 || met != 2 {
			t.Errorf("%d tools after the server was met %d times, want them back", len(s.Offers()), met)
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
