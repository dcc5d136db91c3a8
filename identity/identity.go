// Package identity says who somebody is.
//
// An [Identity] names an actor; a [Principal] is an identity with the
// credential that it presented. Identities are compared with == and indexed by
// [Identity.Key].
package identity

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"log/slog"
	"unicode/utf8"
)

// MaxFieldBytes is the largest length of one identity field (C-2.10).
const MaxFieldBytes = 256

// Field is an identity field that may be absent. Absent is not the same as
// empty (C-2.3); the zero Field is absent.
type Field struct {
	value string
	set   bool
}

// Some returns a present field, the empty string included.
func Some(value string) Field { return Field{value: value, set: true} }

// Value returns the field's text and whether it is present.
func (f Field) Value() (string, bool) { return f.value, f.set }

// IsZero reports whether the field is absent; encoding/json uses it for omitzero.
func (f Field) IsZero() bool { return !f.set }

// MarshalJSONTo writes the text, or null where it is absent.
func (f Field) MarshalJSONTo(enc *jsontext.Encoder) error {
	if !f.set {
		return enc.WriteToken(jsontext.Null)
	}
	return enc.WriteToken(jsontext.String(f.value))
}

// UnmarshalJSONFrom reads a string, or null as absent.
func (f *Field) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	switch token.Kind() {
	case 'n':
		*f = Field{}
	case '"':
		*f = Some(token.String())
	default:
		return errors.New("identity field is neither a string nor null")
	}
	return nil
}

// Identity is exactly tenant, actor and onBehalfOf (C-2.2). Two are equal iff
// all three agree, absent agreeing with absent only; == compares them so. An
// empty Actor is a missing one. The zero Identity is nobody.
type Identity struct {
	Tenant     Field  `json:"tenant,omitzero"`
	Actor      string `json:"actor,omitzero"`
	OnBehalfOf Field  `json:"onBehalfOf,omitzero"`
}

// Key is one canonical string for the identity; two identities share it iff
// they are equal (C-2.9). It is a JSON array of the three fields.
func (id Identity) Key() string { return string(id.fields()) }

// SenderKey is the idempotency key of a message, bound to its sender: SHA-256,
// in lowercase hexadecimal, over the JSON array [tenant, actor, onBehalfOf,
// messageId] without white space, with null for an absent value (C-2.7, C-2.8).
func (id Identity) SenderKey(messageID string) string {
	sum := sha256.Sum256(id.fields(messageID))
	return hex.EncodeToString(sum[:])
}

// fields encodes the three fields, and what follows them, as one JSON array.
func (id Identity) fields(more ...string) []byte {
	var buf bytes.Buffer
	enc := jsontext.NewEncoder(&buf, jsontext.AllowInvalidUTF8(true))
	actor := Field{value: id.Actor, set: id.Actor != ""}
	writes := []func() error{
		func() error { return enc.WriteToken(jsontext.BeginArray) },
		func() error { return id.Tenant.MarshalJSONTo(enc) },
		func() error { return actor.MarshalJSONTo(enc) },
		func() error { return id.OnBehalfOf.MarshalJSONTo(enc) },
	}
	for _, text := range more {
		writes = append(writes, func() error { return enc.WriteToken(jsontext.String(text)) })
	}
	writes = append(writes, func() error { return enc.WriteToken(jsontext.EndArray) })
	for _, write := range writes {
		if err := write(); err != nil {
			panic(fmt.Sprintf("identity: encode fields: %v", err)) // a buffer does not fail, and the tokens balance
		}
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// Validate reports why the identity can own nothing, join nothing and send
// nothing: no actor (C-2.5), a field over [MaxFieldBytes] (C-2.10), or text
// that is not UTF-8. The error repeats no field.
func (id Identity) Validate() error {
	if id.Actor == "" {
		return errors.New("identity has no actor")
	}
	for _, f := range []Field{id.Tenant, Some(id.Actor), id.OnBehalfOf} {
		if len(f.value) > MaxFieldBytes {
			return fmt.Errorf("identity field is longer than %d bytes", MaxFieldBytes)
		}
		if !utf8.ValidString(f.value) {
			return errors.New("identity field is not valid UTF-8")
		}
	}
	return nil
}

// Parse reads an identity from JSON, refusing unknown fields, and validates it.
func Parse(data []byte) (Identity, error) {
	var id Identity
	if err := json.Unmarshal(data, &id, json.RejectUnknownMembers(true)); err != nil {
		return Identity{}, errors.New("identity is not an object of tenant, actor and onBehalfOf")
	}
	return id, id.Validate()
}

// Principal is an identity with the credential that it presented. The
// credential is no part of the identity and is never written anywhere (C-2.6).
type Principal struct {
	Identity
	Credential Secret
}

// Secret is a text that neither prints, nor logs, nor marshals. Convert it to
// string where it is used.
type Secret string

const redacted = "[secret]"

// String hides the secret.
func (Secret) String() string { return redacted }

// GoString hides the secret from %#v.
func (Secret) GoString() string { return redacted }

// LogValue hides the secret from slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON refuses: a secret has no place in JSON.
func (Secret) MarshalJSON() ([]byte, error) {
	return nil, errors.New("a secret is never encoded")
}
