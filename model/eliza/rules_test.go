package eliza

import (
	"strings"
	"testing"
)

// TestRulesHold looks at every rule: its patterns and lines must be such that
// no text can make ELIZA fail or fall silent.
func TestRulesHold(t *testing.T) {
	m := newMind(rules())
	if n := len(m.byKey); n < 30 {
		t.Errorf("%d keywords, want 30 or more", n)
	}
	for _, r := range rules() {
		if last := r.branches[len(r.branches)-1].match; last != "*" {
			t.Errorf("rule %q ends with pattern %q, want one that matches all", r.keys, last)
		}
		for _, b := range r.branches {
			parts := 0
			for element := range strings.FieldsSeq(b.match) {
				if strings.ContainsAny(element, "*+?|") {
					parts++
				}
			}
			if len(b.say) == 0 {
				t.Errorf("rule %q, pattern %q says nothing", r.keys, b.match)
			}
			for _, line := range append(b.say, b.keep...) {
				if other, ok := strings.CutPrefix(line, "="); ok {
					if hands := handsOver(m, other, 0); hands > 3 {
						t.Errorf("rule %q hands over to %q, and that on and on", r.keys, other)
					}
					continue
				}
				for i := strings.IndexByte(line, '{'); i >= 0; {
					if n := int(line[i+1] - '0'); line[i+2] != '}' || n < 1 || n > parts {
						t.Errorf("line %q of pattern %q names part %d of %d", line, b.match, n, parts)
					}
					next := strings.IndexByte(line[i+1:], '{')
					if next < 0 {
						break
					}
					i += 1 + next
				}
			}
		}
	}
}

// handsOver returns how often a rule can hand a clause on.
func handsOver(m *mind, key string, depth int) int {
	if m.byKey[key] == nil || depth > 9 {
		return 10
	}
	deepest := depth
	for _, b := range m.byKey[key].branches {
		for _, line := range b.say {
			if other, ok := strings.CutPrefix(line, "="); ok {
				deepest = max(deepest, handsOver(m, other, depth+1))
			}
		}
	}
	return deepest
}

func TestReflection(t *testing.T) {
	for said, want := range map[string]string{
		"my sister and you":          "your sister and me",
		"I was late":                 "you were late",
		"you are kind to me":         "I am kind to you",
		"they know that you are ill": "they know that I am ill",
		"I am yours":                 "you are mine",
		"I'm proud of myself":        "you are proud of yourself",
		"Paris":                      "Paris",
	} {
		if got := reflect(clausesOf(said)[0]); got != want {
			t.Errorf("reflect(%q) = %q, want %q", said, got, want)
		}
	}
}

func TestClausesAreBounded(t *testing.T) {
	clauses := clausesOf(strings.Repeat("word ", 100_000) + strings.Repeat("x", 100_000))
	if len(clauses) != 1 || len(clauses[0]) != maxClauseWords {
		t.Errorf("%d clauses, the first of %d words, want 1 of %d", len(clauses), len(clauses[0]), maxClauseWords)
	}
	long := clausesOf(strings.Repeat("ü", 5_000))
	if got := len([]rune(long[0][0].raw)); got != maxWordRunes+1 {
		t.Errorf("a word of %d runes is repeated, want %d and an ellipsis", got, maxWordRunes)
	}
}
