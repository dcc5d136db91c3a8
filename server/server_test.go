package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/journal/sqlite"
	"github.com/parley-run/parley/server/datadir"
)

// C-1.12: a first start makes keys and a token, a conversation is held over
// HTTP, and the next start goes on with it.
func TestFirstAndSecondStart(t *testing.T) {
	w := newWorld(t)
	first := w.start()
	if !first.First() || !first.Local() {
		t.Errorf("First, Local = %t, %t, want a first start on loopback", first.First(), first.Local())
	}
	id, err := first.me().Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := say(t, first.me(), id, "hello"); got.Status != conversation.StatusComplete || got.Text == "" {
		t.Errorf("the answer is %+v, want one that is complete", got)
	}
	if url, ok, err := first.Directory().Address(); url != first.URL() || !ok || err != nil {
		t.Errorf("Address() = %q, %t, %v, want %q", url, ok, err, first.URL())
	}
	first.end()
	if first.Directory().Held() {
		t.Error("a stopped server holds its directory")
	}
	if _, err := os.Stat(filepath.Join(w.config.Data, "address")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a clean stop leaves the address: %v", err)
	}

	second := w.start()
	defer second.end()
	if second.First() {
		t.Error("First() = true at the second start")
	}
	if got := say(t, second.me(), id, "hello"); got.Turn != 2 {
		t.Errorf("the answer after a restart is of turn %d, want 2", got.Turn)
	}
}

