package eliza

import "strings"

// reflect turns the words of one speaker into those of the other: what was
// said to ELIZA about "my sister and you" comes back as "your sister and me".
func reflect(words []word) string {
	out := make([]string, len(words))
	subject := false // the word before was "you", which became "I"
	for i, w := range words {
		switch {
		case w.low == "you":
			subject = i == 0 && len(words) > 1 || i+1 < len(words) && verbs[words[i+1].low]
			out[i] = "me"
			if subject {
				out[i] = "I"
			}
			continue
		case w.low == "are" && subject:
			out[i] = "am"
		case w.low == "were" && subject:
			out[i] = "was"
		case w.low == "was" && i > 0 && words[i-1].low == "i":
			out[i] = "were"
		default:
			out[i] = w.raw
			if other, ok := mirror[w.low]; ok {
				out[i] = other
			}
		}
		subject = false
	}
	return strings.Join(out, " ")
}

var mirror = map[string]string{
	"i": "you", "me": "you", "my": "your", "mine": "yours", "myself": "yourself", "am": "are",
	"your": "my", "yours": "mine", "yourself": "myself",
}

// verbs follow a "you" that is a subject.
var verbs = func() map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(`are were have had do did don't didn't can can't could couldn't will won't would
		should must may might think know say said like love hate want need feel seem look make made understand`) {
		set[w] = true
	}
	return set
}()
