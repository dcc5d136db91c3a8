package script

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Parse reads a script. Its errors begin with the name, and what is wrong in
// the script is a [*SyntaxError] with line and column.
func Parse(name string, data []byte) (*Model, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("%s: script is larger than %d bytes", name, MaxBytes)
	}
	p := &parser{}
	index := 0
	for text := range strings.Lines(string(data)) {
		index++
		l := &line{script: name, index: index, text: strings.TrimRight(text, "\n")}
		if err := p.read(l); err != nil {
			return nil, err
		}
	}
	return &Model{rules: p.rules}, nil
}

// parser is a script half read.
type parser struct {
	rules  []rule
	ended  bool // the block at hand is over
	closed bool // the last rule is met by every request in its rounds
}

// read takes in one line.
func (p *parser) read(l *line) error {
	if i := invalidAt(l.text); i >= 0 {
		l.last = i
		return l.errorf("this is not valid UTF-8")
	}
	switch word := l.word(); word {
	case "":
		return nil
	case "when", "otherwise":
		return p.beginRule(l, word)
	case "then":
		return p.beginRound(l)
	default:
		return p.addAction(l, word)
	}
}

func (p *parser) beginRule(l *line, word string) error {
	if p.closed {
		return l.errorf("no rule is met after otherwise")
	}
	var r rule
	if word == "otherwise" {
		p.closed = true
	} else {
		for {
			name := l.word()
			if name == "" {
				break
			}
			read, ok := conditions[name]
			if !ok {
				return l.errorf("unknown condition %s; there are is, has, replies, system and tool", excerpt(name))
			}
			holds, err := read(l)
			if err != nil {
				return err
			}
			r.conditions = append(r.conditions, holds)
		}
		if len(r.conditions) == 0 {
			return l.errorf("when needs a condition; a rule without one begins with otherwise")
		}
	}
	r.rounds = make([][]action, 1)
	p.rules = append(p.rules, r)
	p.ended = false
	return l.end()
}

func (p *parser) beginRound(l *line) error {
	if len(p.rules) == 0 {
		return l.errorf("then stands before the first rule")
	}
	r := &p.rules[len(p.rules)-1]
	r.rounds = append(r.rounds, nil)
	p.ended = false
	return l.end()
}

func (p *parser) addAction(l *line, word string) error {
	read, ok := actions[word]
	switch {
	case !ok:
		return l.errorf("unknown word %s at the start of a line", excerpt(word))
	case len(p.rules) == 0:
		return l.errorf("%s stands before the first rule", word)
	case p.ended:
		return l.errorf("%s stands behind the end of the reply", word)
	}
	act, err := read(l)
	if err != nil {
		return err
	}
	r := &p.rules[len(p.rules)-1]
	last := len(r.rounds) - 1
	r.rounds[last] = append(r.rounds[last], act)
	p.ended = enders[word]
	return l.end()
}

// invalidAt returns where a text stops being valid UTF-8, or -1.
func invalidAt(text string) int {
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)) {
			return i
		}
	}
	return -1
}
