// Package pace is how the models that ship with Parley spend time: they wait
// under a context and say a text word by word.
package pace

import (
	"context"
	"iter"
	"time"
	"unicode"
	"unicode/utf8"
)

// Wait waits for d, or until ctx is done, and returns ctx.Err() in that case.
// A ctx that is done already is reported even where d is 0.
func Wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Words yields the text piece by piece, each piece a word with the white space
// behind it. The pieces concatenate to the text, and none is empty.
func Words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			end := wordEnd(text)
			if !yield(text[:end]) {
				return
			}
			text = text[end:]
		}
	}
}

// wordEnd returns where the second word begins.
func wordEnd(text string) int {
	inWord, spaceSeen := false, false
	for i, r := range text {
		space := unicode.IsSpace(r)
		if !space && inWord && spaceSeen {
			return i
		}
		inWord = inWord || !space
		spaceSeen = space && inWord
	}
	return len(text)
}

// Count returns the number of words of a text, which is how these models
// report their usage.
func Count(text string) int {
	n, inWord := 0, false
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		space := unicode.IsSpace(r)
		if !space && !inWord {
			n++
		}
		inWord = !space
	}
	return n
}
