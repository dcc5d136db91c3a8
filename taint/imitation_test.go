package taint

import (
	"strings"
	"testing"
	"unicode"
)

// neutralise breaks before a rune, so no single rune may read as everything from
// the beginning of the marker to beyond its break.
func TestReadingsAreShort(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		s := string(r)
		letters := reading(r, s)
		if strings.Contains(letters, pattern[:breakAt+1]) {
			t.Errorf("%U reads as %q", r, letters)
		}
		if strings.Trim(letters, latin) != "" {
			t.Errorf("%U reads as %q, want letters from a to z", r, letters)
		}
	}
}

// A letter of another alphabet that looks like none of ours ends an imitation;
// else prose in other scripts would be broken up.
func TestForeignLettersAreNotOverlooked(t *testing.T) {
	for _, r := range "xzXZ0279жЖλΩ日あ한אش" {
		if overlooked(r) || strings.ContainsAny(reading(r, string(r)), pattern) {
			t.Errorf("%q is overlooked (%t) or reads as %q", r, overlooked(r), reading(r, string(r)))
		}
	}
}

// The cost is linear, also for text made of imitations.
func BenchmarkNeutralise(b *testing.B) {
	for name, unit := range map[string]string{
		"prose":      "The quick brown fox parleys with the lazy dog. ",
		"japanese":   "日本語のテキスト、",
		"imitations": "parley-fence ",
		"stretched":  "PARLEY" + strings.Repeat(" ", 200) + "F\U000E0046\U000E0046 ENCE",
	} {
		b.Run(name, func(b *testing.B) {
			s := strings.Repeat(unit, 100_000/len(unit))
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				neutralise(s)
			}
		})
	}
}
