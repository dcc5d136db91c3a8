package server

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// authority is a small OpenID Connect issuer. It is an HTTP handler, and a
// transport that leads to itself, so that a test with virtual time can ask it.
type authority struct {
	url string

	mu     sync.Mutex
	keys   map[string]crypto.Signer // published, by kid
	asked  map[string]int           // questions, by path
	answer http.HandlerFunc         // in place of its own answers, if not nil
	broken error                    // of the network
}

func newAuthority(url string) *authority {
	return &authority{url: url, keys: map[string]crypto.Signer{}, asked: map[string]int{}}
}

func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// publish makes these the keys that are published.
func (a *authority) publish(keys map[string]crypto.Signer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys = keys
}

// answers puts other answers in place of its own; nil brings those back.
func (a *authority) answers(answer http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = answer
}

// cut breaks the network; nil mends it.
func (a *authority) cut(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken = err
}

func (a *authority) questions(path string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[path]
}

const (
	discoveryPath = "/.well-known/openid-configuration"
	keysPath      = "/keys"
)

// ServeHTTP answers as an issuer does.
func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.asked[r.URL.Path]++
	answer, keys := a.answer, a.keys
	a.mu.Unlock()
	switch {
	case answer != nil:
		answer(w, r)
	case r.URL.Path == discoveryPath:
		respond(w, http.StatusOK, map[string]any{"issuer": a.url, "jwks_uri": a.url + keysPath, "id_token_signing_alg_values_supported": []string{"ES256"}})
	case r.URL.Path == keysPath:
		respond(w, http.StatusOK, map[string]any{"keys": published(keys)})
	default:
		http.NotFound(w, r)
	}
}

// RoundTrip asks it.
func (a *authority) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	broken := a.broken
	a.mu.Unlock()
	if broken != nil {
		return nil, broken
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	return w.Result(), nil
}

// published are keys as an issuer shows them.
func published(keys map[string]crypto.Signer) []map[string]string {
	all := []map[string]string{{"kty": "oct", "kid": "strange", "alg": "HS256", "k": encode([]byte("secret"))}}
	for kid, signer := range keys {
		switch key := signer.Public().(type) {
		case *ecdsa.PublicKey:
			point, err := key.Bytes()
			if err != nil {
				panic(err)
			}
			all = append(all, map[string]string{"kty": "EC", "crv": "P-256", "use": "sig", "kid": kid, "x": encode(point[1:33]), "y": encode(point[33:])})
		case *rsa.PublicKey:
			all = append(all, map[string]string{
				"kty": "RSA", "use": "sig", "kid": kid,
				"n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
			})
		}
	}
	return all
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// jwt is a JWT in the making.
type jwt struct {
	alg, kid string
	claims   any // or the text of them
	signer   crypto.Signer
}

// claims are those of a good JWT for an hour, with changes; nil takes one away.
func (a *authority) claims(changes map[string]any) map[string]any {
	claims := map[string]any{"iss": a.url, "aud": "parley", "sub": "ann", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
	for name, value := range changes {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	return claims
}

// sign makes a good JWT, with changes of its claims.
func (a *authority) sign(t *testing.T, kid string, signer crypto.Signer, changes map[string]any) string {
	t.Helper()
	return jwt{alg: "ES256", kid: kid, claims: a.claims(changes), signer: signer}.text(t)
}

// text is the JWT.
func (j jwt) text(t *testing.T) string {
	t.Helper()
	claims, ok := j.claims.(string)
	if !ok {
		data, err := json.Marshal(j.claims)
		if err != nil {
			t.Fatal(err)
		}
		claims = string(data)
	}
	signed := encode(fmt.Appendf(nil, `{"alg":%q,"kid":%q,"typ":"JWT"}`, j.alg, j.kid)) + "." + encode([]byte(claims))
	return signed + "." + encode(j.signature(t, signed))
}

func (j jwt) signature(t *testing.T, signed string) []byte {
	t.Helper()
	sum := sha256.Sum256([]byte(signed))
	switch {
	case j.alg == "none":
		return nil
	case strings.HasPrefix(j.alg, "HS"): // with what everybody knows
		public, err := x509.MarshalPKIXPublicKey(j.signer.Public())
		if err != nil {
			t.Fatal(err)
		}
		mac := hmac.New(sha256.New, public)
		io.WriteString(mac, signed)
		return mac.Sum(nil)
	}
	if key, ok := j.signer.(*ecdsa.PrivateKey); ok {
		r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	}
	signature, err := j.signer.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

var errNetwork = errors.New("no route")
