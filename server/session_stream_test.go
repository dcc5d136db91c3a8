package server

import (
	"context"
	"crypto"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/server/datadir"
	"github.com/parley-run/parley/server/issuer"
	"github.com/parley-run/parley/server/issuer/issuertest"
)

// tape is the answer of a stream, as it comes.
type tape struct {
	mu     sync.Mutex
	header http.Header
	status int
	text   strings.Builder
}

func (t *tape) Header() http.Header              { return t.header }
func (t *tape) WriteHeader(status int)           { t.status = status }
func (t *tape) FlushError() error                { return nil }
func (t *tape) SetWriteDeadline(time.Time) error { return nil }

func (t *tape) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

func (t *tape) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// within asks a server that does not listen, as a page of it does.
func within(t *testing.T, s *Server, method, path, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := visit(method, body, change...)
	r.URL.Path = path
	r.Host = strings.TrimPrefix(s.URL(), "http://")
	r.Header.Set("Origin", s.URL())
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, r)
	return w
}

// C-31.8, SSE-57: a stream that was opened with a cookie alone, as a browser's
// EventSource does, ends when its session is logged out, when the token that
// opened it is revoked, and when its JWT is over, within 30 s and some; until then
// it goes on.
func TestSSE57StreamEndsWithSession(t *testing.T) {
	a := issuertest.New("https://login.example.org")
	key := issuertest.NewKey(t)
	a.Publish(map[string]crypto.Signer{"k": key})
	own := func(t *testing.T, s *Server) string {
		secret, err := datadir.ReadToken(s.Directory().OwnTokenFile())
		if err != nil {
			t.Fatal(err)
		}
		return secret.Reveal()
	}
	for name, test := range map[string]struct {
		bearer func(t *testing.T, s *Server) string
		end    func(t *testing.T, s *Server, cookie string)
	}{
		"logged out": {own, func(t *testing.T, s *Server, cookie string) {
			if got := within(t, s, "DELETE", "/session", "", carrying(cookie)); got.Code != http.StatusNoContent {
				t.Errorf("DELETE: %d %s", got.Code, got.Body)
			}
		}},
		"token revoked": {own, func(t *testing.T, s *Server, _ string) {
			tokens, err := s.Directory().Tokens()
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Directory().RevokeToken(t.Context(), tokens[0].ID); err != nil {
				t.Fatal(err)
			}
		}},
		"JWT over": {func(t *testing.T, s *Server) string {
			return a.Sign(t, "k", key, map[string]any{"exp": time.Now().Add(2 * time.Minute).Unix()})
		}, func(*testing.T, *Server, string) { time.Sleep(2 * time.Minute) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.config.Settings.OIDC, w.config.issuers = &issuer.Config{Issuer: a.URL, Audience: "parley"}, a
				s, err := New(t.Context(), w.config)
				if err != nil {
					t.Fatal(err)
				}
				stopped, stop := context.WithCancel(t.Context())
				stop()
				defer s.Run(stopped)
				bearer := test.bearer(t, s)
				entered := within(t, s, "POST", "/session", "{}", bearing(bearer))
				cookie, _, _ := strings.Cut(entered.Header().Get("Set-Cookie"), ";")
				begun := within(t, s, "POST", "/v1/conversations", "{}", carrying(cookie))
				id, _, _ := strings.Cut(strings.TrimPrefix(begun.Body.String(), `{"id":"`), `"`)
				if entered.Code != 201 || begun.Code != 201 {
					t.Fatalf("POST /session: %d %s, then a conversation: %d %s", entered.Code, entered.Body, begun.Code, begun.Body)
				}

				r := httptest.NewRequest("GET", s.URL()+"/v1/conversations/"+id+"/events", nil).WithContext(t.Context())
				carrying(cookie)(r)
				r.Header.Set("Sec-Fetch-Site", "same-origin")
				stream, done := &tape{header: http.Header{}}, make(chan struct{})
				go func() {
					defer close(done)
					s.http.Handler.ServeHTTP(stream, r)
				}()
				time.Sleep(time.Minute)
				synctest.Wait()
				if stream.status != 200 || strings.Contains(stream.String(), "event: error") {
					t.Fatalf("after a minute: %d %s", stream.status, stream)
				}
				test.end(t, s, cookie)
				ended := time.Now()
				<-done
				if took := time.Since(ended); took > 31*time.Second {
					t.Errorf("it goes on for %v", took)
				}
				if !strings.HasSuffix(stream.String(), "event: error\ndata: {\"error\":\"unauthorized\"}\n\n") {
					t.Errorf("it ends with %q", stream)
				}
				for _, secret := range []string{bearer, cookie[strings.Index(cookie, "=")+1:]} {
					if strings.Contains(w.log.String(), secret) {
						t.Errorf("a secret is in the log:\n%s", w.log)
					}
				}
			})
		})
	}
}
