package issuer

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/server/datadir"
	"github.com/parley-run/parley/server/issuer/issuertest"
)

// operator is whom no issuer may name.
var operator = identity.Identity{Actor: "me"}

var errNetwork = errors.New("no route")

// logged is a log that can be looked at.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write adds to the log.
func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// encode is a part of a JWT.
func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// trust makes an issuer that trusts an authority, and its log.
func trust(t *testing.T, a *issuertest.Authority, change func(*Config)) (*Issuer, *logged) {
	t.Helper()
	config := Config{Issuer: a.URL, Audience: "parley"}
	if change != nil {
		change(&config)
	}
	log := &logged{}
	i := New(config, operator, a, slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(i.Close)
	return i, log
}

// taken reports whether the issuer takes a JWT.
func taken(t *testing.T, i *Issuer, raw string) bool {
	t.Helper()
	_, err := i.Verify(t.Context(), raw)
	if err != nil && !errors.Is(err, ErrRefused) {
		t.Fatalf("Verify = %v, want ErrRefused", err)
	}
	return err == nil
}

// C-31.1, C-31.9: a JWT counts if the issuer has signed it, for this server, for
// now, and for somebody; whatever else is wrong is one refusal, and nothing of it
// is in the log.
func TestJWT(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := issuertest.New("https://login.example.org")
		good, other := issuertest.NewKey(t), issuertest.NewKey(t)
		rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		a.Publish(map[string]crypto.Signer{"k1": good, "k2": rsaKey})
		i, log := trust(t, a, nil)
		now := time.Now()
		text := func(claims string) string {
			return issuertest.JWT{Alg: "ES256", KID: "k1", Claims: claims, Signer: good}.Text(t)
		}
		with := func(name string, value any) string { return a.Sign(t, "k1", good, map[string]any{name: value}) }
		whole := with("sub", "ann")
		head, rest, _ := strings.Cut(whole, ".")
		claims, signature, _ := strings.Cut(rest, ".")
		for _, test := range []struct {
			name, raw string
			want      bool
		}{
			{"good", whole, true},
			{"RS256", issuertest.JWT{Alg: "RS256", KID: "k2", Claims: a.Claims(nil), Signer: rsaKey}.Text(t), true},
			{"one of several audiences", with("aud", []string{"other", "parley"}), true},
			{"over for less than a minute", with("exp", now.Add(-59*time.Second).Unix()), true},
			{"not yet valid by less than a minute", with("nbf", now.Add(59*time.Second).Unix()), true},
			{"a fraction of a second", with("exp", float64(now.Unix())+0.5), true},
			{"the longest name", with("sub", strings.Repeat("x", 256)), true},

			{"alg none", issuertest.JWT{Alg: "none", Claims: a.Claims(nil), Signer: good}.Text(t), false},
			{"alg none, with a signature", issuertest.JWT{Alg: "none", KID: "k1", Claims: a.Claims(nil)}.Text(t) + "AAAA", false},
			{"HS256 with the public key", issuertest.JWT{Alg: "HS256", KID: "k1", Claims: a.Claims(nil), Signer: good}.Text(t), false},
			{"HS256 with the issuer's own key of that kind", issuertest.JWT{Alg: "HS256", KID: "strange", Claims: a.Claims(nil), Signer: good}.Text(t), false},
			{"RS256 by the name of the other key", issuertest.JWT{Alg: "RS256", KID: "k1", Claims: a.Claims(nil), Signer: rsaKey}.Text(t), false},
			{"signed by another", a.Sign(t, "k1", other, nil), false},
			{"other claims beside the signature", head + "." + encode([]byte(`{"sub":"eve"}`)) + "." + signature, false},
			{"no signature", head + "." + claims + ".", false},
			{"JSON form", fmt.Sprintf(`{"protected":%q,"payload":%q,"signature":%q}`, head, claims, signature), false},
			{"three dots", whole + ".x", false},
			{"huge", with("pad", strings.Repeat("x", maxJWTBytes)), false},

			{"wrong issuer", with("iss", "https://login.example.org/"), false},
			{"no issuer", with("iss", nil), false},
			{"wrong audience", with("aud", "parley2"), false},
			{"no audience", with("aud", nil), false},
			{"over for a minute", with("exp", now.Add(-time.Minute).Unix()), false},
			{"no end", with("exp", nil), false},
			{"an end that is a text", with("exp", fmt.Sprint(now.Add(time.Hour).Unix())), false},
			{"an end beyond all ends", with("exp", 1e300), false},
			{"an end before all times", with("exp", -1e300), false},
			{"not yet valid", with("nbf", now.Add(61*time.Second).Unix()), false},
			{"a beginning that is no time", with("nbf", true), false},

			{"no actor", with("sub", nil), false},
			{"empty actor", with("sub", ""), false},
			{"actor of a wrong type", with("sub", []string{"ann"}), false},
			{"actor null", text(fmt.Sprintf(`{"iss":%q,"aud":"parley","exp":%d,"sub":null}`, a.URL, now.Unix())), false},
			{"actor too long", with("sub", strings.Repeat("x", 257)), false},
			{"actor not UTF-8", text(fmt.Sprintf("{\"iss\":%q,\"aud\":\"parley\",\"exp\":%d,\"sub\":\"\xff\"}", a.URL, now.Unix())), false},
			{"two actors", text(fmt.Sprintf(`{"iss":%q,"aud":"parley","exp":%d,"sub":"ann","sub":"bob"}`, a.URL, now.Unix())), false},
			{"actor in other letters", text(fmt.Sprintf(`{"iss":%q,"aud":"parley","exp":%d,"Sub":"ann"}`, a.URL, now.Unix())), false},
			{"a service", with("sub", "parley:service"), false},
			{"the operator", with("sub", "me"), false},
			{"claims that are no object", text(`["ann"]`), false},
		} {
			if test.raw == whole {
				if got, err := i.Verify(t.Context(), test.raw); got.Identity != (identity.Identity{Actor: "ann"}) || got.Until.Sub(now) != time.Hour+clockSkew || err != nil {
					t.Errorf("Verify = %+v, %v, want ann for an hour", got, err)
				}
			}
			if got := taken(t, i, test.raw); got != test.want {
				t.Errorf("%s: taken = %t, want %t", test.name, got, test.want)
			}
		}
		for _, mark := range []string{"eyJ", "sub\":", "xxx", "parley2"} {
			if strings.Contains(log.String(), mark) {
				t.Errorf("the log holds %q of a JWT:\n%s", mark, log)
			}
		}
		for _, reason := range []string{"another audience", "it has no end"} {
			if n := strings.Count(log.String(), reason); n != 1 {
				t.Errorf("%q is logged %d times, want once", reason, n)
			}
		}
	})
}

