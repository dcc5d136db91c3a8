package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model/script"
)

// world is a whole conversation product on a store in memory. The agent repeats
// what is said to it.
type world struct {
	t       testing.TB
	store   *journaltest.Store
	rt      *kernel.Runtime
	client  *conversation.Client
	gateway *Gateway
	shared  *conversation.Shared // nil: conversations have one owner
	handler http.Handler         // the gateway, exchanges held against the contract

	mu       sync.Mutex
	logged   bytes.Buffer
	reported map[string]error // by errorId
}

// Write is where the world's log goes.
func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.logged.Write(p)
}

func (w *world) log() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.logged.String()
}

// reports are the errors that OnError was told.
func (w *world) reports() map[string]error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.reported)
}

const tokens = "ann@acme bob@acme ann@evil"

// byToken takes "Bearer actor@tenant" for who it says.
func byToken(r *http.Request) (identity.Principal, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || !strings.Contains(tokens, token) {
		return identity.Principal{}, errors.New("no such token")
	}
	actor, tenant, _ := strings.Cut(token, "@")
	return identity.Principal{Identity: identity.Identity{Tenant: identity.Some(tenant), Actor: actor}}, nil
}

var ann = &identity.Principal{Identity: identity.Identity{Tenant: identity.Some("acme"), Actor: "ann"}}

