package taint

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"strings"
)

// SummarizerText is the one sanctioned reader of tainted content, for
// summarizer effects alone (C-8.7). It encodes value as JSON and returns the
// texts in it, in order, one to a line: each string, also inside a wrapper, an
// array, or one of the members text, content, parts, results, messages and
// value of an object. Other members, numbers, booleans and null say nothing.
//
// What it returns is untrusted data: hand it to a model with [Tainted] and
// [Fence], and never put it into an instruction position (C-8.8).
func SummarizerText(value any) (string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encode for the summarizer: %w", err)
	}
	var texts []string
	if err := collect(jsontext.NewDecoder(bytes.NewReader(data)), &texts); err != nil {
		return "", fmt.Errorf("read for the summarizer: %w", err)
	}
	return strings.Join(texts, "\n"), nil
}

// collect appends the texts of the next JSON value.
func collect(dec *jsontext.Decoder, texts *[]string) error {
	switch dec.PeekKind() {
	case '"':
		s, err := readString(dec)
		*texts = append(*texts, s)
		return err
	case '[':
		return within(dec, func() error { return collect(dec, texts) })
	case '{':
		return within(dec, func() error {
			name, err := readString(dec)
			if err != nil {
				return err
			}
			switch name {
			case "text", "content", "parts", "results", "messages", memberValue:
				return collect(dec, texts)
			default:
				return dec.SkipValue()
			}
		})
	default:
		return dec.SkipValue()
	}
}

// within calls element for each element of the array or object that comes next.
func within(dec *jsontext.Decoder, element func() error) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for kind := dec.PeekKind(); kind != ']' && kind != '}'; kind = dec.PeekKind() {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}