// The operator says which claims are actor and tenant; with a tenant me is
// somebody else than the operator.
func TestJWTClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := issuertest.New("https://login.example.org")
		key := issuertest.NewKey(t)
		a.Publish(map[string]crypto.Signer{"k": key})
		i, _ := trust(t, a, func(o *Config) { o.ActorClaim, o.TenantClaim = "email", "https://example.org/tenant" })
		tenant := func(name any) map[string]any {
			return map[string]any{"email": "me", "https://example.org/tenant": name}
		}
		want := identity.Identity{Tenant: identity.Some("acme"), Actor: "me"}
		if got, err := i.Verify(t.Context(), a.Sign(t, "k", key, tenant("acme"))); got.Identity != want || err != nil {
			t.Errorf("Verify = %+v, %v, want %+v", got, err, want)
		}
		for _, wrong := range []any{nil, "", 7, strings.Repeat("x", 257)} {
			if taken(t, i, a.Sign(t, "k", key, tenant(wrong))) {
				t.Errorf("a JWT with the tenant %v is taken", wrong)
			}
		}
		if taken(t, i, a.Sign(t, "k", key, map[string]any{"https://example.org/tenant": "acme"})) {
			t.Error("a JWT without the actor's claim is taken")
		}
	})
}

// An issuer that is away when it is needed first is looked for in the background,
// told once, and taken when it is there; so it is again when only its keys are
// away.
func TestIssuerComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := issuertest.New("https://login.example.org")
		key := issuertest.NewKey(t)
		a.Publish(map[string]crypto.Signer{"k": key})
		i, log := trust(t, a, nil)
		a.Cut(errNetwork)
		for range 5 {
			before := time.Now()
			if taken(t, i, a.Sign(t, "k", key, nil)) || time.Since(before) > patience {
				t.Errorf("a JWT is taken without the issuer, or its refusal took %v", time.Since(before))
			}
		}
		time.Sleep(10 * time.Minute)
		a.Cut(nil)
		time.Sleep(maxPause)
		if !taken(t, i, a.Sign(t, "k", key, nil)) {
			t.Error("the issuer is there, and its JWT is not taken")
		}
		if gone, back := strings.Count(log.String(), "gives no answer"), strings.Count(log.String(), "answers again"); gone != 1 || back != 1 {
			t.Errorf("the log tells %d times that it went and %d times that it came, want once each:\n%s", gone, back, log)
		}

		a.Cut(errNetwork)
		if !taken(t, i, a.Sign(t, "k", key, nil)) {
			t.Error("a JWT of a known key needs the issuer")
		}
		time.Sleep(keyPause)
		next := issuertest.NewKey(t)
		if taken(t, i, a.Sign(t, "next", next, nil)) {
			t.Error("a JWT of a key that cannot be known is taken")
		}
		a.Cut(nil)
		a.Publish(map[string]crypto.Signer{"next": next})
		time.Sleep(keyPause)
		if !taken(t, i, a.Sign(t, "next", next, nil)) {
			t.Error("the keys are there, and the JWT is not taken")
		}
		if gone, back := strings.Count(log.String(), "gives no answer"), strings.Count(log.String(), "answers again"); gone != 2 || back != 2 {
			t.Errorf("the log tells %d times that it went and %d times that it came, want twice each:\n%s", gone, back, log)
		}
	})
}

