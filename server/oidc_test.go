package server

import (
	"crypto"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/server/issuer"
	"github.com/parley-run/parley/server/issuer/issuertest"
)

// C-31.1: a server starts while its issuer is down; static tokens work,
// JWTs do when the issuer is there, over a real network.
func TestServerWithIssuer(t *testing.T) {
	key := issuertest.NewKey(t)
	a := issuertest.New("")
	far := httptest.NewServer(a)
	defer far.Close()
	a.URL = far.URL
	a.Publish(map[string]crypto.Signer{"k": key})
	a.Answers(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "down", http.StatusServiceUnavailable) })
	w := newWorld(t)
	w.config.Settings.OIDC = &issuer.Config{Issuer: far.URL, Audience: "parley"}
	s := w.start()
	defer s.end()
	get := func(bearer string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/v1/conversations", nil)
		if err != nil {
			t.Fatal(err)
		}
		bearing(bearer)(r)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	raw := a.Sign(t, "k", key, nil)
	if got := get(raw); got != 401 {
		t.Errorf("a JWT while the issuer is down: %d, want 401", got)
	}
	if _, err := s.me().List(t.Context(), "", 0); err != nil {
		t.Errorf("a static token meanwhile: %v", err)
	}
	a.Answers(nil)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(time.Minute); get(raw) != 200; <-again.C {
		if time.Now().After(deadline) {
			t.Fatalf("the issuer is there, and its JWT is not taken:\n%s", w.log)
		}
	}
	if text := w.log.String(); strings.Count(text, "gives no answer") != 1 || strings.Count(text, "answers again") != 1 || strings.Contains(text, raw) {
		t.Errorf("the log is:\n%s", text)
	}
}

func TestReadIssuer(t *testing.T) {
	read := func(text string) (Settings, error) {
		path := filepath.Join(t.TempDir(), "parley.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadSettings(path)
	}
	got, err := read(`
[oidc]
issuer = "https://login.example.org"
audience = "parley"
actor_claim = "email"
tenant_claim = "org"
`)
	want := &issuer.Config{Issuer: "https://login.example.org", Audience: "parley", ActorClaim: "email", TenantClaim: "org"}
	if err != nil || !cmp.Equal(got.OIDC, want) {
		t.Errorf("ReadSettings = %+v, %v, want %+v", got.OIDC, err, want)
	}
	for name, test := range map[string]struct{ file, want string }{
		"no issuer":         {"\n[oidc]\naudience = \"sekrit\"\n", ":2:2: oidc.issuer: it is not set"},
		"no audience":       {"[oidc]\nissuer = \"https://sekrit.example\"\n", ":1:2: oidc.audience: it is not set"},
		"plain http":        {"[oidc]\nissuer = \"http://sekrit.example\"\naudience = \"a\"\n", ":2:1: oidc.issuer: an issuer is met by https"},
		"no address":        {"[oidc]\naudience = \"a\"\nissuer = \"sekrit\"\n", ":3:1: oidc.issuer: it is no address"},
		"a query":           {"[oidc]\naudience = \"a\"\nissuer = \"https://sekrit?x\"\n", ":3:1: oidc.issuer: it is no address"},
		"a user":            {"oidc.audience = \"a\"\noidc.issuer = \"https://sekrit@a\"\n", ":2:1: oidc.issuer: it is no address"},
		"in one line":       {"oidc = { issuer = \"https://sekrit\" }\n", ":1:1: oidc.audience: it is not set"},
		"one for both":      {"[oidc]\nissuer = \"https://a\"\naudience = \"a\"\ntenant_claim = \"sub\"\n", ":4:1: oidc.tenant_claim: it is the claim of the actor"},
		"unknown key":       {"[oidc]\nsecret = \"sekrit\"\n", `:2:1: unknown key "oidc.secret"; the keys of an issuer are issuer, audience, actor_claim, tenant_claim`},
		"wrong type":        {"[oidc]\nissuer = 31337\n", `:2:10: key "oidc.issuer" has a value of the wrong type`},
		"several audiences": {"[oidc]\naudience = [\"sekrit\"]\n", `:2:12: key "oidc.audience" has a value of the wrong type`},
	} {
		_, err := read(test.file)
		if err == nil || !strings.Contains(err.Error(), "parley.toml"+test.want) || strings.Contains(err.Error(), "sekrit") || strings.Contains(err.Error(), "31337") {
			t.Errorf("%s: ReadSettings = %v, want %q and no value", name, err, test.want)
		}
	}
	for _, local := range []string{"http://127.0.0.1:5556/dex", "http://localhost:5556", "http://[::1]:5556"} {
		if _, err := (issuer.Config{Issuer: local, Audience: "a"}).Check(); err != nil {
			t.Errorf("an issuer at %s: %v", local, err)
		}
	}
}
