package conversation

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
)

// vector is one known answer of the signature: made with another program than
// this one.
type vector struct {
	Name string `json:"name"`
	Key  string `json:"key"` // hexadecimal
	Body string `json:"body"`
	Sig  string `json:"sig"`
}

func readVectors(t testing.TB) []vector {
	t.Helper()
	file, err := os.Open("testdata/envelopes.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var vectors []vector
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, v)
	}
	if len(vectors) == 0 {
		t.Fatal("no vectors")
	}
	return vectors
}

func keysOf(t testing.TB, hexKeys ...string) Keys {
	t.Helper()
	var raw [][]byte
	for _, h := range hexKeys {
		key, err := hex.DecodeString(h)
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, key)
	}
	keys, err := NewKeys(raw[0], raw[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// The signature is HMAC-SHA-256 over the domain, a line feed and the canonical
// body (C-12.5, C-12.6).
func TestKnownAnswers(t *testing.T) {
	for _, v := range readVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			keys := keysOf(t, v.Key)
			var b body
			if err := json.Unmarshal([]byte(v.Body), &b, json.RejectUnknownMembers(true)); err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf(`{"body":%s,"sig":"%s"}`, v.Body, v.Sig)
			if got := keys.seal(b); string(got) != want {
				t.Errorf("seal\n got %s\nwant %s", got, want)
			}
			e, object := split(jsontext.Value(want))
			if !object || !keys.verify(e) {
				t.Error("the known signature does not verify")
			}
			if _, ok := e.read(); !ok {
				t.Error("the body's shape is refused")
			}
		})
	}
}

// White space, the order of members and escapes are not what is signed.
func TestFormIsNotSigned(t *testing.T) {
	keys := testKeys(t)
	payload := keys.signUser("talk", &ann.Identity, "m1", "hé", time.UnixMilli(1))
	var raw struct {
		Body map[string]jsontext.Value `json:"body"`
		Sig  string                    `json:"sig"`
	}
	if err := json.Unmarshal(payload, &raw); err != nil {
		t.Fatal(err)
	}
	raw.Body["text"] = jsontext.Value(`"h\u00e9"`)
	var loose bytes.Buffer
	fmt.Fprintf(&loose, "{ \"sig\" : %q, \n\"body\": {", raw.Sig)
	for i, name := range []string{"text", "kind", "id", "iat", "conversationId", "asker"} {
		if i > 0 {
			loose.WriteString(" ,\n")
		}
		fmt.Fprintf(&loose, "%q: %s", name, raw.Body[name])
	}
	loose.WriteString("}}")
	e, object := split(loose.Bytes())
	if !object || !keys.verify(e) {
		t.Errorf("%s does not verify", loose.String())
	}
}

// A changed bit in any place, a field added or taken away, another domain, a
// dropped key: none verifies (C-12.5 to C-12.8).
func TestForgedEnvelopes(t *testing.T) {
	keys := testKeys(t)
	payload := keys.signUser("talk", &ann.Identity, "m1", "hello", time.UnixMilli(1_700_000_000_000))
	for i := range payload {
		for bit := range 8 {
			forged := bytes.Clone(payload)
			forged[i] ^= 1 << bit
			e, _ := split(forged)
			if keys.verify(e) {
				t.Fatalf("bit %d of byte %d changed, and it verifies: %s", bit, i, forged)
			}
		}
	}
	for _, forged := range []string{
		strings.Replace(string(payload), `"kind"`, `"editOf":3,"kind"`, 1),
		strings.Replace(string(payload), `"text":"hello"`, `"text":"hello","x":1`, 1),
		strings.Replace(string(payload), `"sig"`, `"more":1,"sig"`, 1),
		strings.ToUpper(string(payload)),
	} {
		if e, _ := split(jsontext.Value(forged)); keys.verify(e) {
			t.Errorf("%s verifies", forged)
		}
	}

	e, _ := split(payload)
	upper := envelope{e.Body, strings.ToUpper(e.Signature)}
	if keys.verify(upper) {
		t.Error("a signature in upper case verifies")
	}
	undomained := envelope{e.Body, hex.EncodeToString(hmacOf([]byte("0123456789abcdef0123456789abcdef"), e.Body))}
	if keys.verify(undomained) {
		t.Error("a MAC without the domain verifies")
	}

	old, new := bytes.Repeat([]byte("o"), 32), bytes.Repeat([]byte("n"), 32)
	oldKeys, err := NewKeys(old)
	if err != nil {
		t.Fatal(err)
	}
	signed, _ := split(oldKeys.signUser("talk", nil, "m", "x", time.UnixMilli(1)))
	both, _ := NewKeys(new, old)
	onlyNew, _ := NewKeys(new)
	if !both.verify(signed) || onlyNew.verify(signed) {
		t.Errorf("with the old key as a previous one %v, after it was dropped %v; want true, false", both.verify(signed), onlyNew.verify(signed))
	}
	signed, _ = split(both.signUser("talk", nil, "m", "x", time.UnixMilli(1)))
	if !onlyNew.verify(signed) {
		t.Error("a previous key was used to sign")
	}
	if (Keys{}).verify(signed) {
		t.Error("no key verifies")
	}
}

