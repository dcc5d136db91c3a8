// Package identity says who somebody is.
//
// An [Identity] names an actor; a [Principal] is an identity with the
// credential that it presented. Identities are compared with == and indexed by
// [Identity.Key].
package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
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
// they are equal (C-2.9), invalid ones included. It is the JSON array of the
// three fields, encoded as in [Identity.SenderKey].
func (id Identity) Key() string { return string(id.fields()) }

// SenderKey is the idempotency key of a message, bound to its sender: SHA-256,
// in lowercase hexadecimal, over the JSON array [tenant, actor, onBehalfOf,
// messageId] without white space, with null for an absent value and only those
// characters escaped that JSON requires (C-2.7, C-2.8).
func (id Identity) SenderKey(messageID string) string {
	sum := sha256.Sum256(id.fields(messageID))
	return hex.EncodeToString(sum[:])
}

// fields encodes the three fields, and what follows them, as one JSON array.
func (id Identity) fields(more ...string) []byte {
	fields := []Field{id.Tenant, {value: id.Actor, set: id.Actor != ""}, id.OnBehalfOf}
	for _, text := range more {
		fields = append(fields, Some(text))
	}
	out := []byte{'['}
	for i, field := range fields {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendField(out, field)
	}
	return append(out, ']')
}

// appendField writes the text as a JSON string and an absent one as null. Text
// that is not UTF-8 has no JSON string of its own; it becomes an array of its
// bytes in hexadecimal, so that it shares a key with no other text.
func appendField(out []byte, f Field) []byte {
	if !f.set {
		return append(out, "null"...)
	}
	quoted, err := jsontext.AppendQuote(out, f.value)
	if err != nil {
		return fmt.Appendf(out, `["%x"]`, f.value)
	}
	return quoted
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

// maxJSONBytes has room for three fields of MaxFieldBytes with every byte escaped.
const maxJSONBytes = 8 << 10

// Parse reads an identity from at most 8 KiB of JSON, refusing unknown fields,
// and validates it. The error repeats nothing of data.
func Parse(data []byte) (Identity, error) {
	if len(data) > maxJSONBytes {
		return Identity{}, fmt.Errorf("identity is longer than %d bytes", maxJSONBytes)
	}
	var id Identity
	if err := json.Unmarshal(data, &id, json.RejectUnknownMembers(true)); err != nil {
		return Identity{}, errors.New("identity is not an object of tenant, actor and onBehalfOf")
	}
	if err := id.Validate(); err != nil {
		return Identity{}, err
	}
	return id, nil
}
