package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/journal/sqlite"
)

// The metrics are read from this machine where nothing can stand in front, and
// by the owner's token; a stranger is told which token (C-32.5).
func TestMetricsReaders(t *testing.T) {
	who := func(r *http.Request) (identity.Principal, error) {
		actor := r.Header.Get("Authorization")
		if actor == "" {
			return identity.Principal{}, errors.New("nobody")
		}
		principal := identity.Principal{Identity: identity.Identity{Actor: actor}}
		if actor == "me@acme" {
			principal.Identity = identity.Identity{Actor: "me", Tenant: identity.Some("acme")}
		}
		return principal, nil
	}
	shown := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "metrics") })
	for _, test := range []struct {
		settings               Settings
		method, peer, host, by string
		header                 string
		want                   int
	}{
		{peer: "127.0.0.1:5", host: "127.0.0.1:7275", want: 200},
		{peer: "127.0.0.1:5", host: "localhost", want: 200},
		{peer: "[::1]:5", host: "[::1]:7275", want: 200},
		{peer: "[::ffff:127.0.0.1]:5", host: "localhost:7275", method: "HEAD", want: 200},
		{peer: "127.0.0.1:5", host: "localhost", method: "POST", want: 405},
		{peer: "192.0.2.1:5", host: "localhost", want: 401},
		{peer: "192.0.2.1:5", host: "chat.example.org", by: "me", want: 200},
		{peer: "192.0.2.1:5", host: "chat.example.org", by: "me", method: "DELETE", want: 405},
		{peer: "192.0.2.1:5", host: "localhost", by: "ann", want: 401},
		{peer: "192.0.2.1:5", host: "localhost", by: "me@acme", want: 401},
		{peer: "pipe", host: "localhost", want: 401},
		{peer: "127.0.0.1:5", host: "rebound.example:7275", want: 401},
		{peer: "127.0.0.1:5", host: "", want: 401},
		{peer: "127.0.0.1:5", host: "localhost", header: "X-Forwarded-For", want: 401},
		{peer: "127.0.0.1:5", host: "localhost", header: "Forwarded", want: 401},
		{peer: "127.0.0.1:5", host: "localhost", header: "Via", by: "me", want: 200},
		{settings: Settings{TrustedProxies: []string{"127.0.0.1"}}, peer: "127.0.0.1:5", host: "localhost", want: 401},
		{settings: Settings{TrustedProxies: []string{"10.0.0.0/8"}}, peer: "127.0.0.1:5", host: "localhost", want: 200},
		{settings: Settings{PublicURL: "https://chat.example.org"}, peer: "127.0.0.1:5", host: "localhost", want: 401},
		{settings: Settings{AllowedHosts: []string{"parley.internal"}}, peer: "127.0.0.1:5", host: "localhost", want: 401},
	} {
		d, err := newDoor(test.settings)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.RemoteAddr, r.Host = test.peer, test.host
		if test.method != "" {
			r.Method = test.method
		}
		if test.by != "" {
			r.Header.Set("Authorization", test.by)
		}
		if test.header != "" {
			r.Header.Set(test.header, "198.51.100.7")
		}
		got := httptest.NewRecorder()
		behindProxies(d.proxies, d.metricsFor(Owner, who, shown)).ServeHTTP(got, r)
		if got.Code != test.want || (got.Body.String() == "metrics") != (test.want == 200) {
			t.Errorf("%+v: %d %q", test, got.Code, got.Body)
		}
		if got.Header().Get("X-Content-Type-Options") != "nosniff" || (test.want == 401) != (got.Header().Get("WWW-Authenticate") == "Bearer") {
			t.Errorf("%+v: header %v", test, got.Header())
		}
	}
}

