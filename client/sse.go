package client

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

const (
	// maxEventBytes bounds one event of a stream: the largest record, every byte
	// of its text escaped, and more.
	maxEventBytes = 4 << 20
	// maxIDBytes bounds the id of an event.
	maxIDBytes = 64
)

// frame is one event as it stands in a stream. Of its id and data, what is not
// there is "".
type frame struct {
	event string
	id    string
	retry time.Duration
	data  string
}

// frameReader reads the frames of a stream of server-sent events as WHATWG
// describes it. It holds one frame at most.
type frameReader struct {
	in      *bufio.Reader
	heard   func() // called for each line, comments included
	afterCR bool   // the last line ended with CR: a LF that follows belongs to it
	begun   bool
}

func newFrameReader(in io.Reader, heard func()) *frameReader {
	return &frameReader{in: bufio.NewReader(in), heard: heard}
}

// next returns the next frame that has data. A frame that the end of the stream
// cuts off is dropped, and the error is io.EOF.
func (r *frameReader) next() (frame, error) {
	var f frame
	var data []string
	size := 0
	for {
		line, err := r.line(maxEventBytes - size)
		if err != nil {
			return frame{}, err
		}
		size += len(line) + 1
		r.heard()
		if line == "" {
			if data != nil {
				f.data = strings.Join(data, "\n")
				return f, nil
			}
			f, size = frame{}, 0
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "": // a comment
			size -= len(line) + 1
		case "event":
			f.event = value
		case "data":
			data = append(data, value)
		case "id":
			if len(value) <= maxIDBytes && !strings.Contains(value, "\x00") {
				f.id = value
			}
		case "retry":
			if ms, err := strconv.ParseUint(value, 10, 31); err == nil {
				f.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// line reads one line of at most limit bytes, without its end: LF, CR or CRLF.
func (r *frameReader) line(limit int) (string, error) {
	var line []byte
	for {
		if _, err := r.in.Peek(1); err != nil {
			return "", err
		}
		ahead, _ := r.in.Peek(r.in.Buffered())
		if r.afterCR && ahead[0] == '\n' {
			r.afterCR = false
			r.in.Discard(1)
			continue
		}
		r.afterCR = false
		end := bytes.IndexAny(ahead, "\r\n")
		text := ahead
		if end >= 0 {
			text = ahead[:end]
		}
		if len(line)+len(text) > limit {
			return "", fmt.Errorf("%w: an event of more than %d bytes", ErrProtocol, maxEventBytes)
		}
		line = append(line, text...)
		if end >= 0 {
			r.afterCR = ahead[end] == '\r'
			r.in.Discard(end + 1)
			break
		}
		r.in.Discard(len(ahead))
	}
	text := string(line)
	if !r.begun {
		r.begun = true
		text = strings.TrimPrefix(text, "\ufeff")
	}
	return text, nil
}
