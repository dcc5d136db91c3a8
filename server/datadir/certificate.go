package datadir

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
)

// certificateFile holds the certificate of a server under TLS, in PEM.
const certificateFile = "certificate"

const certificateType = "CERTIFICATE"

// SetCertificate writes which certificate the holder of the lock shows: programs
// on this machine meet it at an address for which it was not made.
func (l *Lock) SetCertificate(leaf []byte) error {
	if err := l.dir.write(certificateFile, pem.EncodeToMemory(&pem.Block{Type: certificateType, Bytes: leaf})); err != nil {
		return fmt.Errorf("write certificate: %w", err)
	}
	return nil
}

// errCertificate says that somebody else answers.
var errCertificate = errors.New("whoever answers there has not the certificate of the directory's server")

// TLS is how to meet the directory's server under TLS: it takes the one
// certificate that the server has written down, and no other.
func (d Dir) TLS() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // in favour of what is stricter
		VerifyConnection: func(state tls.ConnectionState) error {
			data, err := d.read(certificateFile)
			if err != nil {
				return fmt.Errorf("read certificate: %w", err)
			}
			block, _ := pem.Decode(data)
			if block == nil || len(state.PeerCertificates) == 0 || !bytes.Equal(block.Bytes, state.PeerCertificates[0].Raw) {
				return errCertificate
			}
			return nil
		},
	}
}