// scrape reads the metrics of a server: each series with its value.
func (r *running) scrape() map[string]string {
	r.t.Helper()
	got, err := http.Get(r.URL() + "/metrics")
	if err != nil {
		r.t.Fatal(err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode != 200 {
		r.t.Fatalf("GET /metrics = %d %v", got.StatusCode, err)
	}
	series := map[string]string{}
	for line := range strings.Lines(string(body)) {
		if at := strings.LastIndexByte(line, ' '); !strings.HasPrefix(line, "#") {
			series[line[:at]] = strings.TrimSpace(line[at:])
		}
	}
	return series
}

// What a server does is counted, and whatever strangers, and those with a token,
// send, no series is made by it (C-32.12).
func TestMetrics(t *testing.T) {
	w := newWorld(t)
	w.config.Version = "v1.2.3"
	s := w.start()
	defer s.end()
	before := s.scrape()
	id, err := s.me().Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	say(t, s.me(), id, "hello")
	edit := conversation.Message{Text: "instead", EditOf: 99}
	if _, err := s.me().Send(t.Context(), id, edit); err != nil {
		t.Fatal(err)
	}
	say(t, s.me(), id, "hello again") // behind the rejection
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i := range 50 {
		fmt.Fprintf(conn, "QWERTZ%d /v1/QWERTZ%d HTTP/1.1\r\nHost: QWERTZ%d\r\nOrigin: http://QWERTZ%d\r\nAuthorization: Bearer QWERTZ%d\r\n\r\n", i, i, i, i, i)
	}
	fmt.Fprint(conn, "GET /v1/conversations HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Fatal(err)
	}
	after := s.scrape()
	if diff := cmp.Diff(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after))); diff != "" {
		t.Errorf("the set of series (-before +after):\n%s", diff)
	}
	for series, want := range map[string]string{
		`parley_turns_total{status="complete"}`:                                                    "2",
		`parley_turn_first_words_seconds_count`:                                                    "2",
		`parley_model_calls_total{outcome="whole"}`:                                                "2",
		`parley_messages_rejected_total{reason="edit-invalid"}`:                                    "1",
		`parley_http_refused_total{status="401"}`:                                                  "1",
		`parley_http_refused_total{status="403"}`:                                                  "50",
		`parley_http_request_seconds_count{class="2xx",route="POST /v1/conversations"}`:            "1",
		`parley_http_request_seconds_count{class="2xx",route="POST /v1/conversations/{id}/turns"}`: "3",
		`parley_http_request_seconds_count{class="4xx",route="other"}`:                             "50",
		`parley_executions_hot`:                                                                    "1",
		`parley_executions_stuck`:                                                                  "0",
		`parley_messages_waiting`:                                                                  "0",
	} {
		if after[series] != want {
			t.Errorf("%s is %s, want %s", series, after[series], want)
		}
	}
	for _, series := range []string{
		"parley_commit_seconds_count", "parley_journal_events_total", "parley_stream_sent_bytes_total",
		`parley_stream_frames_total{event="message"}`, "go_goroutines", "process_open_fds",
	} {
		if after[series] == "" || after[series] == "0" {
			t.Errorf("%s is %q, want something", series, after[series])
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(after)), func(series string) bool {
		return strings.HasPrefix(series, "parley_build_info{") && strings.Contains(series, `version="v1.2.3"`)
	}) {
		t.Error("the version is not in the metrics")
	}
}

// docs/operations.md names every metric, and none that is not there.
func TestMetricsAreDocumented(t *testing.T) {
	w := newWorld(t)
	s := w.start()
	defer s.end()
	exported := map[string]bool{}
	for series := range s.scrape() {
		name, _, _ := strings.Cut(series, "{")
		if strings.HasPrefix(name, "parley_") {
			exported[regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")] = true
		}
	}
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Metrics\n")
	if !ok {
		t.Fatal("docs/operations.md has no section on metrics")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(parley_[a-z_]+)").FindAllStringSubmatch(section, -1) {
		documented[row[1]] = true
	}
	for _, named := range regexp.MustCompile(`parley_[a-z_]+`).FindAllString(section, -1) { // in an alert, say
		if !exported[regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(named, "")] {
			t.Errorf("docs/operations.md names %s, which there is not", named)
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(exported)), slices.Sorted(maps.Keys(documented))); diff != "" {
		t.Errorf("metrics (-exported +documented):\n%s", diff)
	}
}

// readiness asks a server's handler, past its listener, whether it takes work.
func (s *Server) readiness() int {
	got := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(got, httptest.NewRequest("GET", "/readyz", nil))
	return got.Code
}

// A server that is told to stop says that it is not ready before it says anything
// to its streams.
func TestNotReadyWhileDraining(t *testing.T) {
	w := newWorld(t)
	s := w.start()
	id, err := s.me().Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := s.readiness(); got != 200 {
		t.Errorf("/readyz of a server that runs is %d, want 200", got)
	}
	for event, err := range s.me().Events(t.Context(), id, nil) {
		if err != nil {
			t.Fatal(err)
		}
		switch event.Kind {
		case client.Status:
			s.stop()
		case client.Reconnect:
			if got := s.readiness(); got != 503 {
				t.Errorf("/readyz of a server that drains is %d, want 503", got)
			}
		}
	}
	if err := <-s.done; err != nil {
		t.Errorf("Run = %v", err)
	}
}

// waking is a store whose recovery waits.
type waking struct {
	journal.Store
	begun, release chan struct{}
}

func (s waking) List(ctx context.Context, space, prefix, after string, limit int, dir journal.Direction) ([]journal.Row, error) {
	select {
	case s.begun <- struct{}{}:
		<-s.release
	default:
	}
	return s.Store.List(ctx, space, prefix, after, limit, dir)
}

// Before what waits in the journal was woken, nobody is told that the server is
// ready: the connection waits.
func TestNotReadyBeforeRecovery(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Addr().String()
	taken.Close()
	w := newWorld(t)
	w.config.Settings.Listen = address
	store := waking{journaltest.Wrap(memory.New()), make(chan struct{}, 1), make(chan struct{})}
	w.config.open = func(context.Context, string, sqlite.Config) (journal.Store, error) { return store, nil }
	var s *Server
	made := make(chan error, 1)
	go func() {
		var err error
		s, err = New(t.Context(), w.config)
		made <- err
	}()
	asked := make(chan int, 1)
	ask := func() {
		got, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			asked <- 0
			return
		}
		got.Body.Close()
		asked <- got.StatusCode
	}
	<-store.begun
	go ask()
	select {
	case status := <-asked:
		t.Errorf("/readyz is %d before the recovery is done", status)
		go ask()
	case <-time.After(200 * time.Millisecond): // real sockets know no virtual time
	}
	close(store.release)
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r := &running{Server: s, t: t, stop: stop, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx) }()
	defer r.end()
	if status := <-asked; status != 200 {
		t.Errorf("/readyz is %d when the recovery is done, want 200", status)
	}
}
