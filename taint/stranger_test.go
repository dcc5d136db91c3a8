package taint_test

import (
	"strings"
	"testing"

	"github.com/parley-run/parley/taint"
)

// C-8.3: what a stranger says of itself may stand in an instruction position if
// a person can see all of it, and comes through unchanged.
func TestStranger(t *testing.T) {
	for _, text := range []string{
		"", "Searches the wiki.", "First line.\n\tSecond line.", "Wetter für Köln, 東京 und Осло.",
		"⚠️ Deletes everything. ✅", "a fence of parsley", "x > y && <b>markup</b>",
	} {
		got, err := taint.Stranger(text, 100)
		if err != nil {
			t.Errorf("Stranger(%q) = %v, want it admitted", text, err)
		}
		if s, err := taint.Instruction(got); s != text || err != nil {
			t.Errorf("Instruction(Stranger(%q)) = %q, %v", text, s, err)
		}
	}
	if got, err := taint.Stranger("a\r\nb", 100); err != nil || got != taint.Plain("a\nb") {
		t.Errorf("Stranger of a line end of two characters = %v, %v, want one of one", got, err)
	}
}

// C-8.3, C-8.6: what hides, or what passes for the fence, is refused, by an error
// that repeats nothing of it.
func TestStrangerRefused(t *testing.T) {
	fence := taint.Fence(taint.Tainted("x", "y"))
	for name, test := range map[string]struct{ text, want string }{
		"too long":             {strings.Repeat("a", 101), "longer than 100 bytes"},
		"not UTF-8":            {"sekrit\xff", "not UTF-8"},
		"escape":               {"sekrit \x1b[2J", "control character U+001B"},
		"null":                 {"sekrit\x00", "control character U+0000"},
		"carriage return":      {"sekrit\rx", "control character U+000D"},
		"C1":                   {"sekrit\u009b", "control character U+009B"},
		"zero width space":     {"sek\u200Brit", "invisible character U+200B"},
		"zero width joiner":    {"sek\u200Drit", "invisible character U+200D"},
		"right to left":        {"sekrit\u202Etxt", "invisible character U+202E"},
		"isolate":              {"sekrit\u2066", "invisible character U+2066"},
		"byte order mark":      {"\uFEFFsekrit", "invisible character U+FEFF"},
		"tag letters":          {"sekrit\U000E0041", "invisible character U+E0041"},
		"variation selector":   {"sekrit\U000E0101", "invisible character U+E0101"},
		"colour after colour":  {"⚠\uFE0F\uFE0F sekrit", "invisible character U+FE0F"},
		"colour of nothing":    {" \uFE0F sekrit", "invisible character U+FE0F"},
		"line separator":       {"sekrit\u2028x", "invisible character U+2028"},
		"private use":          {"sekrit\uE000", "invisible character U+E000"},
		"hangul filler":        {"sekrit\u3164", "invisible character U+3164"},
		"the end of the fence": {"sekrit" + fence[strings.LastIndex(fence, "\n"):], "imitates the fence"},
		"a fence":              {fence, "imitates the fence"},
		"a lookalike of it":    {"sekrit pаrley-fеnce", "imitates the fence"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := taint.Stranger(test.text, 100)
			if test.want == "imitates the fence" {
				got, err = taint.Stranger(test.text, 1000)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || !got.IsZero() {
				t.Fatalf("Stranger = %v, %v, want %q", got, err, test.want)
			}
			if strings.Contains(err.Error(), "sek") {
				t.Errorf("Stranger = %v, which repeats the text", err)
			}
		})
	}
}

// FuzzStranger holds what is admitted against the promise: valid, within the
// limit, plain, and the same when it is looked at again.
func FuzzStranger(f *testing.F) {
	for _, text := range []string{"plain", "a\r\nb", "⚠️", "parley fence", "\u202E", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := taint.Stranger(text, 64)
		if err != nil {
			return
		}
		admitted, err := taint.Instruction(got)
		if err != nil || len(admitted) > 64 || strings.Contains(admitted, "\r") {
			t.Fatalf("Stranger(%q) = %q, %v", text, admitted, err)
		}
		if again, err := taint.Stranger(admitted, 64); again != got || err != nil {
			t.Errorf("Stranger(%q) = %v, %v the second time", admitted, again, err)
		}
	})
}
