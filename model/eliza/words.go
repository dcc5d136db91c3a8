package eliza

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what ELIZA listens to. A person does not reach them; whoever does
// is answered all the same, from the beginning of what he wrote.
const (
	maxTextBytes   = 8 << 10
	maxClauseWords = 60
	maxWordRunes   = 40
)

// word is one word of a text: how it is compared, and how it is repeated.
type word struct{ low, raw string }

// clause is what stands between two marks of punctuation.
type clause []word

// clausesOf splits a text into clauses. The word "but" ends a clause too, as
// what follows it is another thought.
func clausesOf(text string) []clause {
	var all []clause
	var now clause
	end := func() {
		if len(now) > 0 {
			all = append(all, now)
		}
		now = nil
	}
	rest := head(text, maxTextBytes)
	for rest != "" {
		i := strings.IndexFunc(rest, notOfWord)
		if i != 0 {
			if i < 0 {
				i = len(rest)
			}
			raw := strings.Trim(strings.ReplaceAll(rest[:i], "’", "'"), "'-")
			if strings.EqualFold(raw, "but") {
				end()
			} else if raw != "" && len(now) < maxClauseWords {
				now = append(now, wordsOf(raw)...)
			}
			rest = rest[i:]
			continue
		}
		r, size := utf8.DecodeRuneInString(rest)
		if strings.ContainsRune(".,;:!?()[]{}\"“”…。，！？、", r) || r == '\n' {
			end()
		}
		rest = rest[size:]
	}
	end()
	return all
}

// notOfWord reports a rune that no word holds.
func notOfWord(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsNumber(r) &&
		!unicode.Is(unicode.So, r) && r != '\'' && r != '’' && r != '-' && r != '\u200d' && r != '%' && r != '&'
}

// wordsOf returns the word, or the words that a contraction stands for.
func wordsOf(raw string) []word {
	low := strings.ToLower(raw)
	if long, ok := contractions[low]; ok {
		var words []word
		for w := range strings.FieldsSeq(long) {
			words = append(words, word{low: w, raw: w})
		}
		return words
	}
	if utf8.RuneCountInString(raw) > maxWordRunes {
		raw = string([]rune(raw)[:maxWordRunes]) + "…"
	}
	if ordinary[low] {
		raw = low
	}
	return []word{{low: low, raw: raw}}
}

// contractions are opened before anything is compared.
var contractions = map[string]string{
	"i'm": "i am", "im": "i am", "i've": "i have", "i'll": "i will", "i'd": "i would",
	"you're": "you are", "youre": "you are", "you've": "you have", "you'll": "you will", "you'd": "you would",
	"he's": "he is", "she's": "she is", "it's": "it is", "that's": "that is", "there's": "there is",
	"they're": "they are", "we're": "we are", "we've": "we have",
	"what's": "what is", "whats": "what is", "who's": "who is", "where's": "where is", "how's": "how is",
	"dont": "don't", "cant": "can't", "cannot": "can't", "wont": "won't", "couldnt": "couldn't",
}

// ordinary words lose the capital that they have at the start of a sentence.
// Others keep it, as it may be a name's.
var ordinary = func() map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(`a all always an and are because can could did do does everybody everyone everything
		he her his how if in is it its maybe most never no nobody nothing of on our people perhaps she so some somebody
		someone something sometimes that the their them then there these they this those to we what when where which
		who why with would yes`) {
		set[w] = true
	}
	return set
}()

// head returns at most n bytes of text, cut between two code points.
func head(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