// Answers that are of no use are no answers, and their text is not logged.
func TestIssuerAnswers(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"an error": func(w http.ResponseWriter, r *http.Request) { http.Error(w, "QWERTZ", http.StatusInternalServerError) },
		"no JSON":  func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "<html>QWERTZ") },
		"too much": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"QWERTZ":%q}`, make([]byte, maxAnswerBytes))
		},
		"another issuer": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"issuer":"https://other","jwks_uri":"https://other"}`)
		},
		"no keys": func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"issuer":"https://login.example.org"}`) },
		"a redirect to http": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://login.example.org"+issuertest.KeysPath, http.StatusFound)
		},
		"a circle": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.String(), http.StatusFound) },
		"keys by http": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"issuer":"https://login.example.org","jwks_uri":"http://127.0.0.1/keys"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := issuertest.New("https://login.example.org")
				key := issuertest.NewKey(t)
				a.Publish(map[string]crypto.Signer{"k": key})
				i, log := trust(t, a, nil)
				a.Answers(answer)
				if taken(t, i, a.Sign(t, "k", key, nil)) {
					t.Error("a JWT is taken")
				}
				if a.Questions(issuertest.KeysPath) > 0 {
					t.Error("it is asked further")
				}
				if !strings.Contains(log.String(), "gives no answer") || strings.Contains(log.String(), "QWERTZ") {
					t.Errorf("the log does not tell, or too much:\n%.500s", log)
				}
			})
		})
	}
}

// A request waits 3 s for an issuer that hangs, and not at all once it is known to;
// a stop does not wait for it.
func TestIssuerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := issuertest.New("https://login.example.org")
		key := issuertest.NewKey(t)
		i, _ := trust(t, a, nil)
		a.Answers(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		wait := func() time.Duration {
			before := time.Now()
			if taken(t, i, a.Sign(t, "k", key, nil)) {
				t.Error("a JWT is taken")
			}
			return time.Since(before)
		}
		if got := wait(); got != patience {
			t.Errorf("the first request waits %v, want %v", got, patience)
		}
		time.Sleep(questionTime)
		if got := wait(); got != 0 {
			t.Errorf("one that comes later waits %v, want none", got)
		}
		before := time.Now()
		i.Close()
		if took := time.Since(before); took != 0 {
			t.Errorf("close takes %v", took)
		}
	})
}

// Nobody is asked before a JWT comes, nor without an issuer.
func TestIssuerIsLazy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := issuertest.New("https://login.example.org")
		i, _ := trust(t, a, nil)
		time.Sleep(time.Hour)
		i.Close()
		if got := a.Questions(issuertest.DiscoveryPath); got != 0 {
			t.Errorf("the issuer is asked %d times", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := i.Verify(ctx, a.Sign(t, "k", issuertest.NewKey(t), nil)); !errors.Is(err, ErrRefused) {
			t.Errorf("Verify after Close = %v, want ErrRefused", err)
		}
	})
}

// Whatever claims are, they stand for one whom an issuer may name, or for nobody.
func FuzzClaims(f *testing.F) {
	for _, claims := range []string{`{"sub":"ann","exp":2000}`, `{"sub":"me","exp":2000}`, `{"sub":1}`, `[]`, `{"exp":1e400,"sub":"a"}`, `{"sub":"parley:x","exp":2000,"nbf":1}`} {
		f.Add([]byte(claims), false)
	}
	f.Fuzz(func(t *testing.T, claims []byte, tenants bool) {
		i := &Issuer{operator: operator}
		if tenants {
			i.config.TenantClaim = "t"
		}
		now := time.Unix(1000, 0)
		b, err := i.read(claims, now)
		if err != nil {
			return
		}
		who, until := b.Identity, b.Until
		b.Says("sub", "ann") // whatever stands there
		_, tenant := who.Tenant.Value()
		if who.Validate() != nil || who == operator || strings.HasPrefix(who.Actor, datadir.ServicePrefix) || !until.After(now) || tenant != tenants {
			t.Errorf("read(%q) = %+v, %v", claims, who, until)
		}
	})
}

// A claim says a value that it is, or that stands in its list, as a text; whatever
// else it is says nothing.
func TestBearerSays(t *testing.T) {
	i := &Issuer{operator: operator}
	for claims, want := range map[string]bool{
		`"groups":"oncall"`: true, `"groups":["a","oncall"]`: true, `"groups":[1,{},null,"oncall"]`: true,
		`"groups":"oncall "`: false, `"groups":["ONCALL"]`: false, `"groups":[["oncall"]]`: false, `"groups":{"oncall":true}`: false,
		`"groups":"a,oncall"`: false, `"groups":null`: false, `"groups":[]`: false, `"group":"oncall"`: false,
	} {
		b, err := i.read([]byte(`{"sub":"ann","exp":2000,"iat":900,`+claims+`}`), time.Unix(1000, 0))
		if err != nil || b.Says("groups", "oncall") != want || !b.Issued.Equal(time.Unix(900, 0)) {
			t.Errorf("read(%s) = %+v, %v; want that it says so: %t", claims, b, err, want)
		}
	}
}
