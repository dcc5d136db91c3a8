package taint

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"log/slog"
)

// The members of the wrapper in JSON.
const (
	memberOrigin = "tainted"
	memberValue  = "value"
)

var errWrapper = errors.New(`tainted value is not an object of exactly "tainted", a non-empty string, and "value"`)

// MarshalJSONTo writes a plain text as a string and a tainted one as
// {"tainted": origin, "value": text}.
func (t Text) MarshalJSONTo(enc *jsontext.Encoder) error {
	if !t.IsTainted() {
		return enc.WriteToken(jsontext.String(t.value))
	}
	return writeWrapper(enc, t.origin, func() error { return enc.WriteToken(jsontext.String(t.value)) })
}

// UnmarshalJSONFrom reads what MarshalJSONTo writes and refuses everything
// else, null included: a damaged wrapper must not become plain text.
func (t *Text) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case '"':
		s, err := readString(dec)
		*t = Plain(s)
		return err
	case '{':
		var s string
		origin, err := readWrapper(dec, func() (err error) {
			s, err = readString(dec)
			return err
		})
		if err != nil {
			return err
		}
		*t = Tainted(s, origin)
		return nil
	default:
		if err := dec.SkipValue(); err != nil {
			return err
		}
		return errors.New("text is neither a string nor a tainted value")
	}
}

// Value is a whole value that is not ours, such as a message carried over to
// the next generation (C-19.5). It is always tainted: its zero Origin is
// written as [OriginUnknown].
type Value[T any] struct {
	Origin Origin
	Value  T
}

// Format prints the origin instead of the value, for every verb.
func (v Value[T]) Format(f fmt.State, _ rune) { fmt.Fprint(f, v.describe()) }

// LogValue hides the value from slog.
func (v Value[T]) LogValue() slog.Value { return slog.StringValue(v.describe()) }

func (v Value[T]) describe() string {
	return fmt.Sprintf("[tainted value from %q]", string(known(v.Origin)))
}

// MarshalJSONTo writes {"tainted": origin, "value": value}.
func (v Value[T]) MarshalJSONTo(enc *jsontext.Encoder) error {
	return writeWrapper(enc, known(v.Origin), func() error { return json.MarshalEncode(enc, v.Value) })
}

// UnmarshalJSONFrom reads what MarshalJSONTo writes and refuses everything
// else.
func (v *Value[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var read Value[T]
	if dec.PeekKind() != '{' {
		if err := dec.SkipValue(); err != nil {
			return err
		}
		return errWrapper
	}
	origin, err := readWrapper(dec, func() error { return json.UnmarshalDecode(dec, &read.Value) })
	if err != nil {
		return err
	}
	read.Origin = origin
	*v = read
	return nil
}

func writeWrapper(enc *jsontext.Encoder, origin Origin, writeValue func() error) error {
	for _, token := range []jsontext.Token{
		jsontext.BeginObject,
		jsontext.String(memberOrigin), jsontext.String(string(origin)),
		jsontext.String(memberValue),
	} {
		if err := enc.WriteToken(token); err != nil {
			return err
		}
	}
	if err := writeValue(); err != nil {
		return err
	}
	return enc.WriteToken(jsontext.EndObject)
}

// readWrapper reads a wrapper, whose members may come in either order; it
// calls readValue at the value.
func readWrapper(dec *jsontext.Decoder, readValue func() error) (Origin, error) {
	var origin Origin
	var valued bool
	if _, err := dec.ReadToken(); err != nil {
		return "", err
	}
	for dec.PeekKind() == '"' {
		name, err := readString(dec)
		if err != nil {
			return "", err
		}
		switch {
		case name == memberOrigin && origin == "":
			s, err := readString(dec)
			if err != nil {
				return "", err
			}
			if s == "" {
				return "", errWrapper
			}
			origin = Origin(s)
		case name == memberValue && !valued:
			if err := readValue(); err != nil {
				return "", err
			}
			valued = true
		default:
			return "", errWrapper
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return "", err
	}
	if origin == "" || !valued {
		return "", errWrapper
	}
	return origin, nil
}

func readString(dec *jsontext.Decoder) (string, error) {
	token, err := dec.ReadToken()
	if err != nil {
		return "", err
	}
	if token.Kind() != '"' {
		return "", errWrapper
	}
	return token.String(), nil
}
