package identity

import (
	"errors"
	"log/slog"
)

// Principal is an identity with the credential that it presented. The
// credential is no part of the identity and is never written anywhere (C-2.6):
// compare the Identity of two principals, not the principals.
type Principal struct {
	Identity
	Credential Secret
}

// Secret is a text that neither prints, nor logs, nor marshals; the zero Secret
// is none. It stays hidden where fmt cannot ask it, as in an unexported field,
// because fmt follows no pointer there.
type Secret struct{ text *string }

// NewSecret returns the secret that hides text, and the zero Secret for "".
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Reveal returns the text, "" for the zero Secret. Call it where the text is
// used, and keep the result nowhere.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.text == nil }

const redacted = "[secret]"

// String hides the secret.
func (Secret) String() string { return redacted }

// GoString hides the secret from %#v.
func (Secret) GoString() string { return redacted }

// LogValue hides the secret from slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON refuses: a secret has no place in JSON, and a value that holds
// one has none either.
func (Secret) MarshalJSON() ([]byte, error) { return nil, errors.New("a secret is never encoded") }

// UnmarshalJSON refuses: a credential comes from where it was presented, not
// from a document.
func (*Secret) UnmarshalJSON([]byte) error { return errors.New("a secret is never decoded") }
