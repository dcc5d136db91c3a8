package memory_test

import (
	"testing"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
)

func TestContract(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journal.Store { return memory.New() })
}
