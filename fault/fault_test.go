package fault_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-run/parley/fault"
)

var (
	errDenied  = fault.New("DENIED", "effect not granted")
	errUnknown = fault.New("OUTCOME_UNKNOWN", "outcome unknown")
)

// cut carries data beside its code, as an interrupted model call does.
type cut struct{ partial string }

func (cut) Error() string     { return "cut" }
func (cut) FaultCode() string { return "LLM_INTERRUPTED" }

// nameless is a coded error whose code was forgotten.
type nameless struct{ error }

func (nameless) FaultCode() string { return "" }

// around is a coded error that wraps another.
type around struct {
	fault.Coder
	inner error
}

func (a around) Unwrap() error { return a.inner }

func TestCodeOf(t *testing.T) {
	plain := errors.New("disk full")
	tests := map[string]struct {
		err  error
		want string
	}{
		"nil is no failure":              {nil, ""},
		"uncoded":                        {plain, fault.CodeFailed},
		"sentinel":                       {errDenied, "DENIED"},
		"wrapped":                        {fmt.Errorf("call tool: %w", errDenied), "DENIED"},
		"carries data":                   {fmt.Errorf("model: %w", cut{"half a"}), "LLM_INTERRUPTED"},
		"outermost wins":                 {around{cut{}, errDenied}, "LLM_INTERRUPTED"},
		"joined, first coded":            {errors.Join(plain, errUnknown, errDenied), "OUTCOME_UNKNOWN"},
		"joined, depth first":            {errors.Join(fmt.Errorf("a: %w", errors.Join(plain, errDenied)), errUnknown), "DENIED"},
		"joined, none coded":             {errors.Join(plain, plain), fault.CodeFailed},
		"two wrapped":                    {fmt.Errorf("%w and %w", plain, errDenied), "DENIED"},
		"zero Error is still a failure":  {&fault.Error{}, fault.CodeFailed},
		"empty code is still a failure":  {nameless{plain}, fault.CodeFailed},
		"empty code does not hide inner": {around{nameless{plain}, errDenied}, "DENIED"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := fault.CodeOf(tt.err); got != tt.want {
				t.Errorf("CodeOf(%v) = %q, want %q", tt.err, got, tt.want)
			}
		})
	}
}

func TestIdentitySurvivesTheLog(t *testing.T) {
	cause := fmt.Errorf("effect %q of somebody@example.org: %w", "mail", errDenied)
	read := fault.FromCode(fault.CodeOf(cause))
	if !errors.Is(read, errDenied) {
		t.Errorf("errors.Is(FromCode(CodeOf(%v)), errDenied) = false, want true", cause)
	}
	if errors.Is(read, errUnknown) {
		t.Errorf("the error read back is also %v", errUnknown)
	}
	if got := fault.CodeOf(read); got != "DENIED" {
		t.Errorf("CodeOf of the error read back = %q, want DENIED", got)
	}
	if text := read.Error(); strings.Contains(text, "example") {
		t.Errorf("text of the error read back is %q, want nothing of the cause (C-25.3)", text)
	}
}

func TestFromCodeEmptyIsNil(t *testing.T) {
	if err := fault.FromCode(""); err != nil {
		t.Errorf("FromCode(\"\") = %v, want nil", err)
	}
}

func TestIsNeedsTheSameCode(t *testing.T) {
	again := fault.New("DENIED", "another text")
	if !errors.Is(errDenied, again) {
		t.Error("two errors of one code are not the same error")
	}
	if errors.Is(errDenied, errors.New("effect not granted")) {
		t.Error("an error without a code is the same as a sentinel of equal text")
	}
}

func TestNewRefusesAnEmptyCode(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New(\"\", …) did not panic")
		}
	}()
	fault.New("", "nothing")
}
