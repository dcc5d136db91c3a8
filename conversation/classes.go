package conversation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-run/parley/identity"
)

// Bounds of class labels: of those that a host may make, and of the set that a
// record bears. A set that would be larger is cut, and cleared for nobody.
const (
	maxClassBytes  = 128
	maxClasses     = 512
	memoryClass    = "memory:" // + scope (C-35.10)
	maxMarkedBytes = len(memoryClass) + 256
)

// union is the sorted set of the classes of all sets, nil for none (C-36.7).
func union(sets ...[]string) []string {
	all := slices.Concat(sets...)
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 0 {
		return nil
	}
	return all[:min(len(all), maxClasses)]
}

// validClasses reports whether a recorded set of classes is one.
func validClasses(classes []string) bool {
	for i, class := range classes {
		if class == "" || len(class) > maxMarkedBytes || i > 0 && classes[i-1] >= class {
			return false
		}
	}
	return len(classes) <= maxClasses
}

// ofTool asks the host for the classes of a tool. What is no answer, or no label,
// is [Unclassified].
func (s *Shared) ofTool(tool string) (classes []string) {
	known := false
	if s.ClassOf != nil {
		err := survive(func() error {
			classes, known = s.ClassOf(tool)
			return nil
		})
		known = known && err == nil
	}
	if !known {
		return []string{Unclassified}
	}
	classes = slices.Clone(classes)
	for i, class := range classes {
		if class == "" || len(class) > maxClassBytes || strings.ContainsFunc(class, func(r rune) bool { return r < ' ' || r == '\ufffd' }) {
			classes[i] = Unclassified
		}
	}
	return classes
}

// ofAnswer is the union of all that an answer has touched: the tools called in its
// turn, whatever came of them (C-36.6), the memory of its asker, and what was
// before it (C-36.1).
func (s *Shared) ofAnswer(before, called []string, scope string) []string {
	all := before
	for _, tool := range union(called) {
		all = union(all, s.ofTool(tool))
	}
	if scope != "" {
		all = union(all, []string{memoryClass + scope})
	}
	return all
}

// clearance remembers within one call what somebody is cleared for: each set of
// classes is asked for once (C-37.11).
type clearance struct {
	shared   *Shared
	who      identity.Identity
	verdicts map[string]bool
}

func (s *Shared) clearanceOf(who identity.Identity) *clearance {
	return &clearance{shared: s, who: who, verdicts: map[string]bool{}}
}

// covers reports whether they are cleared for every class of a set. For no class
// nobody is asked.
func (c *clearance) covers(ctx context.Context, classes []string) bool {
	if len(classes) == 0 {
		return true
	}
	if len(classes) == maxClasses {
		return false // some of it may be missing
	}
	key := fmt.Sprintf("%q", classes)
	verdict, asked := c.verdicts[key]
	if !asked {
		verdict = consent(ctx, func(ctx context.Context) (bool, error) {
			return c.shared.Cleared(ctx, c.who, slices.Clone(classes))
		})
		c.verdicts[key] = verdict
	}
	return verdict
}
