package issuer

import (
	"crypto"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/server/issuer/issuertest"
)

// A hanging key server holds no request longer than 3 s, and no stop.
func TestKeysHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := issuertest.New("https://login.example.org")
		key := issuertest.NewKey(t)
		i, _ := trust(t, a, nil)
		a.Answers(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == issuertest.KeysPath {
				<-r.Context().Done()
				return
			}
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, a.URL, a.URL+issuertest.KeysPath)
		})
		before := time.Now()
		if taken(t, i, a.Sign(t, "k", key, nil)) || time.Since(before) != patience {
			t.Errorf("a JWT is taken, or its refusal took %v, want %v", time.Since(before), patience)
		}
		before = time.Now()
		i.Close()
		if took := time.Since(before); took != 0 {
			t.Errorf("close takes %v", took)
		}
	})
}

// Keys rotate: a JWT of a new key makes the issuer be asked, and what it no longer
// shows no longer counts. An answer without keys takes none away.
func TestKeysRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := issuertest.New("https://login.example.org")
		first, second, third := issuertest.NewKey(t), issuertest.NewKey(t), issuertest.NewKey(t)
		a.Publish(map[string]crypto.Signer{"1": first})
		i, _ := trust(t, a, nil)
		check := func(when, kid string, key crypto.Signer, want bool) {
			t.Helper()
			if got := taken(t, i, a.Sign(t, kid, key, nil)); got != want {
				t.Errorf("%s: a JWT of key %s is taken: %t, want %t", when, kid, got, want)
			}
		}
		check("at first", "1", first, true)
		time.Sleep(keyPause)
		a.Publish(map[string]crypto.Signer{"1": first, "2": second})
		check("while both are shown", "2", second, true)
		check("while both are shown", "1", first, true)
		if got := a.Questions(issuertest.KeysPath); got != 2 {
			t.Errorf("keys are asked for %d times, want 2", got)
		}
		time.Sleep(keyPause)
		a.Publish(map[string]crypto.Signer{"2": second, "3": third})
		check("when the first has gone", "3", third, true)
		check("when the first has gone", "1", first, false)
		check("when the first has gone", "2", second, true)
		for _, nothing := range []string{`{}`, `{"keys":[]}`, `{"keys":null}`} {
			time.Sleep(keyPause)
			a.Answers(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, nothing) })
			check("with an answer of none", "4", first, false)
			check("with an answer of none", "2", second, true)
		}
	})
}

// Whoever invents keys makes the issuer be asked once in 10 s, and keeps nobody
// else out.
func TestKeyFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := issuertest.New("https://login.example.org")
		key, forger := issuertest.NewKey(t), issuertest.NewKey(t)
		a.Publish(map[string]crypto.Signer{"k": key})
		i, _ := trust(t, a, nil)
		for n := range 300 {
			if taken(t, i, a.Sign(t, fmt.Sprint("invented", n), forger, nil)) {
				t.Fatal("a forged JWT is taken")
			}
			if n%50 == 0 && !taken(t, i, a.Sign(t, "k", key, nil)) {
				t.Error("a good JWT is refused meanwhile")
			}
			time.Sleep(100 * time.Millisecond)
		}
		if got := a.Questions(issuertest.KeysPath); got > 3 {
			t.Errorf("in 30 s keys are asked for %d times, want 3 at most", got)
		}
	})
}
