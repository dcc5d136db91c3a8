package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/model"
)

// TestStreamIsBounded: neither a reply nor a line of it grows without end.
func TestStreamIsBounded(t *testing.T) {
	line := strings.Repeat("x", 1<<20-1) + "\n"
	for _, tt := range []struct {
		name string
		from io.Reader
		want error
	}{
		{"lines", strings.NewReader(strings.Repeat("abc\n", 1000)), nil},
		{"a long line", strings.NewReader(strings.Repeat("x", maxLineBytes) + "\n"), nil},
		{"a line too long", strings.NewReader(strings.Repeat("x", maxLineBytes+1)), model.ErrMalformed},
		{"a long reply", io.MultiReader(repeat(line, maxReplyBytes>>20)...), nil},
		{"a reply too long", io.MultiReader(repeat(line, maxReplyBytes>>20+1)...), model.ErrMalformed},
		{"a cut", iotest.TimeoutReader(strings.NewReader(line)), model.ErrCut},
	} {
		_, err := io.Copy(io.Discard, &stream{ReadCloser: io.NopCloser(tt.from)})
		if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

func repeat(text string, n int) []io.Reader {
	readers := make([]io.Reader, n)
	for i := range readers {
		readers[i] = strings.NewReader(text)
	}
	return readers
}

// TestDoorKeepsTheKey: the key is in the request that goes out, and neither in
// the one that came nor in what the answer refers to.
func TestDoorKeepsTheKey(t *testing.T) {
	const key = "sk-key"
	sent := ""
	client := &http.Client{Transport: roundTrip(func(req *http.Request) *http.Response {
		sent = req.Header.Get("Authorization")
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}
	})}
	door := NewDoor(client, Key{Header: "Authorization", Prefix: "Bearer ", Secret: identity.NewSecret(key)})
	req := httptest.NewRequest(http.MethodPost, "http://example.com/", nil)
	req.RequestURI = ""
	req.Header.Set("Authorization", "Bearer placeholder")
	res, err := door.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if sent != "Bearer "+key {
		t.Errorf("Authorization: %s is sent, want the key", sent)
	}
	for _, text := range []string{fmt.Sprint(req.Header), fmt.Sprint(res.Request.Header), fmt.Sprintf("%+v %#v", door, door)} {
		if strings.Contains(text, key) {
			t.Errorf("the key is in %s", text)
		}
	}
}

type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req), nil }

// FuzzMend checks, for every stream and however the network cuts it, that what
// is mended is valid UTF-8, that joining it is too, and that a stream without
// halves passes as it is.
func FuzzMend(f *testing.F) {
	for _, seed := range []string{
		"data: {\"a\":\"b\"}\n\n", "\xf0\x9f\x99\x82", "\xf0\x9f", "\\ud83d\\ude42", "\\ud83d", "\\ude42\\ud83d\\u00e9\\",
		"\\u", "\\ud8", "\\\\ud83d", "\U0010F03D\U0010FE9F", "\\\xff", "\xff\xc0\x80\xed\xa0\x80",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		mend := func(from io.Reader) []byte {
			mended, err := io.ReadAll(newMender(io.NopCloser(from)))
			if err != nil {
				t.Fatalf("read: %v", err)
			}
			return mended
		}
		mended := mend(bytes.NewReader(data))
		if again := mend(iotest.OneByteReader(bytes.NewReader(data))); !bytes.Equal(mended, again) {
			t.Errorf("%q mends to %q, and byte by byte to %q", data, mended, again)
		}
		if !utf8.Valid(mended) {
			t.Errorf("%q mends to %q, which is not valid UTF-8", data, mended)
		}
		if utf8.Valid(data) && !bytes.Contains(data, []byte(`\u`)) && !bytes.Equal(mended, data) {
			t.Errorf("%q mends to %q, want it as it is", data, mended)
		}
		text := string(mended)
		var j joiner
		var parts strings.Builder
		for _, r := range text {
			parts.WriteString(j.join(string(r)))
		}
		parts.WriteString(j.rest())
		if whole := joined(text); whole != parts.String() || !utf8.ValidString(whole) {
			t.Errorf("%q joins to %q, and piece by piece to %q", text, whole, parts.String())
		}
	})
}
