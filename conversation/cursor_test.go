package conversation

import (
	"encoding/json/v2"
	"errors"
	"strings"
	"testing"
)

// C-17.5, C-17.7: the exact wire form, and nothing else.
func TestParseCursor(t *testing.T) {
	for _, text := range []string{"0.0", "0.1", "12.345", "999999999999999.999999999999999", "999999999.0"} {
		c, err := ParseCursor(text)
		if err != nil || c.String() != text {
			t.Errorf("ParseCursor(%q) = %v, %v; want it back", text, c, err)
		}
	}
	for _, text := range []string{
		"", ".", "0", "1.", ".1", "1.2.3", "-1.0", "1.-0", "+1.0", "01.0", "1.00", "1,0", " 1.0", "1.0 ", "1.0\n",
		"1e3.0", "0x1.0", "1.0\x00", "١.٠", "e.18446744073709551615", "1000000000000000.0", "0.1000000000000000",
		strings.Repeat("9", 1<<20) + ".0",
	} {
		c, err := ParseCursor(text)
		if !errors.Is(err, ErrInvalidCursor) || c != (Cursor{}) {
			t.Errorf("ParseCursor(%.20q) = %v, %v; want ErrInvalidCursor", text, c, err)
		}
		if err != nil && err.Error() != ErrInvalidCursor.Text {
			t.Errorf("ParseCursor(%.20q): the error says %q, want nothing of the text", text, err)
		}
	}
}

// C-17.5: in JSON a cursor is its text, and a record without one has none.
func TestCursorJSON(t *testing.T) {
	data, err := json.Marshal(Record{Cursor: Cursor{Generation: 3, Seq: 41}})
	if err != nil || !strings.Contains(string(data), `"cursor":"3.41"`) {
		t.Errorf("Marshal of a record at 3.41: %s, %v", data, err)
	}
	data, err = json.Marshal(Record{})
	if err != nil || strings.Contains(string(data), "cursor") {
		t.Errorf("Marshal of a record without a cursor: %s, %v; want no cursor", data, err)
	}
	var r Record
	if err := json.Unmarshal([]byte(`{"cursor":"7.8"}`), &r); err != nil || r.Cursor != (Cursor{7, 8}) {
		t.Errorf("Unmarshal: %v, %v; want 7.8", r.Cursor, err)
	}
	if err := json.Unmarshal([]byte(`{"cursor":"7.08"}`), &r); err == nil {
		t.Error("Unmarshal of cursor 7.08: no error")
	}
}

// C-17.6: whatever is accepted is written back unchanged.
func FuzzParseCursor(f *testing.F) {
	for _, text := range []string{"0.0", "1.2", "999999999999999.1", "00.0", "1.2.3", "-1.0", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCursor(text)
		switch {
		case err == nil && (c.String() != text || c.Generation < 0 || c.Seq < 0 || c.Seq > endOfGeneration):
			t.Errorf("ParseCursor(%q) = %v", text, c)
		case err != nil && (!errors.Is(err, ErrInvalidCursor) || c != (Cursor{})):
			t.Errorf("ParseCursor(%q) = %v, %v", text, c, err)
		}
	})
}