func ownerScoped(t testing.TB) kernel.Policy {
	t.Helper()
	policy, err := kernel.ExecutionAccessPolicy(map[kernel.Operation]kernel.Scope{
		kernel.OpQuery: kernel.ScopeOwner, kernel.OpSend: kernel.ScopeOwner,
		kernel.OpCancel: kernel.ScopeOwner, kernel.OpResume: kernel.ScopeOwner,
	})
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// newWorld makes a world with changes to its runtime and its gateway.
func newWorld(t testing.TB, change ...func(*kernel.Config, *Config)) *world {
	t.Helper()
	return newWorldOn(t, journaltest.Wrap(memory.New()), "otherwise\n  reply", nil, change...)
}

// newLiveWorld makes a world with live words, whose agent plays a script, and
// where messages cut in.
func newLiveWorld(t testing.TB, text string) *world {
	t.Helper()
	return newWorldOn(t, journaltest.Wrap(memory.New()), text, conversation.NewHub(conversation.HubConfig{}))
}

func newWorldOn(t testing.TB, store *journaltest.Store, text string, hub *conversation.Hub, change ...func(*kernel.Config, *Config)) *world {
	t.Helper()
	return newWorldOf(t, store, text, hub, nil, change...)
}

// newWorldOf makes a world in which conversations may be shared, unless shared is
// nil.
func newWorldOf(t testing.TB, store *journaltest.Store, text string, hub *conversation.Hub, shared *conversation.Shared, change ...func(*kernel.Config, *Config)) *world {
	t.Helper()
	w := &world{t: t, store: store, shared: shared, reported: map[string]error{}}
	log := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
	keys, err := conversation.NewKeys([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	played, err := script.Parse("world", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	dialogue := conversation.Config{
		Keys: keys, Hub: hub, Log: log, Agent: agent.Definition{ID: "test", Model: played, Log: log}, Shared: shared,
		Settings: conversation.Settings{RotateEveryTurns: 3, MaxWindowTurns: 4},
	}
	if shared != nil {
		dialogue.Agent.Tools = roomTools()
	}
	if hub != nil {
		dialogue.BargeIn = conversation.InboxBargeIn(w.store)
	}
	flow, err := conversation.NewFlow(dialogue)
	if err != nil {
		t.Fatal(err)
	}
	kernelConfig := kernel.Config{
		Store: w.store, Flows: flow.Kernels(), Effects: flow.Effects(), Log: log,
		Features: []kernel.Feature{kernel.Inbox, kernel.Continuations}, Policy: ownerScoped(t),
	}
	config := Config{
		Authenticate: byToken, Log: log, OnError: func(id string, err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.reported[id] = err
		},
		MaxStreamsPerCaller: DefaultMaxStreams, PostsPerMinute: 1e6, // but in the tests of these limits
	}
	for _, change := range change {
		change(&kernelConfig, &config)
	}
	if w.rt, err = kernel.New(kernelConfig); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.rt.Close)
	w.client, err = conversation.NewClient(conversation.ClientConfig{
		Runtime: w.rt, Keys: keys, Hub: hub, RuntimePolicyIsOwnerScoped: true, Shared: shared,
	})
	if err != nil {
		t.Fatal(err)
	}
	config.Client = w.client
	if w.gateway, err = New(config); err != nil {
		t.Fatal(err)
	}
	w.handler = w.gateway
	if name := t.Name(); !strings.HasPrefix(name, "TestMany") && !strings.HasPrefix(name, "Benchmark") { // of these the time counts
		w.handler = contract.Watch(w.gateway, func(err error) { t.Errorf("docs/openapi.yaml: %v", err) })
	}
	return w
}

// serve puts the gateway behind a real server.
func (w *world) serve(change ...func(*http.Server)) *httptest.Server {
	server := httptest.NewUnstartedServer(w.handler)
	for _, change := range change {
		change(server.Config)
	}
	server.Start()
	w.t.Cleanup(server.Close)
	return server
}

// open is how many streams are open.
func (w *world) open() int {
	s := &w.gateway.streams
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// start begins a conversation of ann's, past the gateway.
func (w *world) start() string {
	w.t.Helper()
	id, err := w.client.Start(context.Background(), ann, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// say sends a turn of ann's, past the gateway, and waits for its reply.
func (w *world) say(id string, texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		end := conversation.Cursor{Generation: 1 << 30}
		page, err := w.client.History(context.Background(), ann, id, conversation.HistoryOptions{Cursor: &end})
		if err != nil {
			w.t.Fatal(err)
		}
		if _, err := w.client.SendTurn(context.Background(), ann, id, conversation.Message{Text: text}); err != nil {
			w.t.Fatal(err)
		}
		heard := false
		for record, err := range w.client.Follow(context.Background(), ann, id, &page.Next) {
			if err != nil {
				w.t.Fatal(err)
			}
			heard = heard || record.Role == conversation.RoleUser && record.Text == text
			if heard && record.Role == conversation.RoleAssistant {
				break
			}
		}
	}
}

// end closes a conversation of ann's and waits for its end.
func (w *world) end(id string) {
	w.t.Helper()
	if err := w.client.Close(context.Background(), ann, id); err != nil {
		w.t.Fatal(err)
	}
	for _, err := range w.client.Follow(context.Background(), ann, id, nil) {
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// request makes a request by a token, with a JSON body unless it is empty.
func request(method, url, token, body string) *http.Request {
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		panic(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if method == http.MethodPost || method == http.MethodDelete {
		r.Header.Set("Content-Type", "application/json")
		r.Body = io.NopCloser(strings.NewReader(body))
		r.ContentLength = int64(len(body))
	}
	return r
}

// raw is a connection to a server, and a reader of what comes over it.
func raw(t testing.TB, server *httptest.Server) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, bufio.NewReader(conn)
}

// ask sends a request to the handler itself.
func (w *world) ask(r *http.Request) *httptest.ResponseRecorder {
	w.t.Helper()
	got := httptest.NewRecorder()
	w.handler.ServeHTTP(got, r)
	return got
}

// sse is one event as a client sees it.
type sse struct{ name, id, retry, data string }

// reader reads events as the WHATWG says a browser does.
type reader struct {
	lines *bufio.Reader
	skipN bool // the last line ended with CR
}

func newReader(body io.Reader) *reader { return &reader{lines: bufio.NewReader(body)} }

// line reads a line that ends with LF, CR or CRLF.
func (r *reader) line() (string, error) {
	var line []byte
	for {
		c, err := r.lines.ReadByte()
		if err != nil {
			return "", err
		}
		if c == '\n' && r.skipN {
			r.skipN = false
			continue
		}
		r.skipN = c == '\r'
		if c == '\r' || c == '\n' {
			return string(line), nil
		}
		line = append(line, c)
	}
}

// next returns the next event that has data; what the stream cuts off is none.
func (r *reader) next() (sse, error) {
	var e sse
	for {
		line, err := r.line()
		if err != nil {
			return sse{}, err
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && e.data != "":
			return e, nil
		case line == "":
			e = sse{}
		case name == "event":
			e.name = value
		case name == "id":
			e.id = value
		case name == "retry":
			e.retry = value
		case name == "data":
			e.data += value
		}
	}
}

// pipeListener listens without a network, so that a server can live in a bubble
// of virtual time.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) dial() net.Conn {
	client, server := net.Pipe()
	l.conns <- server
	return client
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }
