package conversation

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/parley-run/parley/identity"
)

// MinKeyBytes is the shortest signing key (C-11.4).
const MinKeyBytes = 32

// signatureDomain keeps a MAC that was made with the same key for some other
// use from being taken for an envelope's (C-12.5).
const signatureDomain = "parley/conversation/envelope/v1"

// Keys sign envelopes, and verify them. They neither print, nor log, nor
// marshal. The zero Keys are none: they sign nothing and verify nothing.
type Keys struct {
	signing identity.Secret
	valid   []identity.Secret // the signing key first
}

// NewKeys returns keys that sign with the first and verify with it and with
// each of previous (C-12.8). One shorter than [MinKeyBytes] is refused. The
// bytes are copied.
//
// To rotate, deploy the new key with the old one as a previous, wait for the
// maximum age of an envelope, then drop the old one (C-41.1).
func NewKeys(key []byte, previous ...[]byte) (Keys, error) {
	var keys Keys
	for i, raw := range append([][]byte{key}, previous...) {
		if len(raw) < MinKeyBytes {
			return Keys{}, fmt.Errorf("signing key %d has %d bytes, fewer than %d", i, len(raw), MinKeyBytes)
		}
		keys.valid = append(keys.valid, identity.NewSecret(string(raw)))
	}
	keys.signing = keys.valid[0]
	return keys, nil
}

// IsZero reports whether there is no key.
func (k Keys) IsZero() bool { return k.signing.IsZero() }

// signature returns the MAC of a body in its canonical form.
func (k Keys) signature(canonical []byte) string {
	return hex.EncodeToString(mac(k.signing, canonical))
}

// verifies reports whether one of the keys made the signature. The comparison
// takes the same time wherever the two differ (C-12.7).
func (k Keys) verifies(canonical []byte, signature string) bool {
	given, err := hex.DecodeString(signature)
	if err != nil || hex.EncodeToString(given) != signature { // upper case is not the wire form
		return false
	}
	valid := false
	for _, key := range k.valid {
		if hmac.Equal(mac(key, canonical), given) {
			valid = true
		}
	}
	return valid
}

func mac(key identity.Secret, canonical []byte) []byte {
	h := hmac.New(sha256.New, []byte(key.Reveal()))
	h.Write([]byte(signatureDomain))
	h.Write([]byte{'\n'})
	h.Write(canonical)
	return h.Sum(nil)
}
