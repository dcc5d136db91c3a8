// Package issuertest has a small OpenID Connect issuer for tests.
//
// Call [New], then [Authority.Publish] the keys that it shows, and [Authority.Sign]
// with them. It keeps the protocol, and does whatever else it is told to.
package issuertest

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

// Authority is a small OpenID Connect issuer. It is an HTTP handler, and a
// transport that leads to itself, so that a test with virtual time can ask it.
type Authority struct {
	URL string // as it calls itself

	mu     sync.Mutex
	keys   map[string]crypto.Signer // published, by kid
	asked  map[string]int           // questions, by path
	answer http.HandlerFunc         // in place of its own answers, if not nil
	broken error                    // of the network
}

// New makes an issuer that calls itself so. It shows no keys yet.
func New(url string) *Authority {
	return &Authority{URL: url, keys: map[string]crypto.Signer{}, asked: map[string]int{}}
}

// NewKey makes a key for ES256.
func NewKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Publish makes these the keys that are published.
func (a *Authority) Publish(keys map[string]crypto.Signer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys = keys
}

// Answers puts other answers in place of its own; nil brings those back.
func (a *Authority) Answers(answer http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = answer
}

// Cut breaks the network; nil mends it.
func (a *Authority) Cut(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken = err
}

// Questions is how often something was asked for, by path.
func (a *Authority) Questions(path string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[path]
}

// Where the documents are.
const (
	DiscoveryPath = "/.well-known/openid-configuration"
	KeysPath      = "/keys"
)

// ServeHTTP answers as an issuer does.
func (a *Authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.asked[r.URL.Path]++
	answer, keys := a.answer, a.keys
	a.mu.Unlock()
	switch {
	case answer != nil:
		answer(w, r)
	case r.URL.Path == DiscoveryPath:
		write(w, map[string]any{"issuer": a.URL, "jwks_uri": a.URL + KeysPath, "id_token_signing_alg_values_supported": []string{"ES256"}})
	case r.URL.Path == KeysPath:
		write(w, map[string]any{"keys": published(keys)})
	default:
		http.NotFound(w, r)
	}
}

func write(w http.ResponseWriter, document any) {
	data, err := json.Marshal(document)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data)
}

// RoundTrip asks it.
func (a *Authority) RoundTrip(r *http.Request) (*http.Response, error) {
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

// JWT is a JWT in the making.
type JWT struct {
	Alg, KID string
	Claims   any // or the text of them
	Signer   crypto.Signer
}

// Claims are those of a good JWT for an hour, with changes; nil takes one away.
func (a *Authority) Claims(changes map[string]any) map[string]any {
	claims := map[string]any{"iss": a.URL, "aud": "parley", "sub": "ann", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
	for name, value := range changes {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	return claims
}

// Sign makes a good JWT, with changes of its claims.
func (a *Authority) Sign(t *testing.T, kid string, signer crypto.Signer, changes map[string]any) string {
	t.Helper()
	return JWT{Alg: "ES256", KID: kid, Claims: a.Claims(changes), Signer: signer}.Text(t)
}

// Text is the JWT.
func (j JWT) Text(t *testing.T) string {
	t.Helper()
	claims, ok := j.Claims.(string)
	if !ok {
		data, err := json.Marshal(j.Claims)
		if err != nil {
			t.Fatal(err)
		}
		claims = string(data)
	}
	signed := encode(fmt.Appendf(nil, `{"alg":%q,"kid":%q,"typ":"JWT"}`, j.Alg, j.KID)) + "." + encode([]byte(claims))
	return signed + "." + encode(j.signature(t, signed))
}

func (j JWT) signature(t *testing.T, signed string) []byte {
	t.Helper()
	sum := sha256.Sum256([]byte(signed))
	switch {
	case j.Alg == "none":
		return nil
	case strings.HasPrefix(j.Alg, "HS"): // with what everybody knows
		public, err := x509.MarshalPKIXPublicKey(j.Signer.Public())
		if err != nil {
			t.Fatal(err)
		}
		mac := hmac.New(sha256.New, public)
		io.WriteString(mac, signed)
		return mac.Sum(nil)
	}
	if key, ok := j.Signer.(*ecdsa.PrivateKey); ok {
		r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	}
	signature, err := j.Signer.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}