// C-31.1, C-31.9, check 5: who has no token, or one that was revoked, is refused; tokens
// made beside the running server count at once.
func TestTokens(t *testing.T) {
	w := newWorld(t)
	s := w.start()
	defer s.end()
	get := func(header ...string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/v1/conversations", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header["Authorization"] = header
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	token, secret, err := s.Directory().CreateToken(t.Context(), Owner)
	if err != nil {
		t.Fatal(err)
	}
	good := secret.Reveal()
	for _, tt := range []struct {
		header []string
		want   int
	}{
		{nil, 401},
		{[]string{""}, 401},
		{[]string{"Basic " + good}, 401},
		{[]string{good}, 401},
		{[]string{"Bearer"}, 401},
		{[]string{"Bearer " + good + "x"}, 401},
		{[]string{"Bearer " + good, "Bearer " + good}, 401},
		{[]string{"Bearer " + good}, 200},
		{[]string{"bearer  " + good}, 200},
	} {
		if got := get(tt.header...); got != tt.want {
			t.Errorf("GET with Authorization %d × %.7q is %d, want %d", len(tt.header), tt.header, got, tt.want)
		}
	}
	if err := s.Directory().RevokeToken(t.Context(), token.ID); err != nil {
		t.Fatal(err)
	}
	if got := get("Bearer " + good); got != 401 {
		t.Errorf("GET with a revoked token is %d, want 401", got)
	}
	if err := os.WriteFile(filepath.Join(w.config.Data, "tokens"), []byte("damaged\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := get("Bearer " + good); got != 401 {
			t.Errorf("GET with damaged tokens is %d, want 401", got)
		}
	}
	if n := strings.Count(w.log.String(), "the tokens cannot be read"); n != 1 {
		t.Errorf("damaged tokens are logged %d times, want once", n)
	}
	if strings.Contains(w.log.String(), good) {
		t.Error("a token is in the log")
	}
}

// Two servers on one directory: the second is told where the first runs.
func TestAlreadyRunning(t *testing.T) {
	w := newWorld(t)
	first := w.start()
	defer first.end()
	for _, listen := range []string{"127.0.0.1:0", strings.TrimPrefix(first.URL(), "http://")} {
		config := w.config
		config.Settings.Listen = listen
		_, err := New(t.Context(), config)
		if running, ok := errors.AsType[*RunningError](err); !ok || running.URL != first.URL() {
			t.Errorf("New on %s = %v, want a RunningError with %s", listen, err, first.URL())
		}
	}
	if _, err := first.me().List(t.Context(), "", 0); err != nil {
		t.Errorf("the first server no longer answers: %v", err)
	}
}

// Of two servers that are started at once on a new directory one runs, and the
// other is told where.
func TestTwoStartsAtOnce(t *testing.T) {
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	ends := make(chan error, 2)
	for range 2 {
		go func() {
			s, err := New(ctx, w.config)
			if err == nil {
				err = s.Run(ctx)
			}
			ends <- err
		}()
	}
	running, ok := errors.AsType[*RunningError](<-ends)
	if !ok {
		t.Fatal("the first to end is not told of the other")
	}
	dir, err := datadir.Existing(w.config.Data)
	if err != nil {
		t.Fatal(err)
	}
	if url, ok, err := dir.Address(); url != running.URL || !ok || err != nil {
		t.Errorf("Address() = %q, %t, %v, want %q", url, ok, err, running.URL)
	}
	if tokens, err := dir.Tokens(); len(tokens) != 1 || err != nil {
		t.Errorf("Tokens() = %d, %v, want the one of the first start", len(tokens), err)
	}
	stop()
	if err := <-ends; err != nil {
		t.Errorf("the one that ran ends with %v", err)
	}
}

// A holder that does not answer is named.
func TestHeld(t *testing.T) {
	w := newWorld(t)
	dir, err := datadir.Open(w.config.Data)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := dir.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = New(ctx, w.config)
	if held, ok := errors.AsType[*datadir.HeldError](err); !ok || held.PID != os.Getpid() || !strings.Contains(err.Error(), "--data") {
		t.Errorf("New on a held directory = %v, want a HeldError with process %d and what to do", err, os.Getpid())
	}
}

// What cannot work is refused with what, where and what to do, and leaves no
// trace.
func TestRefusals(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	tests := map[string]struct {
		change func(*Config)
		want   []string
	}{
		"port in use":      {func(c *Config) { c.Settings.Listen = taken.Addr().String() }, []string{taken.Addr().String(), "address already in use", "--listen 127.0.0.1:0"}},
		"no address":       {func(c *Config) { c.Settings.Listen = "nonsense" }, []string{"nonsense", "--listen"}},
		"unknown model":    {func(c *Config) { c.Settings.Model = "gpt" }, []string{`unknown model "gpt"`, "--model"}},
		"no script":        {func(c *Config) { c.Settings.Model = "script:none.txt" }, []string{"none.txt", "no such file"}},
		"setting too low":  {func(c *Config) { c.Settings.RotateEveryTurns = -1 }, []string{"configuration: setting rotate_every_turns is -1"}},
		"settings at odds": {func(c *Config) { c.Settings.MaxTurnChars = 1 << 24 }, []string{"configuration: ", "max_turn_chars 16777216"}},
		"no directory":     {func(c *Config) { c.Data = "" }, []string{"data directory"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			config := w.config
			tt.change(&config)
			_, err := New(t.Context(), config)
			if err == nil {
				t.Fatal("New gives no error")
			}
			for _, want := range append(tt.want, "") {
				if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("New = %v, want one line with %q", err, want)
				}
			}
			if _, err := os.Stat(w.config.Data); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a refused start has made the data directory: %v", err)
			}
		})
	}
}

