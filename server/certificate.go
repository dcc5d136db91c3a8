package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateRound is how long a certificate is used before its files are looked
// at again.
const certificateRound = 10 * time.Second

// certificate is the server's TLS certificate. When its files change it is read
// again; where they do not fit together, as in the middle of a renewal, the old
// one goes on.
type certificate struct {
	certFile, keyFile string

	mu     sync.Mutex
	pair   *tls.Certificate
	files  [2]fs.FileInfo
	looked time.Time
	log    *slog.Logger            // set by follow, as is tell
	tell   func(leaf []byte) error // is told which certificate is in use
	failed bool                    // the last look found no pair; that is logged once
}

// readCertificate reads a certificate and its key, in PEM.
func readCertificate(certFile, keyFile string) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile}
	return c, c.read()
}

// read takes what the files hold.
func (c *certificate) read() error {
	var files [2]fs.FileInfo
	for i, path := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("TLS: %w", err)
		}
		files[i] = info
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		if _, ok := errors.AsType[*os.PathError](err); ok {
			return fmt.Errorf("TLS: %w", err)
		}
		return fmt.Errorf("TLS: %s and %s are no certificate with its key, in PEM", c.certFile, c.keyFile) // the library may quote the files
	}
	c.pair, c.files = &pair, files
	return nil
}

// follow tells which certificate is in use, now and whenever it is another one.
func (c *certificate) follow(log *slog.Logger, tell func(leaf []byte) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log, c.tell, c.looked = log, tell, time.Now()
	return tell(c.pair.Certificate[0])
}

// current is the certificate of a connection that begins.
func (c *certificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= certificateRound {
		c.looked = now
		if c.changed() {
			c.renew()
		}
	}
	return c.pair, nil
}

// changed reports whether one of the files is another than the one that was read.
func (c *certificate) changed() bool {
	for i, path := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(path)
		if err != nil || !os.SameFile(info, c.files[i]) || !info.ModTime().Equal(c.files[i].ModTime()) || info.Size() != c.files[i].Size() {
			return true
		}
	}
	return false
}

func (c *certificate) renew() {
	pair, files := c.pair, c.files
	err := c.read()
	if err == nil {
		err = c.tell(c.pair.Certificate[0])
	}
	if err != nil {
		if c.pair, c.files = pair, files; !c.failed {
			c.log.Error("the TLS certificate has changed and cannot be read; the old one goes on", "error", err)
		}
		c.failed = true
		return
	}
	c.failed = false
	c.log.Info("the TLS certificate was read again", "until", c.pair.Leaf.NotAfter)
}
