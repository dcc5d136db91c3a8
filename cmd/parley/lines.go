package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
)

// maxLine is the longest line that is read; the server's own bound on a text is
// smaller.
const maxLine = 1 << 20

// terminalLine is how many bytes of a line a terminal of Linux keeps; it drops
// the others without a word.
const terminalLine = 4095

// input is the lines of a reader, as they come.
type input struct {
	lines chan string // closed at the end
	err   error       // why the lines end; nil at the end of the input. Read it when lines is closed
}

// readLines reads lines until the input ends or ctx is done. A read cannot be cut
// off: it may wait on for a line that never comes, and ends with the process.
func readLines(ctx context.Context, in io.Reader) *input {
	i := &input{lines: make(chan string)}
	go func() {
		defer close(i.lines)
		scanner := bufio.NewScanner(in)
		scanner.Buffer(nil, maxLine)
		for scanner.Scan() {
			select {
			case i.lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
		switch err := scanner.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			i.err = fmt.Errorf("a line is longer than %d bytes; send it in pieces", maxLine)
		case err != nil:
			i.err = fmt.Errorf("read a line: %w", err)
		}
	}()
	return i
}