// C-11.4: a damaged key file, or database, stops a start; nothing is written
// over it, and the directory is free again.
func TestDamagedDirectory(t *testing.T) {
	const key = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE\n"
	damaged := strings.Repeat("damaged ", 2000)
	tests := map[string]struct {
		files map[string]string
		want  []string
	}{
		"a key of wrong length":   {map[string]string{"key": "c2hvcnQ\n"}, []string{"key, line 1: 5 bytes"}},
		"a damaged database":      {map[string]string{"key": key, "parley.db": damaged}, []string{"parley.db", "damaged"}},
		"a journal without a key": {map[string]string{"parley.db": damaged}, []string{"key is missing beside a journal", "restore"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if err := os.Mkdir(w.config.Data, 0o700); err != nil {
				t.Fatal(err)
			}
			for file, text := range tt.files {
				if err := os.WriteFile(filepath.Join(w.config.Data, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := New(t.Context(), w.config)
			if err == nil {
				t.Fatal("New gives no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("New = %v, want one line with %q", err, want)
				}
			}
			for file, text := range tt.files {
				if data, err := os.ReadFile(filepath.Join(w.config.Data, file)); string(data) != text || err != nil {
					t.Errorf("%s was changed, %v", file, err)
				}
			}
			dir, err := datadir.Open(w.config.Data)
			if err != nil {
				t.Fatal(err)
			}
			if dir.Held() {
				t.Error("a refused start holds the directory")
			}
			if files, err := filepath.Glob(filepath.Join(w.config.Data, "*")); len(files) != len(tt.files)+1 || err != nil {
				t.Errorf("the directory holds %q, %v, want what it held and the lock", files, err)
			}
		})
	}
}

// A journal that fails takes the server with it: it says unavailable, then Run
// ends with the error.
func TestJournalFails(t *testing.T) {
	w := newWorld(t)
	store := journaltest.Wrap(memory.New())
	w.config.open = func(context.Context, string, sqlite.Config) (journal.Store, error) { return store, nil }
	s := w.start()
	id, err := s.me().Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store.PoisonBefore(1)
	if err := s.me().Close(t.Context(), id); !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("Close = %v, want ErrUnavailable", err)
	}
	if answer, err := http.Get(s.URL() + "/readyz"); err != nil || answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("GET /readyz = %v, %v, want 503", answer, err)
	}
	err = <-s.done
	if !errors.Is(err, journal.ErrPoisoned) {
		t.Errorf("Run = %v, want ErrPoisoned", err)
	}
	for _, want := range []string{s.Directory().Database(), "start the server again"} {
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Run = %v, want one line with %q", err, want)
		}
	}
	if s.Directory().Held() {
		t.Error("the failed server holds its directory")
	}
}

// A stop tells every stream to come back, and ends.
func TestStopEndsStreams(t *testing.T) {
	w := newWorld(t)
	s := w.start()
	id, err := s.me().Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var last client.Event
	for event, err := range s.me().Events(t.Context(), id, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if last = event; event.Kind == client.Status {
			s.stop()
		}
	}
	if last.Kind != client.Reconnect {
		t.Errorf("the stream ends with %q, want %q", last.Kind, client.Reconnect)
	}
	if err := <-s.done; err != nil {
		t.Errorf("Run = %v", err)
	}
}

// SSE-2: a stream outlives the time that a request may take to be read.
func TestStreamOutlivesReadTimeout(t *testing.T) {
	w := newWorld(t)
	s, err := New(t.Context(), w.config)
	if err != nil {
		t.Fatal(err)
	}
	s.http.ReadTimeout, s.http.ReadHeaderTimeout = 100*time.Millisecond, 100*time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	r := &running{Server: s, t: t, stop: stop, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx) }()
	defer r.end()
	id, err := r.me().Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for event, err := range r.me().Events(t.Context(), id, nil) {
		if err != nil {
			t.Fatalf("the stream ends with %v", err)
		}
		if event.Kind == client.Status {
			<-time.After(300 * time.Millisecond) // real sockets know no virtual time
			if _, err := r.me().Send(t.Context(), id, conversation.Message{Text: "hello"}); err != nil {
				t.Fatal(err)
			}
		}
		if event.Kind == client.Message {
			return
		}
	}
	t.Error("the stream ends without the message")
}

func TestURL(t *testing.T) {
	w := newWorld(t)
	for listen, want := range map[string]string{
		"0.0.0.0:0": "http://127.0.0.1:", ":0": "http://127.0.0.1:", "127.0.0.1:0": "http://127.0.0.1:", "localhost:0": "http://127.0.0.1:",
	} {
		listener, err := net.Listen("tcp", listen)
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{listener: listener, log: w.config.Log}
		if got := s.URL(); !strings.HasPrefix(got, want) {
			t.Errorf("URL() of %s = %q, want %q and a port", listen, got, want)
		}
		if got := s.Local(); got != (listen == "127.0.0.1:0" || listen == "localhost:0") {
			t.Errorf("Local() of %s = %t", listen, got)
		}
		listener.Close()
	}
}
