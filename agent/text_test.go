package agent

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
)

// The cost of a text in JSON is counted as the encoder counts it.
func TestEncodedLen(t *testing.T) {
	for _, text := range []string{"", "plain", "\"\\/\b\f\n\r\t", "\x00\x1f\x7f", "é<>&\u2028", "\U0010FFFF"} {
		data, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := encodedLen(text), len(data)-len(`""`); got != want {
			t.Errorf("encodedLen(%q) = %d, want %d", text, got, want)
		}
	}
}

// A text at the limit is left alone; one byte more, and it is cut between two
// code points.
func TestCutAtTheLimit(t *testing.T) {
	const remark = "[cut]"
	for _, unit := range []string{"a", "é", "\n", "\x02"} {
		whole := newRoom(remark)
		n := min(whole.raw/len(unit), whole.encoded/encodedLen(unit))
		fits := strings.Repeat(unit, n)
		if got := cut(fits, remark); got != fits {
			t.Errorf("%d times %q is cut", n, unit)
		}
		got := cut(fits+unit, remark)
		if got != fits+remark {
			t.Errorf("%d times %q: cut to %d bytes that end with %q", n+1, unit, len(got), got[len(got)-10:])
		}
		if len(got) > MaxTextBytes || encodedLen(got) > maxEncodedBytes {
			t.Errorf("%q: the cut text has %d bytes, %d in JSON", unit, len(got), encodedLen(got))
		}
	}
}

// The words of several rounds together are bounded as those of one, and what is
// shown is what the reply says: none is shown that is not on record (C-28.6).
func TestLongRepliesAreShownAsRecorded(t *testing.T) {
	for _, unit := range []string{"a", "é", "😀", "\x01"} {
		for _, first := range []int{MaxTextBytes / 2, MaxTextBytes - len(replyCut), MaxTextBytes} {
			synctest.Test(t, func(t *testing.T) {
				shown := ""
				l := newLab(t, modelFunc(func(_ context.Context, req model.Request, yield func(model.Chunk, error) bool) {
					if len(req.Messages) == 1 {
						if first == MaxTextBytes { // one round alone
							for yield(says(strings.Repeat(unit, 1000)), nil) {
							}
							return
						}
						_ = yield(says(strings.Repeat(unit, first/encodedLen(unit))), nil) && yield(calls("c", "look", "{}"), nil) && yield(ends(model.FinishCalls), nil)
						return
					}
					for yield(says(strings.Repeat(unit, 1001)), nil) {
					}
				}))
				l.def.OnDelta = func(_ context.Context, d Delta) { shown += d.Text }
				l.def.Tools = []Tool{toolFunc("look", kernel.Once, func(context.Context, jsontext.Value) (Result, error) { return Result{Text: "x"}, nil })}
				text := l.ask("go").Reply.Text
				if len(text) > MaxTextBytes || encodedLen(text) > maxEncodedBytes || !strings.HasSuffix(text, replyCut) {
					t.Errorf("%q, %d bytes first: a reply of %d bytes", unit, first, len(text))
				}
				if shown != text {
					same := 0
					for same < min(len(shown), len(text)) && shown[same] == text[same] {
						same++
					}
					t.Errorf("%q, %d bytes first: %d bytes were shown, %d are on record; they part at %d", unit, first, len(shown), len(text), same)
				}
			})
		}
	}
}
