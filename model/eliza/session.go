package eliza

import (
	"cmp"
	"slices"
	"strings"
)

// rule is what ELIZA knows about some keywords.
type rule struct {
	keys     string // separated by white space
	rank     int    // the keyword of the highest rank in a text decides
	branches []branch
}

// branch is one way to take a clause apart, with what can be made of it.
type branch struct {
	match string
	say   []string // used in turn; "=word" hands the clause to that word's rule
	keep  []string // used in turn, and said later, when a text has no keyword
	clock bool     // the clause asks for the time of day
}

// mind is the rules, ready for use. It never changes.
type mind struct {
	byKey map[string]*rule
	split map[*branch]pattern
	none  *branch
}

func newMind(rules []rule) *mind {
	m := &mind{byKey: map[string]*rule{}, split: map[*branch]pattern{}}
	for i := range rules {
		for key := range strings.FieldsSeq(rules[i].keys) {
			if m.byKey[key] != nil {
				panic("eliza: two rules for " + key)
			}
			m.byKey[key] = &rules[i]
		}
		for j := range rules[i].branches {
			b := &rules[i].branches[j]
			m.split[b] = parsePattern(b.match)
		}
	}
	m.none = &m.byKey[noKey].branches[0]
	return m
}

// session is one reading of a conversation from its beginning. What it
// remembers dies with it, and comes back when the conversation is read again.
type session struct {
	mind   *mind
	turns  map[*branch]int // lines used of say, and of keep
	kept   map[*branch]int
	memory []string
}

func newSession(m *mind) *session {
	return &session{mind: m, turns: map[*branch]int{}, kept: map[*branch]int{}}
}

// answer hears a text and returns the reply, and whether the text asks for
// the time of day.
func (s *session) answer(text string) (reply string, clock bool) {
	for _, found := range s.keywords(clausesOf(text)) {
		if reply, clock, ok := s.apply(found.rule, found.clause); ok {
			return reply, clock
		}
	}
	if len(s.memory) > 0 {
		reply, s.memory = s.memory[0], s.memory[1:]
		return reply, false
	}
	return s.next(s.mind.none, nil), false
}

// keyword is a keyword's rule with the clause that the word stands in.
type keyword struct {
	rule   *rule
	clause clause
}

// keywords finds the keywords of a text, those of the highest rank first and
// equal ones in the order of the text.
func (s *session) keywords(clauses []clause) []keyword {
	var found []keyword
	for _, c := range clauses {
		for _, w := range c {
			if r := s.mind.byKey[w.low]; r != nil {
				found = append(found, keyword{r, c})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b keyword) int { return cmp.Compare(b.rule.rank, a.rule.rank) })
	return found
}

// apply makes a reply by the first branch of a rule that fits the clause.
func (s *session) apply(r *rule, c clause) (reply string, clock, ok bool) {
	for i := range r.branches {
		b := &r.branches[i]
		parts, ok := s.mind.split[b].parts(c)
		if !ok {
			continue
		}
		if len(b.keep) > 0 {
			s.memory = append(s.memory, assemble(b.keep[s.kept[b]%len(b.keep)], parts))
			s.kept[b]++
		}
		line := s.next(b, parts)
		if other, ok := strings.CutPrefix(line, "="); ok {
			return s.apply(s.mind.byKey[other], c)
		}
		return line, b.clock, true
	}
	return "", false, false
}

// next returns the next line of a branch, assembled.
func (s *session) next(b *branch, parts [][]word) string {
	line := b.say[s.turns[b]%len(b.say)]
	s.turns[b]++
	if strings.HasPrefix(line, "=") {
		return line
	}
	return assemble(line, parts)
}