// A signed body of the wrong shape is told from a right one (C-12.2, C-27.2).
func TestShapeOfBodies(t *testing.T) {
	key := strings.Repeat("ab", 32)
	base := map[string]string{
		"conversationId": `"talk"`, "kind": `"user"`, "id": `"` + key + `"`, "iat": `1`, "text": `"hello"`, "asker": `{"actor":"ann"}`,
	}
	for _, test := range []struct {
		name, field, value string
		ok                 bool
	}{
		{"as it is", "", "", true},
		{"no asker", "asker", "", true},
		{"an edit", "editOf", "7", true},
		{"no text", "text", "", false},
		{"an empty text", "text", `""`, false},
		{"a text that is none", "text", `7`, false},
		{"another kind", "kind", `"notice"`, false},
		{"no kind", "kind", "", false},
		{"a close with a text", "kind", `"close"`, false},
		{"no id", "id", "", false},
		{"a short id", "id", `"ab"`, false},
		{"an id in upper case", "id", `"` + strings.ToUpper(key) + `"`, false},
		{"no time", "iat", "", false},
		{"a negative time", "iat", "-1", false},
		{"a fraction of a time", "iat", "1.5", false},
		{"a huge time", "iat", "1e300", false},
		{"a time past 2^53", "iat", "9007199254740992", false},
		{"an asker without an actor", "asker", `{"tenant":"acme"}`, false},
		{"an asker that is none", "asker", `"ann"`, false},
		{"an asker with a token", "asker", `{"actor":"ann","credential":"x"}`, false},
		{"an edit of nothing", "editOf", "0", false},
		{"an edit of less", "editOf", "-1", false},
		{"an edit of a word", "editOf", `"1"`, false},
		{"an unknown field", "classes", `[]`, false},
	} {
		fields := map[string]string{}
		for name, value := range base {
			fields[name] = value
		}
		if test.field != "" {
			fields[test.field] = test.value
		}
		var members []string
		for name, value := range fields {
			if value != "" {
				members = append(members, fmt.Sprintf("%q:%s", name, value))
			}
		}
		e := envelope{Body: jsontext.Value("{" + strings.Join(members, ",") + "}")}
		if _, ok := e.read(); ok != test.ok {
			t.Errorf("%s: read(%s) = %v, want %v", test.name, e.Body, ok, test.ok)
		}
	}
}

// Keys show themselves to nobody (C-41.3), and short ones are refused (C-11.4).
func TestKeys(t *testing.T) {
	const secret = "0123456789abcdef0123456789abcdef"
	keys := testKeys(t)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "keys", keys)
	shown := log.String()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		shown += fmt.Sprintf(verb, keys)
	}
	if data, err := json.Marshal(keys); err == nil {
		shown += string(data)
	}
	if strings.Contains(shown, secret[:8]) || strings.Contains(shown, hex.EncodeToString([]byte(secret))[:8]) {
		t.Errorf("keys print themselves: %s", shown)
	}
	long, short := bytes.Repeat([]byte("k"), MinKeyBytes), bytes.Repeat([]byte("k"), MinKeyBytes-1)
	for _, refused := range [][][]byte{{short}, {nil}, {long, short}} {
		if keys, err := NewKeys(refused[0], refused[1:]...); err == nil || !keys.IsZero() {
			t.Errorf("NewKeys of %d keys, one short, gives no error", len(refused))
		}
	}
}

// No payload makes the reader of envelopes fail, and none verifies that the key
// did not sign.
func FuzzEnvelope(f *testing.F) {
	keys := testKeys(f)
	f.Add([]byte(keys.signUser("talk", &ann.Identity, "m1", "hello", time.UnixMilli(1))))
	f.Add([]byte(keys.signClose("talk", nil, "m2", time.UnixMilli(1))))
	f.Add([]byte(`{"body":{},"sig":""}`))
	f.Add([]byte(`{"body":null,"sig":null}`))
	f.Add([]byte(`[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]`))
	other, err := NewKeys(bytes.Repeat([]byte("z"), 32))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		payload := jsontext.Value(data)
		if !payload.IsValid() {
			return // the kernel takes no such payload
		}
		isDeep(payload)
		e, object := split(payload)
		if !object && (len(e.Body) > 0 || e.Signature != "") {
			t.Errorf("%q is no object and has a body", data)
		}
		b, ok := e.read()
		if ok && (b.Asker != nil && b.Asker.Actor == "" || !isSenderKey(b.ID) || b.Kind != KindUser && b.Kind != KindClose) {
			t.Errorf("%q is read as %+v", data, b)
		}
		if other.verify(e) {
			t.Errorf("%q verifies under a key that signed nothing", data)
		}
	})
}

// hmacOf is the MAC of a body without its domain.
func hmacOf(key, data []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(data)
	return h.Sum(nil)
}
