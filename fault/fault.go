// Package fault holds errors that keep their identity through a log and over
// a wire.
//
// Declare a sentinel with [New]; record or send [CodeOf] of an error; turn the
// code back into an error with [FromCode]. errors.Is finds the sentinel on the
// far side by its code. The text of an error never travels: it may hold what
// others should not see (C-25.3).
package fault

// Error is an error with a stable code. Two Errors are the same error, for
// errors.Is, if their codes are equal.
type Error struct {
	Code string // as it stands in logs and on the wire, such as "DENIED"
	Text string // for people; not part of the identity
}

// New returns a sentinel with the given code and text. It panics on an empty
// code, which means "no error" in a log.
func New(code, text string) *Error {
	if code == "" {
		panic("fault: a sentinel needs a code")
	}
	return &Error{Code: code, Text: text}
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// Is reports whether target is an Error of the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Coder is an error that names its own code, such as one that carries data.
type Coder interface {
	error
	FaultCode() string
}

// CodeFailed is the code of an error that has none of its own.
const CodeFailed = "FAILED"

// CodeOf returns the code of the outermost coded error in err's tree, depth
// first, [CodeFailed] where there is none, and "" for nil alone: no failure is
// ever recorded as a success.
func CodeOf(err error) string {
	if err == nil {
		return ""
	}
	if code := find(err); code != "" {
		return code
	}
	return CodeFailed
}

// find returns the first code in err's tree, or "".
func find(err error) string {
	for err != nil {
		if code := own(err); code != "" {
			return code
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, branch := range e.Unwrap() {
				if code := find(branch); code != "" {
					return code
				}
			}
			return ""
		default:
			return ""
		}
	}
	return ""
}

// own returns the code of err itself, whatever it wraps.
func own(err error) string {
	switch e := err.(type) {
	case *Error:
		return e.Code
	case Coder:
		return e.FaultCode()
	}
	return ""
}

// FromCode returns the error that stands for a code read from a log or a wire,
// and nil for "".
func FromCode(code string) error {
	if code == "" {
		return nil
	}
	return &Error{Code: code, Text: "recorded failure " + code}
}
