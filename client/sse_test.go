package client

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func frames(text string) ([]frame, error) {
	var all []frame
	r := newFrameReader(iotest.OneByteReader(strings.NewReader(text)), func() {})
	for {
		f, err := r.next()
		if err != nil {
			return all, err
		}
		all = append(all, f)
	}
}

// The format as WHATWG describes it.
func TestFrames(t *testing.T) {
	for _, test := range []struct {
		text string
		want []frame
	}{
		{"", nil},
		{"data: a\n\n", []frame{{data: "a"}}},
		{"data:a\n\ndata:  b\n\n", []frame{{data: "a"}, {data: " b"}}},
		{"event: x\nid: 1.2\nretry: 1500\ndata: a\n\n", []frame{{"x", "1.2", 1500 * time.Millisecond, "a"}}},
		{"data: a\r\rdata: b\r\n\r\ndata: c\n\n", []frame{{data: "a"}, {data: "b"}, {data: "c"}}},
		{"data: a\ndata: b\ndata\n\n", []frame{{data: "a\nb\n"}}},
		{"data\n\n", []frame{{data: ""}}},
		{":\n\n: comment\n\ndata: a\n\n", []frame{{data: "a"}}},
		{"event: x\n\ndata: a\n\n", []frame{{data: "a"}}}, // what has no data is dropped
		{"id: 1\n\ndata: a\n\n", []frame{{data: "a"}}},
		{"data: cut off\n", nil},
		{"data: a\n\ndata: cut off", []frame{{data: "a"}}},
		{"\ufeffdata: a\n\n", []frame{{data: "a"}}},
		{"\ufeff\ufeffdata: a\n\n", nil},
		{"retry: -1\nretry: 1e3\nretry: 99999999999999\nid: a\x00b\nid: " + strings.Repeat("1", 65) + "\ndata: a\n\n", []frame{{data: "a"}}},
		{"Data: a\nda ta: b\n data: c\ndata: d\n\n", []frame{{data: "d"}}},
	} {
		got, err := frames(test.text)
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(frame{})); diff != "" || err != io.EOF {
			t.Errorf("%.60q: %v (-want +got):\n%s", test.text, err, diff)
		}
	}
}

// A server cannot make a reader hold more than one event of 4 MiB, in one line
// or in many.
func TestFramesAreBounded(t *testing.T) {
	for name, text := range map[string]string{
		"one line":        "data: " + strings.Repeat("x", maxEventBytes+1),
		"many lines":      strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", maxEventBytes/1000+1),
		"empty lines":     strings.Repeat("data\n", maxEventBytes),
		"unknown fields":  strings.Repeat("x: "+strings.Repeat("x", 1000)+"\n", maxEventBytes/1000+1),
		"a long comment":  ":" + strings.Repeat("x", maxEventBytes+1),
		"a name and more": strings.Repeat("x", maxEventBytes+1) + ": a\n\n",
	} {
		r := newFrameReader(strings.NewReader(text), func() {})
		if _, err := r.next(); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v; want ErrProtocol", name, err)
		}
	}
	r := newFrameReader(strings.NewReader(strings.Repeat(": "+strings.Repeat("x", 1000)+"\n", 2*maxEventBytes/1000)+"data: a\n\n"), func() {})
	if f, err := r.next(); err != nil || f.data != "a" {
		t.Errorf("after many comments: %+v, %v", f, err)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add("event: message\nid: 0.1\ndata: {}\n\n:\n\n")
	f.Add("\r\r\n\ndata\r")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := frames(text)
		if err != io.EOF {
			t.Errorf("%v", err)
		}
		for _, f := range all {
			if strings.ContainsAny(f.event+f.id, "\r\n") || strings.Contains(f.data, "\r") || len(f.id) > maxIDBytes || f.retry < 0 {
				t.Errorf("frame %+v", f)
			}
		}
		// However its lines end, a text is the same frames.
		if unix := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text); true {
			again, _ := frames(unix)
			if diff := cmp.Diff(all, again, cmp.AllowUnexported(frame{})); diff != "" {
				t.Errorf("with LF alone (-as it was +now):\n%s", diff)
			}
		}
	})
}
