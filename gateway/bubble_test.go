package gateway

import (
	"bytes"
	"regexp"
	"runtime"
	"testing"
	"testing/synctest"
)

// bubbleOf finds the number of a goroutine's bubble in the head of its stack.
var bubbleOf = regexp.MustCompile(`^goroutine \d+ \[[^\]]*(synctest bubble \d+)[\],]`)

// goroutines counts those of the caller's bubble. Those of other tests, and of the
// process, come and go meanwhile.
func goroutines() int {
	own := make([]byte, 1<<10)
	found := bubbleOf.FindSubmatch(own[:runtime.Stack(own, false)])
	if found == nil {
		panic("goroutines are counted in a bubble alone")
	}
	stacks := make([]byte, 1<<20)
	n := runtime.Stack(stacks, true)
	for n == len(stacks) {
		stacks = make([]byte, 2*len(stacks))
		n = runtime.Stack(stacks, true)
	}
	count := 0
	for stack := range bytes.SplitSeq(stacks[:n], []byte("\n\n")) {
		if in := bubbleOf.FindSubmatch(stack); in != nil && bytes.Equal(in[1], found[1]) {
			count++
		}
	}
	return count
}

// The count sees each goroutine of the bubble, and none from outside.
func TestGoroutinesOfBubble(t *testing.T) {
	outside := make(chan struct{})
	for range 3 {
		go func() { <-outside }()
	}
	defer close(outside)
	synctest.Test(t, func(t *testing.T) {
		before, held := goroutines(), make(chan struct{})
		for range 5 {
			go func() { <-held }()
		}
		synctest.Wait()
		if now := goroutines(); now != before+5 {
			t.Errorf("%d goroutines, and %d before; want 5 more", now, before)
		}
		close(held)
		synctest.Wait()
		if now := goroutines(); now != before {
			t.Errorf("%d goroutines are left, and %d were before", now, before)
		}
	})
}
