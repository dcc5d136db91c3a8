package tooltest

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/parley-run/parley/taint"
	"github.com/parley-run/parley/tool"
)

// Run holds a set against the contract of [tool.Set]. The set has to offer a tool
// "echo", with the one argument "text", a required string, that returns it, and a
// tool "wait" without arguments that answers only when its context ends.
func Run(t *testing.T, set tool.Set) {
	t.Run("Name", func(t *testing.T) {
		if name := set.Name(); !regexp.MustCompile(`^[A-Za-z0-9-]{1,24}$`).MatchString(name) {
			t.Errorf("Name = %q, want 1 to 24 letters, digits and '-'", name)
		}
	})
	t.Run("Offers", func(t *testing.T) { offers(t, set) })
	t.Run("Call", func(t *testing.T) {
		if err := echoes(set, "hello"); err != nil {
			t.Error(err)
		}
	})
	t.Run("CallsSideBySide", func(t *testing.T) {
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				if err := echoes(set, fmt.Sprint("text ", i)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
	t.Run("Absent", func(t *testing.T) {
		_, err := set.Call(t.Context(), "no such tool", jsontext.Value(`{}`))
		if !errors.Is(err, tool.ErrAbsent) {
			t.Errorf("Call of no tool = %v, want ErrAbsent", err)
		}
	})
	t.Run("Cut", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got, err := set.Call(ctx, "wait", jsontext.Value(`{}`)); err == nil {
			t.Errorf("Call under an ended context = %+v, want an error", got)
		}
		if err := echoes(set, "afterwards"); err != nil {
			t.Error(err)
		}
	})
}

func offers(t *testing.T, set tool.Set) {
	first := set.Offers()
	names := map[string]bool{}
	for _, offer := range first {
		if _, err := taint.Instruction(offer.Description); err != nil {
			t.Errorf("the description of %q = %v, want it plain (C-8.3)", offer.Name, err)
		}
		if names[offer.Name] {
			t.Errorf("%q is offered twice", offer.Name)
		}
		names[offer.Name] = true
	}
	if !names["echo"] || !names["wait"] {
		t.Fatalf("Offers has %v, want echo and wait", names)
	}
	if !slices.EqualFunc(first, set.Offers(), func(a, b tool.Offer) bool { return a.Name == b.Name }) {
		t.Error("Offers has another order the second time")
	}
	for _, offer := range first {
		if offer.Name == "echo" && (offer.Schema.Misfit(jsontext.Value(`{"text":"a"}`)) != "" || offer.Schema.Misfit(jsontext.Value(`{}`)) == "") {
			t.Errorf("the schema of echo is %s, want a required text", offer.Schema.JSON())
		}
	}
}

// echoes calls echo.
func echoes(set tool.Set, text string) error {
	got, err := set.Call(context.Background(), "echo", jsontext.Value(fmt.Sprintf(`{"text":%q}`, text)))
	if err != nil || got.Failed || got.Text != text {
		return fmt.Errorf("echo of %q = %+v, %w", text, got, err)
	}
	return nil
}
