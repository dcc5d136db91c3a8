package pace

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWordsConcatenateToTheText(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"one", []string{"one"}},
		{"How do you do?", []string{"How ", "do ", "you ", "do?"}},
		{"  led by space", []string{"  led ", "by ", "space"}},
		{"two  spaces\n\nand lines\n", []string{"two  ", "spaces\n\n", "and ", "lines\n"}},
		{" \t ", []string{" \t "}},
		{"日本 🙂\u3000語", []string{"日本 ", "🙂\u3000", "語"}},
	} {
		got := slices.Collect(Words(tt.text))
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Words(%q): -want +got\n%s", tt.text, diff)
		}
		if joined := strings.Join(got, ""); joined != tt.text {
			t.Errorf("Words(%q) join to %q", tt.text, joined)
		}
		if got, want := Count(tt.text), len(strings.Fields(tt.text)); got != want {
			t.Errorf("Count(%q) = %d, want %d", tt.text, got, want)
		}
	}
}

func TestWaitEndsWithTheTimeOrTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := Wait(t.Context(), time.Hour); err != nil || time.Since(start) != time.Hour {
			t.Errorf("Wait = %v after %v, want nil after 1h", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if err := Wait(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("Wait under a deadline = %v after %v, want its error after 1s", err, time.Since(start))
		}
		if err := Wait(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait(done ctx, 0) = %v, want its error", err)
		}
	})
}
