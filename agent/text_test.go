package agent

import (
	"encoding/json/v2"
	"strings"
	"testing"
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
