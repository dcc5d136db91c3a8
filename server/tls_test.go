package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/server/datadir"
)

// writeCertificate writes a certificate for chat.example.org, and its key.
func writeCertificate(t *testing.T, folder string, serial int64) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "chat.example.org"}, DNSNames: []string{"chat.example.org"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// overTLS is a client of a server, as the programs of this machine are.
func overTLS(t *testing.T, r *running, h2 bool) (*client.Client, *http.Client) {
	t.Helper()
	secret, err := datadir.ReadToken(r.Directory().OwnTokenFile())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: r.Directory().TLS(), ForceAttemptHTTP2: h2}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(r.URL(), secret.Reveal(), &http.Client{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return c, &http.Client{Transport: transport}
}

// A server with a certificate speaks TLS alone, HTTP/2 and HTTP/1.1, and takes a
// renewed certificate without a restart; who is on this machine takes the one
// that the server has written down, and no other.
func TestTLS(t *testing.T) {
	w := newWorld(t)
	folder := t.TempDir()
	w.config.Settings.TLSCert, w.config.Settings.TLSKey = writeCertificate(t, folder, 1)
	r := w.start()
	defer r.end()
	if !strings.HasPrefix(r.URL(), "https://127.0.0.1:") || !r.Secure() {
		t.Errorf("URL = %s", r.URL())
	}
	for _, h2 := range []bool{false, true} {
		c, raw := overTLS(t, r, h2)
		id, err := c.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		say(t, c, id, "hello")
		got, err := raw.Get(r.URL() + "/healthz")
		if err != nil || (got.ProtoMajor == 2) != h2 {
			t.Errorf("h2 = %v: %v, %v", h2, got, err)
		}
		got.Body.Close()
	}
	if got, err := http.Get(strings.Replace(r.URL(), "https", "http", 1) + "/healthz"); err != nil || got.StatusCode != 400 {
		t.Errorf("without TLS: %v, %v; want a 400 that says so", got, err)
	}
	if _, err := New(t.Context(), w.config); !isRunning(err) { // the second start asks the first one over TLS
		t.Errorf("a second start: %v; want that one runs", err)
	}

	writeCertificate(t, folder, 2)
	r.door.certificate.mu.Lock()
	r.door.certificate.looked = time.Time{} // so long ago
	r.door.certificate.mu.Unlock()
	if serial := serialOf(t, r); serial != 2 {
		t.Errorf("after the renewal the certificate has the number %d", serial)
	}
	if err := os.WriteFile(filepath.Join(folder, "key.pem"), []byte("half a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.door.certificate.mu.Lock()
	r.door.certificate.looked = time.Time{}
	r.door.certificate.mu.Unlock()
	if serial := serialOf(t, r); serial != 2 || strings.Contains(w.log.String(), "half a key") || strings.Count(w.log.String(), "the old one goes on") != 1 {
		t.Errorf("with half a key: number %d, and the log says %s", serial, w.log.String())
	}
	if err := os.Remove(filepath.Join(w.config.Data, "certificate")); err != nil {
		t.Fatal(err)
	}
	stranger, _ := overTLS(t, r, false)
	if _, err := stranger.Start(t.Context()); err == nil {
		t.Error("a server whose certificate is not written down is taken for the directory's")
	}
}

func isRunning(err error) bool {
	_, ok := errors.AsType[*RunningError](err)
	return ok
}

// serialOf meets the server as its directory says, and returns the number of its
// certificate.
func serialOf(t *testing.T, r *running) int64 {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(r.URL(), "https://"), r.Directory().TLS())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// HTTP/2 without TLS is spoken only where h2c says so (check 38).
func TestH2C(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		w := newWorld(t)
		w.config.Settings.H2C = allowed
		r := w.start()
		var protocols http.Protocols
		protocols.SetUnencryptedHTTP2(true)
		transport := &http.Transport{Protocols: &protocols}
		got, err := (&http.Client{Transport: transport}).Get(r.URL() + "/healthz")
		if (err == nil) != allowed || allowed && got.ProtoMajor != 2 {
			t.Errorf("h2c = %v: %v, %v", allowed, got, err)
		}
		transport.CloseIdleConnections()
		r.end()
	}
}

// C-32.11, check 45: headers that come too slowly end the connection after 10 s, whatever
// was sent, and hold up nobody.
func TestSlowHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		served := make(chan error, 1)
		w := newWorld(t)
		answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
		s := newHTTPServer(answer, door{}, w.config.Log)
		go func() { served <- s.Serve(listener) }()
		dial := func() net.Conn {
			mine, theirs := net.Pipe()
			listener.conns <- theirs
			return mine
		}
		slow := dial()
		begun := time.Now()
		ended := make(chan time.Duration, 1)
		go func() {
			io.Copy(io.Discard, slow)
			ended <- time.Since(begun)
		}()
		fmt.Fprint(slow, "GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ")
		ctx, cancel := context.WithCancel(t.Context())
		dripped := make(chan struct{})
		go func() { // one byte a second
			defer close(dripped)
			for ctx.Err() == nil {
				time.Sleep(time.Second)
				if _, err := slow.Write([]byte("x")); err != nil {
					return
				}
			}
		}()
		time.Sleep(3 * time.Second)
		quick := dial()
		fmt.Fprint(quick, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if got, err := io.ReadAll(quick); err != nil || !strings.HasSuffix(string(got), "ok") {
			t.Errorf("beside slow headers: %q, %v", got, err)
		}
		if took := <-ended; took < headerTimeout || took > headerTimeout+2*time.Second {
			t.Errorf("slow headers end after %v; want %v", took, headerTimeout)
		}
		cancel()
		<-dripped
		slow.Close()
		s.Close()
		<-served
	})
}
