package taint_test

import (
	"bytes"
	jsonv1 "encoding/json"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/taint"
)

// C-8.1: the wrapper survives JSON, in both versions of the package.
func TestTextRoundTrip(t *testing.T) {
	tests := []struct {
		text taint.Text
		want string
	}{
		{taint.Text{}, `""`},
		{taint.Plain("hello"), `"hello"`},
		{taint.Plain(`{"tainted":"x","value":"y"}`), `"{\"tainted\":\"x\",\"value\":\"y\"}"`},
		{taint.Tainted("hello", taint.OriginUser), `{"tainted":"conversation:user","value":"hello"}`},
		{taint.Tainted("", taint.ToolOrigin("a b")), `{"tainted":"tool:a b","value":""}`},
		{taint.Tainted("<&>\n\"", ""), `{"tainted":"unknown","value":"<&>\n\""}`},
		{taint.Tainted("\xff", taint.OriginUser), "{\"tainted\":\"conversation:user\",\"value\":\"\uFFFD\"}"},
	}
	versions := map[string]struct {
		marshal   func(any) ([]byte, error)
		unmarshal func([]byte, any) error
	}{
		"v1": {
			func(v any) ([]byte, error) {
				var buf bytes.Buffer
				enc := jsonv1.NewEncoder(&buf)
				enc.SetEscapeHTML(false)
				err := enc.Encode(v)
				return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
			},
			func(data []byte, v any) error { return jsonv1.Unmarshal(data, v) },
		},
		"v2": {
			func(v any) ([]byte, error) { return json.Marshal(v) },
			func(data []byte, v any) error { return json.Unmarshal(data, v) },
		},
	}
	for version, codec := range versions {
		for _, tt := range tests {
			data, err := codec.marshal(tt.text)
			if err != nil || string(data) != tt.want {
				t.Errorf("%s: Marshal(%v) = %s, %v, want %s", version, tt.text, data, err, tt.want)
			}
			var back taint.Text
			if err := codec.unmarshal(data, &back); err != nil || back != tt.text {
				t.Errorf("%s: Unmarshal(%s) = %v, %v, want %v", version, data, back, err, tt.text)
			}
		}
	}
}

// A damaged wrapper is refused: it must never come back as plain text.
func TestTextRefusesDamage(t *testing.T) {
	for _, data := range []string{
		``, `null`, `1`, `true`, `[]`, `["x"]`, `{}`,
		`{"tainted":"conversation:user"}`,
		`{"value":"x"}`,
		`{"tainted":"","value":"x"}`,
		`{"tainted":null,"value":"x"}`,
		`{"tainted":1,"value":"x"}`,
		`{"tainted":"a","value":null}`,
		`{"tainted":"a","value":["x"]}`,
		`{"tainted":"a","value":{"tainted":"b","value":"x"}}`,
		`{"tainted":"a","value":"x","more":1}`,
		`{"Tainted":"a","value":"x"}`,
		`{"tainted":"a","tainted":"b","value":"x"}`,
		`{"tainted":"a","value":"x","value":"y"}`,
		`{"tainted":"a","value":"x"`,
	} {
		text := taint.Tainted("before", taint.OriginUser)
		if err := json.Unmarshal([]byte(data), &text); err == nil {
			t.Errorf("Unmarshal(%s) = %v, want an error", data, text)
		}
		if err := json.Unmarshal([]byte(data), &text, jsontext.AllowDuplicateNames(true)); err == nil {
			t.Errorf("Unmarshal(%s) with duplicate names allowed = %v, want an error", data, text)
		}
		if !text.IsTainted() {
			t.Errorf("Unmarshal(%s) left plain text behind", data)
		}
	}
}

func TestTextReadsEitherOrder(t *testing.T) {
	var got taint.Text
	err := json.Unmarshal([]byte(`{"value":"x","tainted":"conversation:user"}`), &got)
	if want := taint.Tainted("x", taint.OriginUser); err != nil || got != want {
		t.Errorf("Unmarshal = %v, %v, want %v", got, err, want)
	}
}

// C-19.5: a pending envelope stays tainted in a carry, with what it holds
// returned byte for byte.
func TestValueInACarry(t *testing.T) {
	type carry struct {
		Rec     int                          `json:"rec"`
		Pending *taint.Value[jsontext.Value] `json:"pending,omitzero"`
		Last    taint.Text                   `json:"last,omitzero"`
	}
	want := carry{
		Rec:     7,
		Pending: &taint.Value[jsontext.Value]{Origin: taint.OriginUser, Value: jsontext.Value(`{"body":{"text":"hi","n":1.50},"sig":"00"}`)},
		Last:    taint.Tainted("bye", taint.OriginSummary),
	}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	const wantJSON = `{"rec":7,"pending":{"tainted":"conversation:user","value":{"body":{"text":"hi","n":1.50},"sig":"00"}},` +
		`"last":{"tainted":"conversation:summary","value":"bye"}}`
	if string(data) != wantJSON {
		t.Errorf("Marshal = %s, want %s", data, wantJSON)
	}
	var got carry
	if err := json.Unmarshal(data, &got, json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(taint.Text{})); diff != "" {
		t.Errorf("carry after a round trip (-want +got):\n%s", diff)
	}
	if data, err = json.Marshal(carry{}); err != nil || string(data) != `{"rec":0}` {
		t.Errorf("Marshal of an empty carry = %s, %v", data, err)
	}
}

func TestValueIsAlwaysTainted(t *testing.T) {
	data, err := json.Marshal(taint.Value[int]{Value: 1})
	if want := `{"tainted":"unknown","value":1}`; err != nil || string(data) != want {
		t.Errorf("Marshal = %s, %v, want %s", data, err, want)
	}
	for _, data := range []string{`1`, `null`, `{"value":1}`, `{"tainted":"","value":1}`, `{"tainted":"a"}`, `{"tainted":"a","value":"x"}`} {
		got := taint.Value[int]{Origin: taint.OriginUser, Value: 5}
		if err := json.Unmarshal([]byte(data), &got); err == nil || got.Value != 5 {
			t.Errorf("Unmarshal(%s) = %+v, %v, want an error and the value as before", data, got, err)
		}
	}
}

// FuzzText: what is read is what was written, and taint neither comes nor goes.
func FuzzText(f *testing.F) {
	f.Add("hello", "conversation:user")
	f.Add("\xff", "")
	f.Fuzz(func(t *testing.T, s, origin string) {
		for _, text := range []taint.Text{taint.Plain(s), taint.Tainted(s, taint.Origin(origin))} {
			data, err := json.Marshal(text)
			if err != nil {
				t.Fatalf("Marshal(%v): %v", text, err)
			}
			var back taint.Text
			if err := json.Unmarshal(data, &back); err != nil || back != text {
				t.Fatalf("Unmarshal(%s) = %v, %v, want %v", data, back, err, text)
			}
		}
	})
}
